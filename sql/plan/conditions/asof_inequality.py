"""The one inequality of an ASOF join, and how far apart its two sides may be.

    ON l.k = r.k AND l.t >= r.t AND l.t <= r.t + 10s
       key           inequality     tolerance: 10 s

The one-shot join tests what else is in ON on each candidate, nearest first, so a tolerance is a condition like any
other there. The updating join finds the nearest row in an index and tests nothing: it takes a tolerance alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.wording import type_words
from dovetail.sql.expressions.comparison import Comparison, comparison
from dovetail.sql.expressions.evaluate import common_type
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.nearness import Nearness, nearnesses, rest
from dovetail.sql.expressions.predicates import conjunction
from dovetail.sql.plan.conditions.join_side import JoinSide
from dovetail.sql.plan.joins.asof import Asof
from dovetail.sql.plan.joins.asof_once import AsofOnce
from dovetail.sql.plan.joins.inequality import TimeInequality
from dovetail.sql.plan.nodes import Join
from dovetail.sql.plan.time_text import per_unit
from dovetail.sql.syntax.types import LOCAL

_FORM = "ON l.key = r.key AND l.time >= r.time"


@dataclass(frozen=True)
class _Inequality:
    """A term of ON as a comparison; ``near`` where it is one of two times or whole numbers."""

    term: Expr
    written: Comparison
    near: Nearness | None

    @property
    def bare(self) -> bool:
        """Whether it compares two columns as they are."""
        return self.near is not None and self.near.limits[0][1] == 0

    def of_pair(self, near: Nearness) -> bool:
        """Whether ``near`` speaks of the same two columns."""
        return self.near is not None and (self.near.left, self.near.right) == (near.left, near.right)


def with_nearest_once(
    join: Join, method: AsofOnce, left: JoinSide, right: JoinSide, terms: Sequence[Expr], numbers: Iterator[int]
) -> Join:
    """``join``, a one-shot ASOF join, with its inequality, whose columns are computed where they are none, and with its
    residual condition.

    terms  what is in ON beside the equalities
    """
    chosen, tolerance, beside = _parts(join, left, right, terms)
    made = _columns(join, left, right, chosen, tolerance is not None, numbers)
    if second := _inequalities(left, right, beside):
        raise _not_one(join, 1 + len(second))
    residual = conjunction([term for term in terms if term != chosen.term])
    return replace(join, method=replace(method, inequality=made), residual=residual)


def with_nearest(
    join: Join, method: Asof, left: JoinSide, right: JoinSide, terms: Sequence[Expr], numbers: Iterator[int]
) -> Join:
    """As ``with_nearest_once``, of the join that updates: with a tolerance in place of a residual condition."""
    chosen, tolerance, beside = _parts(join, left, right, terms)
    made = _columns(join, left, right, chosen, tolerance is not None, numbers)
    if beside:
        raise _condition(join, left, right, beside[0])
    kind = right.with_hidden().schema.field(made.right).type
    distance = None if tolerance is None else _distance(join, chosen, tolerance, made.looks_back, kind)
    tie_breaks = next(iter(join.right.unique_keys), ())
    nearest = replace(method, inequality=made, tie_breaks=tie_breaks, tolerance=distance)
    return replace(join, method=nearest, residual=None)


def _parts(
    join: Join, left: JoinSide, right: JoinSide, terms: Sequence[Expr]
) -> tuple[_Inequality, Nearness | None, list[Expr]]:
    """The inequality, the range of its two columns that stands beside it, if any, and the other terms."""
    chosen = _chosen(join, left, right, terms)
    others = [term for term in terms if term != chosen.term]
    tolerance = next((near for near in _near(others, left, right) if chosen.of_pair(near)), None)
    return chosen, tolerance, others if tolerance is None else rest(others, tolerance)


def _chosen(join: Join, left: JoinSide, right: JoinSide, terms: Sequence[Expr]) -> _Inequality:
    """The inequality: the only one, or of several the only one that compares the columns as they are."""
    found = _inequalities(left, right, terms)
    if len(found) > 1:
        bare = [one for one in found if one.bare]
        found = bare if len(bare) == 1 else found
    if len(found) != 1:
        raise _not_one(join, len(found))
    return found[0]


def _inequalities(left: JoinSide, right: JoinSide, terms: Sequence[Expr]) -> list[_Inequality]:
    found = []
    for term in terms:
        written = comparison(term, left.node.schema, right.node.schema)
        if written is not None and written.operator in ("<", "<=", ">", ">="):
            found.append(_Inequality(term, written, next(iter(_near([term], left, right)), None)))
    return found


def _near(terms: Sequence[Expr], left: JoinSide, right: JoinSide) -> list[Nearness]:
    return nearnesses(terms, left.node.schema, right.node.schema)


def _columns(
    join: Join, left: JoinSide, right: JoinSide, chosen: _Inequality, measured: bool, numbers: Iterator[int]
) -> TimeInequality:
    """The inequality between columns of one type; ``measured``: their distance counts too, so dates become instants."""
    written = chosen.written
    kind = common_type(written.left.type, written.right.type, written.readable, join.place)
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        raise SqlError(
            f"an ASOF join orders by a number or a time, not by {type_words(kind)}: {written.readable}",
            where=join.place,
            fix="compare time columns in the inequality",
        )
    if measured and pa.types.is_date(kind):
        kind = LOCAL
    return TimeInequality(
        left=left.column(written.left, kind, numbers),
        comparison=written.operator,
        right=right.column(written.right, kind, numbers),
    )


def _distance(join: Join, chosen: _Inequality, tolerance: Nearness, looks_back: bool, kind: pa.DataType) -> int:
    """The greatest distance of the columns of the inequality, in their unit."""
    unit = per_unit(kind)
    lower, upper = tolerance.bounds(unit)
    shift = int(chosen.near.limits[0][1] / unit) if chosen.near is not None else 0
    nearest, furthest = (lower, upper) if looks_back else (upper, lower)
    sign = 1 if looks_back else -1
    if furthest is None or (nearest is not None and sign * (nearest - shift) > 0):
        raise Unsupported(
            "beside its inequality an ASOF join takes how far away the nearest row may be, no least distance",
            where=join.place,
            fix=f"{_FORM} AND date_diff_within(10s, l.time, r.time)",
        )
    distance = sign * (furthest - shift)
    if distance < 0:
        raise SqlError(
            "nothing is so near: the range excludes every row that the inequality allows",
            where=join.place,
            fix=f"{_FORM} AND date_diff_within(10s, l.time, r.time)",
        )
    return distance


def _not_one(join: Join, count: int) -> Unsupported:
    return Unsupported(
        f"an ASOF join takes exactly one inequality of a left and a right column; here {_are(count)}",
        where=join.place,
        fix=f"{_FORM}; it may be combined with a range of the same two columns: date_diff_within(10s, l.time, r.time)",
    )


def _are(count: int) -> str:
    return {0: "are none", 1: "is one"}.get(count, f"are {count}")


def _condition(join: Join, left: JoinSide, right: JoinSide, term: Expr) -> Unsupported:
    """Whether the row is chosen among those that fulfil it, or has to fulfil it, would be anybody's guess."""
    read = set(term.columns)
    one_sided = read <= left.names or read <= right.names
    return Unsupported(
        f"a condition {'on one side only' if one_sided else 'of its own'} is not allowed beside the equalities and the "
        f"single inequality of an ASOF join that updates: {term.readable}",
        where=join.place,
        fix="write it in WHERE, where it is tested on the row that was chosen, or filter the right side in a subquery",
    )
