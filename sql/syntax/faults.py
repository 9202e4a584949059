"""Errors in the text of a statement: line, column and clause, with the line quoted and the place marked."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.changelog.errors import DovetailError, InternalError, SqlError, SyntaxFault, TextPlace
from dovetail.sql.syntax.dialect import too_deep
from dovetail.sql.syntax.masked import unread

_AROUND = 200
"""Characters that are quoted of a line, before the place and from it on."""
SCRIPT = "script"
"""In the ``meta`` of a name the text that it is written in, beside its places there, which sqlglot sets."""


def position(script: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of the character at ``offset``."""
    before = script[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def place(script: str, offset: int, clause: str = "") -> TextPlace:
    """``line 2, column 7, in WHERE`` and below it the line with a caret under the column; passwords are masked."""
    line, column = position(script, offset)
    end = script.find("\n", offset)
    # Masked as a whole: the name of a password may be on another line than its value.
    masked = unread(script)
    at, end = masked.place(offset), masked.place(end if end >= 0 else len(script))
    start = masked.shown.rfind("\n", 0, at) + 1
    quoted, at = masked.shown[start:end].replace("\t", " "), at - start
    begin = max(0, at - _AROUND)
    within = f", in {clause}" if clause else ""
    shown = f"line {line}, column {column}{within}\n    {quoted[begin : at + _AROUND]}\n    {' ' * (at - begin)}^"
    return TextPlace.of(shown, script, offset)


def fault_at(
    script: str, offset: int, what: str, *, clause: str = "", fix: str = "", kind: type[SqlError] = SyntaxFault
) -> SqlError:
    """An error about the text at ``offset``."""
    return kind(what, where=place(script, offset, clause), fix=fix)


@contextmanager
def unforeseen_as_errors(doing: str) -> Iterator[None]:
    """The last resort for a statement: what no rule has foreseen is an error with what, where and fix, its traceback in
    the log. Raises DovetailError alone.
    """
    try:
        yield
    except DovetailError:
        raise
    except RecursionError:
        raise too_deep() from None
    except Exception as fault:
        logging.getLogger(__name__).exception("%s failed", doing)
        raise InternalError(
            f"{doing} failed: {type(fault).__name__}",
            where="the statement",
            fix="write it another way, in smaller steps, a subquery for each; the log has the traceback",
        ) from fault
