"""A stream or a view, by its name."""

from __future__ import annotations

from contextlib import nullcontext

from sqlglot import exp

from dovetail.change_feed import ChangeFeed
from dovetail.changelog.schema import StreamSchema
from dovetail.expected_types import expect_limit, expect_truth
from dovetail.query_result import QueryResult
from dovetail.services.session import Rows, Session
from dovetail.services.session.tail.topic_views import TopicTail
from dovetail.sql.planner import stream_of


class StreamHandle:
    """What ``Connection.stream`` and ``Connection.view`` give."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self.name = name

    def table(self) -> QueryResult:
        """The rows as they stand now, in the declared columns."""
        columns = ", ".join(_quoted(column.name) for column in self._schema.columns)
        [rows] = self._session.run(f"SELECT {columns} FROM table({_quoted(self.name)})")
        assert isinstance(rows, Rows)
        return QueryResult.of(rows)

    def changes(
        self, *, from_beginning: bool = False, until_idle: bool = False, limit: int | None = None
    ) -> ChangeFeed:
        """What is written from now on.

        from_beginning  and before that what was
        until_idle      it ends where the topic ends now
        limit           it ends after so many
        """
        expect_truth(from_beginning, "from_beginning", ".changes(..)")
        expect_truth(until_idle, "until_idle", ".changes(..)")
        expect_limit(limit, ".changes(..)")
        tail = TopicTail.of(self._session.context, self.name, from_beginning=from_beginning, limit=limit)
        return ChangeFeed(lambda: nullcontext(tail), until_idle=until_idle)

    @property
    def _schema(self) -> StreamSchema:
        return stream_of(self._session.context.catalog, self.name).schema


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("postgres")
