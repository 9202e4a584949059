"""How the user wrote the items of a select list: a column without a name is called by it."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token

_PLACE, _SPELLING = "place", "spelling"
"""Keys in the ``meta`` of an item."""


def keep_place(item: exp.Expr, first: Token, last: Token) -> None:
    item.meta[_PLACE] = (first.start, last.end + 1)


def keep_spelling(query: exp.Expr, script: str) -> None:
    """Of the outermost select list alone: columns of a subquery are called by what their tree prints."""
    while isinstance(query, exp.SetOperation):
        query = query.this
    for item in query.expressions if isinstance(query, exp.Select) else ():
        if _PLACE in item.meta:
            item.meta[_SPELLING] = script[slice(*item.meta[_PLACE])]


def spelling(item: exp.Expr) -> str:
    """'' for an item of a subquery, and for one that nobody wrote."""
    return str(item.meta.get(_SPELLING, ""))
