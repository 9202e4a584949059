"""The words before a JOIN, and the condition behind it, of which each has a meaning beside the others.

The parser takes every choice of them: what is said twice, or against another word, would be taken and ignored.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.scope import place_of
from dovetail.sql.syntax.dialect import ARRAY

_ON = "ON l.k = r.k"


def refuse_join_words(query: exp.Query) -> None:
    """Raises Unsupported for a JOIN of the query with a word, or a condition, that has no meaning there."""
    for join in query.find_all(exp.Join):
        kind = join.kind.upper()
        if kind in ("SEMI", "ANTI"):
            _of_existence(join, kind)
        elif kind == "CROSS":
            _of_all_pairs(join)
        elif kind != ARRAY:
            _of_pairs(join, kind)
        if join.method.upper() == "NATURAL" and _condition(join):
            raise _refusal(join, f"NATURAL JOIN takes no {_condition(join)}", f"leave NATURAL out: JOIN r {_ON}")


def _of_existence(join: exp.Join, kind: str) -> None:
    method, side = join.method.upper(), join.side.upper()
    word = method if method in ("ASOF", "LATEST", "ANY") else side if side == "FULL" else ""
    if word:
        raise _refusal(join, f"{word} and {kind} do not go together", f"LEFT {kind} JOIN")
    if not (_condition(join) or method):
        what = f"{kind} JOIN needs a condition: which rows of the other side it asks for"
        raise _refusal(join, what, f"{side or 'LEFT'} {kind} JOIN r {_ON}")


def _of_all_pairs(join: exp.Join) -> None:
    side, method = join.side.upper(), join.method.upper()
    if side or method:
        raise _refusal(join, f"{side or method} and CROSS do not go together", _without("CROSS", side or method))
    if condition := _condition(join):
        raise _refusal(join, f"CROSS JOIN takes no {condition}", f"JOIN r {_ON}, or WHERE l.k = r.k")


def _of_pairs(join: exp.Join, kind: str) -> None:
    side = join.side.upper()
    if kind == "OUTER" and not side:
        what = "OUTER JOIN does not say whose rows stay without a match"
        raise _refusal(join, what, "LEFT JOIN, RIGHT JOIN or FULL JOIN")
    if kind == "INNER" and side:
        raise _refusal(join, f"{side} and INNER do not go together", f"leave INNER out: {side} JOIN r {_ON}")


def _condition(join: exp.Join) -> str:
    return next((part.upper() for part in ("on", "using") if join.args.get(part)), "")


def _without(first: str, second: str) -> str:
    joined = f"{second} JOIN r" if second == "NATURAL" else f"{second} JOIN r {_ON}"
    return f"leave one of them out: {first} JOIN r, or {joined}"


def _refusal(join: exp.Join, what: str, fix: str) -> Unsupported:
    return Unsupported(what, where=place_of(join, "JOIN"), fix=fix)
