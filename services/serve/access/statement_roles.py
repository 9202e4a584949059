"""Which role a statement asks for. A new statement has to be classed here: the types see to it."""

from __future__ import annotations

from typing import assert_never

from dovetail.services.serve.access.role import Role
from dovetail.sql.syntax.statements import (
    AlterStream,
    AlterView,
    BackupView,
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateStream,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    ExplainAnalyze,
    ExplainView,
    Insert,
    Pause,
    Print,
    Replay,
    RestoreView,
    Resume,
    Select,
    Show,
    ShowCreate,
    Statement,
    System,
    Terminate,
    Update,
    Why,
)


def role_for(statement: Statement) -> Role:
    """The least role that may run a statement.

    PAUSE and TERMINATE end what others rely on; BACKUP writes to the machine.
    """
    match statement:
        case Select() | Show() | Describe() | ShowCreate() | Explain() | ExplainAnalyze() | ExplainView():
            return Role.READER
        case Print() | Why():
            return Role.READER
        case Insert() | Update() | Delete() | Replay() | System():
            return Role.WRITER
        case CreateStream() | CreateView() | CreateIndex() | CreateDictionary() | CreateFunction():
            return Role.ADMIN
        case AlterStream() | AlterView() | Drop():
            return Role.ADMIN
        case Pause() | Resume() | Terminate() | BackupView() | RestoreView():
            return Role.ADMIN
        case _:
            assert_never(statement)
