"""What is asked of the rows of a node: conditions on its columns, and sets of values that they must be among.

A demand moves from the output of a plan to its scans, so that of a topic only the records of one key are looked at.
It may be weaker than what was asked, and never stronger: rows that it lets through are tested again above.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.sql.expressions.evaluate import evaluate, mask
from dovetail.sql.expressions.expression import Expr, column_named
from dovetail.sql.plan.nodes import Join, Node
from dovetail.sql.transforms.static_join_step import default_of

Values = tuple[Any, ...]


@dataclass(frozen=True)
class KeySet:
    """``exprs`` together are among ``values``: the keys of the rows of the other side of a join."""

    exprs: tuple[Expr, ...]
    values: frozenset[Values]

    @property
    def columns(self) -> set[str]:
        return {name for expr in self.exprs for name in expr.columns}


@dataclass(frozen=True)
class Demand:
    """All of ``terms`` and ``sets`` at once; neither: anything, which no scan can look for."""

    terms: tuple[Expr, ...] = ()
    sets: tuple[KeySet, ...] = ()

    @property
    def narrow(self) -> bool:
        return bool(self.terms or self.sets)

    @property
    def columns(self) -> set[str]:
        """The columns that it reads."""
        read = {name for term in self.terms for name in term.columns}
        return read.union(*(one.columns for one in self.sets))

    def __and__(self, other: Demand) -> Demand:
        terms = tuple(dict.fromkeys((*self.terms, *other.terms)))
        return Demand(terms, tuple(dict.fromkeys((*self.sets, *other.sets))))

    def over(self, names: Collection[str]) -> Demand:
        """The part of it that reads some of the columns ``names``, and no others."""
        return Demand(
            tuple(term for term in self.terms if term.columns and set(term.columns) <= set(names)),
            tuple(one for one in self.sets if one.columns and one.columns <= set(names)),
        )

    def below(self, columns: Mapping[str, Expr]) -> Demand:
        """The same of the rows that ``columns`` are computed from."""
        terms = (term.substituted(columns) for term in self.terms)
        sets = (KeySet(tuple(one.substituted(columns) for one in s.exprs), s.values) for s in self.sets)
        return Demand(tuple(one for one in terms if one.columns), tuple(one for one in sets if one.columns))

    def renamed(self, names: Mapping[str, str], schema: pa.Schema) -> Demand:
        """With other columns, of ``schema``, in the place of some."""
        return self.below({name: Expr.column(other, schema.field(other).type) for name, other in names.items()})

    def text(self) -> str:
        return " and ".join([*map(_term_text, self.terms), *map(_set_text, self.sets)])


def compared(term: Expr) -> tuple[Expr, Values] | None:
    """``x`` and the values of ``x = 1`` and ``x IN (1, 2)``; None for another condition."""
    tree = term.tree.unnest()
    if isinstance(tree, exp.EQ):
        first, second = (Expr(side, term.type) for side in (tree.this, tree.expression))
        side, others = (first, [second]) if first.columns else (second, [first])
    elif isinstance(tree, exp.In) and tree.expressions:
        side, others = Expr(tree.this, term.type), [Expr(one, term.type) for one in tree.expressions]
    else:
        return None
    if any(other.columns for other in others):
        return None
    values = evaluate(pa.table({"one": [0]}), [other.text for other in others])
    return side, tuple(value[0].as_py() for value in values)


def _term_text(term: Expr) -> str:
    found = compared(term)
    if found is None or len(found[1]) > 1:
        return term.readable
    return f"{found[0].readable} = {literal(found[1][0])}"


_SHOWN = 3


def _set_text(one: KeySet) -> str:
    names = ", ".join(expr.readable for expr in one.exprs)
    values = sorted(", ".join(map(literal, value)) for value in one.values)
    if len(values) == 1:
        return f"{names} = {values[0]}"
    more = f", .. ({len(values):,})" if len(values) > _SHOWN else ""
    return f"{names} among {', '.join(values[:_SHOWN])}{more}"


def literal(value: object) -> str:
    """A value as a person writes it."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def sides(join: Join, demand: Demand) -> tuple[Demand, Demand]:
    """What a demand on the rows of ``join`` asks of its left rows, and of its right ones.

    A condition on one side is one on it where that side is always there, or where no padded row fulfils it. One on a
    key is one on the key of the other side: rows whose keys differ do not meet. Of many right rows a join that takes
    one has to see all, so only what is said of the keys passes to them.
    """
    left, right = set(join.left.schema.names), set(join.right.schema.names)
    padded_left = join.kind in (JoinKind.RIGHT, JoinKind.FULL)
    padded_right = join.kind in (JoinKind.LEFT, JoinKind.FULL)
    demand = _of_merged(join, demand)
    of_left = _usable(demand.over(left), join.left, join.pad, padded=padded_left)
    of_right = _usable(demand.over(right), join.right, join.pad, padded=padded_right)
    to_right, to_left = dict(join.keys), {name: other for other, name in join.keys}
    over_right = of_left.over(to_right).renamed(to_right, join.right.schema)
    over_left = of_right.over(to_left).renamed(to_left, join.left.schema)
    seen = of_right.over(to_left) if join.method.takes_one or join.method.answers_once else of_right
    return of_left & over_left, seen & over_right


def _usable(demand: Demand, side: Node, pad: Pad, *, padded: bool) -> Demand:
    if not padded:
        return demand
    columns = [pa.array([None if pad is Pad.NULL else default_of(one.type).as_py()], one.type) for one in side.schema]
    row = pa.table(columns, schema=side.schema)
    sets = (one for one in demand.sets if not any(None in value for value in one.values))
    return Demand(tuple(term for term in demand.terms if not mask(row, term.text)[0]), tuple(sets))


def _of_merged(join: Join, demand: Demand) -> Demand:
    """A condition on ``coalesce(l.k, r.k)``, the column that USING merges, is one on the key of either side."""
    pairs = {frozenset(pair): pair for pair in join.keys}

    def key(node: exp.Expr) -> exp.Expr:
        call = isinstance(node, exp.Coalesce) or (isinstance(node, exp.Anonymous) and node.name.lower() == "coalesce")
        columns = [one.name for one in node.find_all(exp.Column)] if call else []
        pair = pairs.get(frozenset(columns)) if len(columns) == 2 else None
        return column_named(pair[0]) if pair else node

    return Demand(tuple(Expr(term.tree.transform(key), term.type) for term in demand.terms), demand.sets)
