"""Each kind of statement: the function that carries it out, and the role that it asks of a user of the HTTP server.

A function is named, not imported: what SHOW needs is there in half the time of a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any

from dovetail.services.role import Role
from dovetail.services.session.result import Result
from dovetail.sql.syntax.statements import (
    AlterQuery,
    AlterStream,
    AlterView,
    BackupView,
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateSchema,
    CreateStream,
    CreateTableAs,
    CreateView,
    Delete,
    Describe,
    Drop,
    DryRun,
    Explain,
    ExplainAlter,
    ExplainAnalyze,
    ExplainView,
    Insert,
    Pause,
    Print,
    Replay,
    RestoreView,
    Resume,
    Rollback,
    Select,
    Show,
    ShowCreate,
    Statement,
    System,
    Terminate,
    Update,
    WaitFor,
    Why,
)

_PACKAGE = "dovetail.services.session"


@dataclass(frozen=True, slots=True)
class StatementHandler:
    """``role``: the least one that may run such a statement. ``name``: ``module:function``, below this package."""

    role: Role
    name: str

    def resolve(self) -> Callable[..., Result]:
        """The function; it takes the context of the session and the statement."""
        found: Any = resolve_name(f"{_PACKAGE}.{self.name}")
        return found  # type: ignore[no-any-return]


_reader, _writer, _admin = (partial(StatementHandler, role) for role in (Role.READER, Role.WRITER, Role.ADMIN))

# PAUSE and TERMINATE end what others rely on; BACKUP writes to the machine.
STATEMENTS: Mapping[type[Statement], StatementHandler] = {
    AlterQuery: _admin("alter.alter_query:alter_query"),
    AlterStream: _admin("streams:alter_stream"),
    AlterView: _admin("alter.alter_view:alter_view"),
    BackupView: _admin("backup.backup_view:backup_view"),
    CreateDictionary: _admin("dictionaries.dictionary_statements:create_dictionary"),
    CreateFunction: _admin("functions:create_function"),
    CreateIndex: _admin("streams:create_index"),
    CreateSchema: _admin("streams:create_schema"),
    CreateTableAs: _admin("table_as:create_table_as"),
    CreateStream: _admin("streams:create_stream"),
    CreateView: _admin("views:create_view"),
    Delete: _writer("rows:delete"),
    Describe: _reader("listing:describe"),
    Drop: _admin("drop:drop"),
    DryRun: _reader("alter.dry_run:dry_run"),
    Explain: _reader("queries:explain"),
    ExplainAlter: _reader("alter.explain_alter:explain_alter"),
    ExplainAnalyze: _reader("live.analyze:explain_analyze"),
    ExplainView: _reader("queries:explain_view"),
    Insert: _writer("rows:insert"),
    Pause: _admin("queries:pause"),
    Print: _reader("tail.print_topic:print_topic"),
    Replay: _writer("replay.replay:replay"),
    RestoreView: _admin("backup.restore_view:restore_view"),
    Resume: _admin("queries:resume"),
    Rollback: _admin("alter.alter_query:roll_back"),
    Select: _reader("select:select"),
    Show: _reader("listing:show"),
    ShowCreate: _reader("listing:show_create"),
    System: _writer("dictionaries.dictionary_statements:reload"),
    Terminate: _admin("drop:terminate"),
    Update: _writer("rows:update"),
    WaitFor: _reader("wait.wait_for:wait_for"),
    Why: _reader("why.why:why"),
}


def role_of(kind: type[Statement]) -> Role:
    """The least role that may run statements of a kind, whatever is in them."""
    return STATEMENTS[kind].role
