"""The tools: questions about streams and views, each a statement of SQL, and the documentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from dovetail.changelog.errors import DovetailError, SqlError, Unsupported
from dovetail.changelog.work.interruption import Interruption
from dovetail.services.manual import manual
from dovetail.services.mcp.answers import ToolAnswer, answer_of
from dovetail.services.role import Role
from dovetail.services.session import Session
from dovetail.services.session.context import Say
from dovetail.services.session.statement_table import role_of
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.redact import redacted
from dovetail.sql.syntax.statements import DryRun, ExplainAnalyze, Show, Statement, Why, opening_words

INSTRUCTIONS = """Dovetail joins Kafka streams with SQL; a view writes its rows to a topic as they change.
Begin with overview. query answers over rows as of now, FROM table(x), over those of a moment, FROM table(x) AS OF
'2026-11-24 10:00:00', and over what changed, FROM changes(x, '2026-11-24', '2026-11-25'). A row that looks wrong: why.
One that is missing: why_not. A view that is slow or large: state. Before a view is changed: preview_change. What SQL
there is: documentation."""

_KINDS = {"STREAMS": "stream", "VIEWS": "view", "DICTIONARIES": "dictionary", "QUERIES": "query"}
_MOST_ROWS = 1_000
View = Annotated[str, Field(description="The name of a materialized view")]
Where = Annotated[str, Field(description="The rows that are meant, by columns of the view: id = 5 AND city = 'Rome'")]


@dataclass(frozen=True)
class Tools:
    """open_session   a session, with what takes its notes; each call has one of its own
    role           what statements may do
    within_s       how long one may take
    """

    open_session: Callable[[Say], Session]
    role: Role
    within_s: float

    async def overview(self) -> ToolAnswer:
        """What there is: streams, tables, views, dictionaries, and how the queries behind the views are."""
        found = {kind: await self._run(f"SHOW {kind}", _MOST_ROWS) for kind in _KINDS}
        rows = [{"object": _KINDS[kind], **row} for kind, answer in found.items() for row in answer.rows]
        notes = [note for answer in found.values() for note in answer.notes]
        return ToolAnswer(rows=rows, total=len(rows), notes=notes)

    async def query(
        self,
        sql: Annotated[str, Field(description="One statement, e.g. SELECT * FROM table(v) LIMIT 5, or SHOW CREATE v")],
        limit: Annotated[int, Field(ge=1, le=_MOST_ROWS, description="So many rows are given at the most")] = 100,
    ) -> ToolAnswer:
        """Run a statement that is answered at once."""
        return await self._run(sql, limit)

    async def explain(
        self, sql: Annotated[str, Field(description="A SELECT, a CREATE MATERIALIZED VIEW, or the name of a view")]
    ) -> ToolAnswer:
        """The plan of a query: its joins, what state each keeps and until when. Nothing is run."""
        return await self._run(f"EXPLAIN {sql}", _MOST_ROWS)

    async def why(self, view: View, where: Where) -> ToolAnswer:
        """The records of the inputs behind rows of a view."""
        return await self._run(f"WHY {view} WHERE {where}", _MOST_ROWS, Why)

    async def why_not(self, view: View, where: Where) -> ToolAnswer:
        """Why a view does not have a row: which join, filter or window its records did not pass."""
        return await self._run(f"WHY NOT {view} WHERE {where}", _MOST_ROWS, Why)

    async def state(self, view: View) -> ToolAnswer:
        """What a running view holds: rows, bytes and keys of each join, and the keys that weigh most."""
        return await self._run(f"SHOW STATE OF {view}", _MOST_ROWS, Show)

    async def running_plan(self, view: View) -> ToolAnswer:
        """The plan of a running view, with the rows and the time of each of its nodes."""
        return await self._run(f"EXPLAIN ANALYZE {view}", _MOST_ROWS, ExplainAnalyze)

    async def preview_change(
        self, view: View, query: Annotated[str, Field(description="The new query of the view: SELECT ..")]
    ) -> ToolAnswer:
        """Which rows a view would gain and lose with another query. Nothing is changed."""
        return await self._run(f"ALTER VIEW {view} AS {query} DRY RUN", _MOST_ROWS, DryRun)

    async def documentation(
        self, words: Annotated[str, Field(description="A page or words of a heading; empty: the list of pages")] = ""
    ) -> ToolAnswer:
        """What the documentation says of something: statements, functions, joins, settings, errors."""
        try:
            found = manual(words)
        except DovetailError as error:
            raise ToolError(str(error)) from None
        if isinstance(found, str):
            return ToolAnswer(found)
        return ToolAnswer(
            rows=[{"page": page, "about": about} for page, about in found.entries], total=len(found.entries)
        )

    async def _run(self, sql: str, limit: int, kind: type[Statement] | None = None) -> ToolAnswer:
        """Raises ToolError with what, where and fix, passwords masked; also where the time is over."""
        interruption = Interruption()
        with anyio.move_on_after(self.within_s) as time:
            work = partial(self._answer, sql, limit, kind, interruption)
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        assert time.cancelled_caught
        interruption.ask()
        raise ToolError(f"the statement takes longer than {self.within_s:g} s\n  fix:   ask for less, with WHERE")

    def _answer(self, sql: str, limit: int, kind: type[Statement] | None, interruption: Interruption) -> ToolAnswer:
        notes: list[str] = []
        try:
            statement = self._statement(sql, kind)
            with interruption.of_this_thread(), self.open_session(notes.append) as session:
                answer = answer_of(session.execute(statement), limit)
        except DovetailError as error:
            raise ToolError(redacted(str(error))) from None
        answer.notes[:0] = notes
        return answer

    def _statement(self, sql: str, kind: type[Statement] | None) -> Statement:
        found = parse(sql)
        if len(found) != 1 or not isinstance(found[0], kind or object):
            raise SqlError(f"one statement is taken here, and this is another thing: {sql}", fix="send one at a time")
        needed = role_of(type(found[0]))
        if not self.role.includes(needed):
            raise Unsupported(
                f"{opening_words(found[0])} needs the role {needed}, and these tools have the role {self.role}",
                fix=f"let a person run it; or start them with that role: dovetail mcp --role {needed}",
            )
        return found[0]


def server_of(tools: Tools, version: str) -> MCPServer[None]:
    server: MCPServer[None] = MCPServer("dovetail", instructions=INSTRUCTIONS, version=version, log_level="WARNING")
    looks = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in (
        tools.overview,
        tools.explain,
        tools.why,
        tools.why_not,
        tools.state,
        tools.running_plan,
        tools.preview_change,
        tools.documentation,
    ):
        server.add_tool(tool, annotations=looks)
    only_looks = tools.role is Role.READER
    server.add_tool(
        tools.query,
        annotations=ToolAnnotations(read_only_hint=only_looks, destructive_hint=not only_looks, open_world_hint=False),
    )
    return server
