"""A session as a suite of RisingWave takes it: SELECT is answered at once, and the next statement sees all of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import pyarrow as pa

from dovetail.services.session import Rows, Session
from dovetail.services.session.contents import answer, relation_rows
from dovetail.sql.bind.reading import with_dialect
from dovetail.sql.catalog import Relation
from dovetail.sql.compile.snapshot import Snapshot
from dovetail.sql.planner import plan_snapshot, stream_of
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Delete, Drop, Insert, Select, Statement, Update


class ViewFailed(Exception):
    """A view that runs has ended with an error."""


class SuiteSession(ABC):
    """``rules``: the dialect of queries that read no relation."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self._session = session
        self._rules = rules

    def execute(self, text: str) -> pa.Table | None:
        """The rows of a SELECT. Raises a DovetailError for what is refused, ViewFailed for a view that has ended."""
        statement = parse_one(text)
        if isinstance(statement, Select):
            self.settle()
            return answer(self._session.context, self._snapshot(statement))
        if isinstance(statement, Drop):
            # The next table of this name begins without rows.
            with_data = statement.what not in ("index", "dictionary", "function")
            statement = replace(statement, with_data=with_data)
        return self._run(statement)

    def rows_of(self, view: str) -> pa.Table:
        """What a view holds, its declared columns."""
        self.settle()
        context = self._session.context
        columns = stream_of(context.catalog, view).schema.columns
        return relation_rows(context, view).select([column.name for column in columns])

    def columns_of(self, text: str) -> tuple[str, ...]:
        """The names of the columns of a SELECT."""
        statement = parse_one(text)
        return tuple(self._snapshot(statement).columns) if isinstance(statement, Select) else ()

    @property
    def relations(self) -> tuple[Relation, ...]:
        return tuple(self._session.context.catalog.relations())

    def drop(self, relation: Relation) -> None:
        self._run(Drop(relation.what.value, relation.name, if_exists=True, cascade=True, with_data=True))

    def clear(self) -> None:
        """Drop all that is there."""
        for relation in self.relations:
            if any(relation.name == one.name for one in self.relations):
                self.drop(relation)

    def close(self) -> None:
        self._session.close()

    @abstractmethod
    def settle(self) -> None:
        """Wait until every view has taken in all of its input. Raises ViewFailed."""

    def _run(self, statement: Statement) -> pa.Table | None:
        """The rows of RETURNING, if it has any."""
        result = self._session.execute(statement)
        return result.table if isinstance(result, Rows) and isinstance(statement, Insert | Update | Delete) else None

    def _snapshot(self, statement: Select) -> Snapshot:
        catalog = self._session.context.catalog
        return plan_snapshot(with_dialect(statement, catalog, self._rules), catalog)
