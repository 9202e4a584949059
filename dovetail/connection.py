"""A connection: SQL in, rows out."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa

from dovetail.change_feed import ChangeFeed
from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.expected_types import expect_text, expect_truth
from dovetail.frames import arrow_of
from dovetail.query_result import QueryResult
from dovetail.runtime.environment.unknown_variables import warn_of_unknown
from dovetail.services.known_stacks import found_settings
from dovetail.services.session import Live, Session
from dovetail.services.session.context import Confirm, unasked
from dovetail.services.session.rows import insert_table
from dovetail.sql.planner import stream_of
from dovetail.sql.syntax.parameters.bound_literals import Arguments
from dovetail.sql.syntax.parse import parse, parse_one
from dovetail.sql.syntax.statements import Print, Select, opening_words
from dovetail.stream_handle import StreamHandle


def connect(*, confirm: Confirm = unasked, **settings: object) -> Connection:
    """A connection to the local stack, from any folder, or to what the settings name.

    confirm   is given the question whether DROP .. CASCADE may drop what was not named, and answers it. Without it such
              a DROP is refused; ``dovetail.agreed`` agrees to each
    settings  as in docs/configuration.md, in small letters and without DOVETAIL_: ``brokers="kafka:9092"``,
              ``catalog_url="postgresql+psycopg://.."``, ``data_dir="/var/lib/dovetail"``. Those that are not given are
              those of the environment

    Raises StackError where no stack runs, or several of which none is of this folder; UnknownName for a setting that
    does not exist. A variable that is misspelt is a warning.
    """
    if not callable(confirm):
        what = f"confirm is asked, and {confirm!r} cannot be called"
        raise SqlError(what, where="dovetail.connect(..)", fix="connect(confirm=dovetail.agreed), or a function")
    warn_of_unknown(lambda line: warnings.warn(line, stacklevel=4))
    return Connection(Session.open(found_settings(settings), confirm=confirm))


class Connection:
    """One thread uses it at a time. Every error is a ``DovetailError``, which says what, where, and how to mend it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def sql(self, statements: str, parameters: Arguments | None = None) -> QueryResult:
        """What the last of the statements gives. DROP .. CASCADE of what others use is for ``connect(confirm=..)``.

        parameters  the values of ``?`` in their order, or of ``:name`` by name, in SELECT, INSERT and WHY: texts,
                    numbers, truth values, None, dates, times and decimals

        A SELECT over a stream does not end, and is refused: ``changes`` follows one.
        """
        expect_text(statements, ".sql(..)", 'db.sql("SHOW STREAMS")')
        answer = QueryResult("", pa.table({}))
        for statement in parse(statements, arguments=parameters):
            result = self._session.execute(statement)
            if isinstance(result, Live):
                raise Unsupported(
                    "a SELECT over a stream does not end",
                    where=".sql(..)",
                    fix="follow it by .changes(..); or ask for the rows as of now: FROM table(x)",
                )
            answer = QueryResult.of(result)
        return answer

    def changes(self, query: str, *, until_idle: bool = False) -> ChangeFeed:
        """The changes that a SELECT over streams makes, from now on, or from where its ``seek_to`` says.

        until_idle  it ends when the input that there is now has been answered
        """
        expect_text(query, ".changes(..)", 'db.changes("SELECT * FROM orders")')
        expect_truth(until_idle, "until_idle", ".changes(..)")
        statement = parse_one(query)
        if not isinstance(statement, Select | Print):
            raise SqlError(
                f"{opening_words(statement)} makes no changes to follow, and was not run",
                where=".changes(..)",
                fix="run it by .sql(..); .changes(..) follows a SELECT over streams",
            )
        result = self._session.execute(statement)
        if not isinstance(result, Live):
            raise SqlError(
                "this has an end: nothing changes about it", where=".changes(..)", fix=".sql(..) gives its rows"
            )
        return ChangeFeed(lambda: result.changelog, until_idle=until_idle)

    def insert(self, stream: str, rows: Any) -> int:
        """Write rows to a stream, all of them or none; how many they were.

        rows  a frame of pandas or polars, an Arrow table, anything that speaks Arrow's C stream, or dictionaries.
              Columns are found by name; one that is missing takes its DEFAULT, a NaN of pandas is NULL

        Raises SqlError, with column and row, for a value that the type of its column cannot hold as it is: a float
        that a decimal would round, a time of finer units.
        """
        expect_text(stream, ".insert(..)", 'db.insert("orders", rows)')
        context = self._session.context
        types = {column.name: column.type for column in stream_of(context.catalog, stream).schema.columns}
        return insert_table(context, stream, arrow_of(rows, types))

    def stream(self, name: str) -> StreamHandle:
        """Raises UnknownName, with the nearest name, when it is first asked."""
        expect_text(name, ".stream(..)", 'db.stream("orders")')
        return StreamHandle(self._session, name)

    view = stream

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
