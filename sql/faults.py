"""Errors in the text of a statement: line, column and clause, with the line quoted and the place marked."""

from __future__ import annotations

from changelog.errors import SqlError, SyntaxFault
from sql.redact import redacted


def position(script: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of the character at ``offset``."""
    before = script[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def place(script: str, offset: int, clause: str = "") -> str:
    """``line 2, column 7, in WHERE`` and below it the line with a caret under the column; passwords are masked."""
    line, column = position(script, offset)
    quoted = script.split("\n")[line - 1].replace("\t", " ")
    # Masking may move what follows: the caret counts the masked text before it.
    caret = " " * len(redacted(quoted[: column - 1]))
    within = f", in {clause}" if clause else ""
    return f"line {line}, column {column}{within}\n    {redacted(quoted)}\n    {caret}^"


def fault_at(
    script: str, offset: int, what: str, *, clause: str = "", fix: str = "", kind: type[SqlError] = SyntaxFault
) -> SqlError:
    """An error about the text at ``offset``."""
    return kind(what, where=place(script, offset, clause), fix=fix)
