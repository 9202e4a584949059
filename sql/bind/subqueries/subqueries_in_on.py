"""Subqueries in ON, taken out of it before the sides are joined.

    a JOIN b ON a.k = b.k AND EXISTS (q)          of an inner join: as in WHERE
    a LEFT JOIN b ON a.k = b.k AND b.x IN (q)     about the rows that are padded with: a filter of these
    a LEFT JOIN b ON a.k = b.k AND a.x IN (q)     about a side all of whose rows leave: a column of it, a mark or a
                                                  value, which ON compares

One subquery that reads both sides has no side that could give its answer: it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.bind.clauses import event_time
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.from_clause.join_method import kind_of
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.subqueries.subqueries import Subqueries, joined_with, subqueries_in
from dovetail.sql.expressions.predicates import conjuncts
from dovetail.sql.plan.nodes import LookupTable, Static

_ON = "JOIN .. ON"


@dataclass(frozen=True)
class Sides:
    """A join whose ON has no subquery any more, with its sides, and the terms that are left for WHERE above it."""

    join: exp.Join
    left: FromItem
    right: FromItem
    above: Sequence[exp.Expr] = ()


@dataclass(frozen=True)
class SubqueriesInOn:
    """``filtered`` gives the rows of an item that fulfil a condition; ``tried`` binds subqueries to no end."""

    subqueries: Subqueries
    filtered: Callable[[FromItem, exp.Expr], FromItem]
    tried: Callable[[exp.Query, Scope], set[str]]

    def taken_out(self, join: exp.Join, left: FromItem, right: FromItem) -> Sides:
        on = join.args.get("on")
        if on is None or on.find(exp.Query) is None:
            return Sides(join, left, right)
        terms = [term.copy() for term in conjuncts(on)]
        found = [term for term in terms if term.find(exp.Query) is not None]
        bare = join.copy()
        if _is_inner(join):
            rest = [term for term in terms if not any(term is one for one in found)]
            bare.set("on", exp.and_(*rest, copy=False) if rest else None)
            return Sides(bare, left, right, found)
        sides = [left, right]
        padding = _padding_side(join)
        kept = []
        for term in terms:
            read = self._read(term, left.scope + right.scope) if term.find(exp.Query) is not None else None
            if read is None:
                kept.append(term)
            elif padding is not None and read.isdisjoint(_names(sides[1 - padding])):
                _refuse_table(sides[padding], term)
                sides[padding] = self.filtered(sides[padding], term)
            else:
                kept.append(self._answered(term, sides))
        bare.set("on", exp.and_(*kept, copy=False) if kept else exp.true())
        return Sides(bare, sides[0], sides[1])

    def _answered(self, term: exp.Expr, sides: list[FromItem]) -> exp.Expr:
        """``term`` over columns that hold the answers of its subqueries, each on the side that it is about."""
        whole = self._side(term, sides)
        if whole is not None:
            return self._valued(term, whole, sides)
        alone = exp.Paren(this=term)
        for node in list(subqueries_in(alone)):
            side = self._side(node, sides)
            if side is None:
                raise Unsupported(
                    "a subquery in ON of an outer join that reads both of its sides is not supported",
                    where=place_of(node, _ON),
                    fix="let it read one side, and compare with the other outside of it: ON l.k = r.k AND l.n > "
                    "(SELECT max(n) FROM s WHERE s.k = r.k); or make the join an inner one",
                )
            node.replace(self._valued(node, side, sides))
        return alone

    def _side(self, node: exp.Expr, sides: Sequence[FromItem]) -> int | None:
        """The one side that ``node`` reads; where it reads none, the left."""
        read = self._read(node, sides[0].scope + sides[1].scope)
        of = [place for place, side in enumerate(sides) if not read.isdisjoint(_names(side))]
        return None if len(of) > 1 else of[0] if of else 0

    def _valued(self, expression: exp.Expr, place: int, sides: list[FromItem]) -> exp.Expr:
        side = sides[place]
        _refuse_table(side, expression)
        side, over_columns, values = self.subqueries.values(side, expression, _ON)
        sides[place] = replace(side, node=joined_with(side.node, values))
        return over_columns

    def _read(self, expression: exp.Expr, both: Scope) -> set[str]:
        """The columns of both sides that it reads."""
        alone = exp.Paren(this=expression.copy())
        read: set[str] = set()
        for query in list(_queries(alone)):
            read |= self.tried(query, both)
            query.replace(exp.null())
        return read | {both.find(column, _ON).internal for column in alone.find_all(exp.Column)}


def _queries(expression: exp.Expr) -> Iterator[exp.Query]:
    for node in expression.walk(prune=lambda node: isinstance(node, exp.Query)):
        if isinstance(node, exp.Query):
            yield node


def _is_inner(join: exp.Join) -> bool:
    plain = join.method.upper() not in ("ASOF", "LATEST") and event_time(join.this) is None
    return plain and kind_of(join) is JoinKind.INNER


def _padding_side(join: exp.Join) -> int | None:
    """The side, 0 or 1, of which no row leaves by itself."""
    kind = kind_of(join)
    if kind.is_existence:
        return 0 if join.side.upper() == "RIGHT" else 1
    return {JoinKind.LEFT: 1, JoinKind.RIGHT: 0}.get(kind)


def _names(side: FromItem) -> set[str]:
    return {column.internal for column in side.scope.columns}


def _refuse_table(side: FromItem, term: exp.Expr) -> None:
    if isinstance(side.node, LookupTable | Static):
        raise Unsupported(
            "a subquery in ON of an outer join about what is looked up, or read once, is not supported",
            where=place_of(term, _ON),
            fix="ask about the rows of the stream: ON l.k = r.k AND l.x IN (SELECT x FROM s); or compute it in FROM: "
            "LEFT JOIN (SELECT .. FROM table(r) WHERE ..) AS r",
        )
