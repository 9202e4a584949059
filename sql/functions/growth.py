"""How large a statement may become as it is bound, counted while it becomes so.

A function may name an argument several times in the engine's SQL; an alias of the select list, and a CTE, may be named
several times. Where such things are nested, each level multiplies what is below.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.changelog.work.interruption import expect_wanted

MOST_PARTS = 100_000
"""Names, values and calls that a statement may become."""
LARGEST_SMALL = 10_000
MOST_TIMES = 50
"""A translation may be so large whatever it is of; and so many times as large as what was written."""
MOST_ALIASES = 500
"""Aliases of the select list that one expression may name, those that they name counted each time."""
MOST_RELATIONS = 100
"""Relations that a streaming query may read; one that is read several times counts each time."""


@dataclass
class _Growth:
    parts: int = 0
    relations: int = 0


_growth: ContextVar[_Growth | None] = ContextVar("growth", default=None)


@contextmanager
def counted() -> Iterator[None]:
    """What the body makes of a statement is counted; a view that it reads has a count of its own."""
    before = _growth.set(_Growth())
    try:
        yield
    finally:
        _growth.reset(before)


def grow(parts: int = 1) -> None:
    """The statement becomes larger by so many ``parts``. Raises SqlError where it has become too large."""
    expect_wanted()
    growth = _growth.get()
    if growth is not None:
        growth.parts += parts
        if growth.parts > MOST_PARTS:
            raise outgrown("")


def expect_alike(made: exp.Expr, written: exp.Expr, place: str) -> None:
    """Raises SqlError for a translation that is out of proportion to what was ``written``."""
    if _size(made, LARGEST_SMALL) <= LARGEST_SMALL:
        return
    most = LARGEST_SMALL + MOST_TIMES * sum(1 for _ in written.walk())
    if _size(made, most) > most:
        raise outgrown(place)


def outgrown(place: str) -> SqlError:
    return SqlError(
        "the statement grows to too many names, values and calls as it is translated",
        where=place,
        fix="nest fewer calls; compute what appears in it several times in a subquery or a view, and name its column",
    )


def read_relation() -> None:
    """A relation is read, once more. Raises SqlError where there are too many."""
    expect_wanted()
    growth = _growth.get()
    if growth is not None:
        growth.relations += 1
        if growth.relations > MOST_RELATIONS:
            raise SqlError(
                f"the query reads more than {MOST_RELATIONS} relations, what WITH names counted each time",
                fix="make what is read several times a materialized view",
            )


def _size(tree: exp.Expr, most: int) -> int:
    """The nodes of a tree as the engine reads it, counted up to ``most``: it too writes some of them several times."""
    total, waiting = 0, [(tree, 1)]
    while waiting and total <= most:
        node, times = waiting.pop()
        total += times
        waiting.extend((part, times * _written_again(node, part)) for part in node.iter_expressions())
    return total


def _written_again(node: exp.Expr, part: exp.Expr) -> int:
    """``x BETWEEN a AND b`` is two comparisons of x, ``CASE x WHEN ..`` one for each WHEN."""
    if part.arg_key != "this":
        return 1
    if isinstance(node, exp.Between):
        return 2
    return len(node.args["ifs"]) if isinstance(node, exp.Case) else 1
