"""Errors in the text of a statement: line, column and clause, with the line quoted and the place marked."""

from __future__ import annotations

from collections.abc import Callable

from changelog.errors import SqlError, SyntaxFault
from sql.syntax.redact import redacted


def position(script: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of the character at ``offset``."""
    before = script[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def place(script: str, offset: int, clause: str = "") -> str:
    """``line 2, column 7, in WHERE`` and below it the line with a caret under the column; passwords are masked."""
    line, column = position(script, offset)
    # Masked together with what stands before: the name of a password may be on another line than its value.
    end = script.find("\n", offset)
    quoted = redacted(script[: end if end >= 0 else len(script)]).split("\n")[-1].replace("\t", " ")
    # Masking may move what follows: the caret counts the masked text before it.
    caret = " " * len(redacted(script[:offset]).split("\n")[-1])
    within = f", in {clause}" if clause else ""
    return f"line {line}, column {column}{within}\n    {quoted}\n    {caret}^"


def fault_at(
    script: str, offset: int, what: str, *, clause: str = "", fix: str = "", kind: type[SqlError] = SyntaxFault
) -> SqlError:
    """An error about the text at ``offset``."""
    error = kind(what, where=place(script, offset, clause), fix=fix)
    error.offset = offset
    return error


def tried(script: str, slip: SyntaxFault, read: Callable[[str], object]) -> SyntaxFault:
    """``slip`` with that of its guesses as its fix with which ``read`` gets furthest, if that is further than without
    it, and past the word itself.
    """
    fix, least = slip.fix, len(script) - (slip.offset or 0)
    for guess in slip.guesses:
        unread = _unread(script[: guess.start] + guess.word + script[guess.end :], read)
        if unread < min(least, len(script) - guess.end):
            fix, least = guess.offer, unread
    return SyntaxFault(slip.what, where=slip.where, fix=fix)


def _unread(script: str, read: Callable[[str], object]) -> int:
    """How much of the script stands behind its first error; below 0 if it has none."""
    try:
        read(script)
    except SqlError as fault:
        return len(script) - (fault.offset or 0)
    return -1


def too_deep() -> SqlError:
    """A statement whose brackets, or terms of AND and OR, are more than can be followed."""
    return SqlError(
        "the statement is nested too deeply, or has too many terms", fix="join with table(x) in place of a long list"
    )
