"""Joins of rows that are near in time: inequalities between one time of each side become the band of a RANGE join.

    ON l.k = r.k AND l.at BETWEEN r.at AND r.at + 10s AND l.x < r.y
       key          band: 0 <= l.at - r.at <= 10 s         residual condition

A band with two bounds makes a symmetric join a RANGE join. One bound does where a watermark follows one of the columns:
then it bounds the state, else it is a condition like any other. A join of two windows, equal in their start, is one
with the band [0, 0], under the same condition; so is a join by an equality of two times that both have a watermark.

Tables have the watermark that they declare. Append streams (Timeplus rules) get one from the join: over the column of
the band, as late as the band is wide (a window is long), or as ``watermark_delay`` says. Where there is no width, where
the stream is a view, whose rows come in the order in which they were made, or where the column is a whole number, which
need not grow at all, only if that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from math import ceil

import pyarrow as pa

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import JoinKind, Watermark
from dovetail.sql.expressions.evaluate import common_type, family
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.nearness import Nearness, nearnesses, rest
from dovetail.sql.expressions.predicates import conjunction, split
from dovetail.sql.plan.closing import closing
from dovetail.sql.plan.conditions.join_side import JoinSide
from dovetail.sql.plan.conditions.window_keys import window_keys
from dovetail.sql.plan.event_times import clocked
from dovetail.sql.plan.joins import Bidirectional, Enrichment, Range
from dovetail.sql.plan.joins.range import Band, RangeState
from dovetail.sql.plan.nodes import HIDDEN, Aggregate, EventTimeOrigin, Join, Node, rebuilt
from dovetail.sql.plan.properties import rules_of, walk
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.plan.time_text import length_text, per_unit
from dovetail.sql.query_settings import QuerySettings
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import INSTANT, LOCAL
from dovetail.sql.watermarks import as_set

_BOUNDED = (2, True, 2)
"""The rank of a join both of whose sides are cleared."""
_LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI)


def bands(plan: QueryPlan) -> QueryPlan:
    """Raises SqlError or Unsupported for a band that holds nothing, is too wide, or has not the form asked for."""
    hidden = [name for below in walk(plan.rows) for name in below.schema.names if name.startswith(HIDDEN)]
    used = [int(name.removeprefix(HIDDEN)) for name in hidden if name.removeprefix(HIDDEN).isdecimal()]
    once = plan.final or plan.settings["output"] == "append"
    return plan.with_rows(_Rule(plan.settings, count(1 + max(used, default=-1)), once).of(plan.rows))


@dataclass(frozen=True)
class _Rule:
    """The rule on its way down the tree.

    numbers  those of hidden columns that are not taken
    once     rows are to leave when they are final
    """

    settings: QuerySettings
    numbers: Iterator[int]
    once: bool

    def of(self, node: Node) -> Node:
        if isinstance(node, Aggregate):
            return closing(replace(node, input=self.of(node.input)), self.settings, self.once)
        if isinstance(node, Join):
            # What answers a left row once may change afterwards.
            right = replace(self, once=self.once and not node.method.answers_once)
            return self._join(replace(node, left=self.of(node.left), right=right.of(node.right)))
        return rebuilt(node, self.of)

    def _join(self, join: Join) -> Join:
        found = self._near(join) if _symmetric(join) else None
        if found is None:
            return join
        _refuse_empty(found)
        self._refuse_wide(found)
        self._refuse_delay(found)
        return self._once(self._unlimited(found)).join

    def _near(self, join: Join) -> _RangeJoin | None:
        return self._windowed(join) or self._simultaneous(join) or self._ranged(join)

    def _windowed(self, join: Join) -> _RangeJoin | None:
        """A join of windows that the watermark closes: their equality is the band, and a key only if there is no
        other.
        """
        windows, others = window_keys(join)
        if not windows or join.left.updates or join.right.updates:
            return None
        left, right = windows[0]
        window = join.left.window_column(left)
        band = Band(left, right, 0, 0)
        first, second = join.left.column(left), join.right.column(right)
        timed = self._timed(join, band, first, second, None if window is None else window.windows.size_ms)
        if _rank(timed)[2] == 0:
            return None
        keys = others or windows[:1]
        safe = dict(zip(join.keys, join.null_safe or (False,) * len(join.keys), strict=True))
        null_safe = tuple(safe[key] for key in keys)
        return timed.with_join(replace(timed.join, keys=keys, null_safe=null_safe if any(null_safe) else ()))

    def _simultaneous(self, join: Join) -> _RangeJoin | None:
        """A join by an equality of two times, each with a watermark: a range of 0. The equality stays a key.

        Streams get no watermark by it: as late as a range of 0 is wide would be never.
        """
        if join.left.updates or join.right.updates:
            return None
        for (left, right), same in zip(join.keys, join.null_safe or (False,) * len(join.keys), strict=True):
            # NULL is as near to NULL as to no time at all.
            if same or not pa.types.is_timestamp(join.left.schema.field(left).type):
                continue
            first, second = join.left.column(left), join.right.column(right)
            timed = self._timed(join, Band(left, right, 0, 0), first, second, None)
            if _rank(timed) == _BOUNDED:
                return timed
        return None

    def _ranged(self, join: Join) -> _RangeJoin | None:
        """The join with the best of its bands: one that bounds more of the state, then one with two bounds."""
        terms = split(join.residual)
        found = [self._banded(join, near, terms) for near in nearnesses(terms, join.left.schema, join.right.schema)]
        useful = [one for one in found if one is not None and _rank(one) > (0, False, 0)]
        return max(useful, key=_rank, default=None)

    def _banded(self, join: Join, near: Nearness, terms: list[Expr]) -> _RangeJoin | None:
        wanted = _band_type(near.left.type, near.right.type, join.place)
        if wanted is None:
            return None
        lower, upper = near.bounds(per_unit(wanted))
        width = None if lower is None or upper is None else _in_watermarks(max(upper - lower, 0), wanted)
        sides = [JoinSide.of(join.left), JoinSide.of(join.right)]
        left = sides[0].column(near.left, wanted, self.numbers)
        right = sides[1].column(near.right, wanted, self.numbers)
        timed = self._timed(join, Band(left, right, lower, upper), near.left, near.right, width)
        made = replace(
            timed.join,
            left=replace(sides[0], node=timed.join.left).with_hidden(),
            right=replace(sides[1], node=timed.join.right).with_hidden(),
            residual=conjunction(rest(terms, near)),
        )
        return timed.with_join(made)

    def _timed(self, join: Join, band: Band, left: Expr, right: Expr, width: int | None) -> _RangeJoin:
        """``join`` with the band over the expressions ``left`` and ``right``, and the watermarks that follow them.

        Rows that can be taken back are kept, and what they have met: so no watermark bounds their join.
        """
        if join.left.updates or join.right.updates:
            shifted = replace(band, left_shift=None, right_shift=None)
            return _RangeJoin.of(join, Range(shifted))
        first, left_shift = self._clocked(join.left, left, width)
        second, right_shift = self._clocked(join.right, right, width)
        shifted = replace(band, left_shift=left_shift, right_shift=right_shift)
        return _RangeJoin.of(replace(join, left=first, right=second), Range(shifted))

    def _clocked(self, node: Node, time: Expr, width: int | None) -> tuple[Node, int | None]:
        """``node`` with the watermark that the expression follows, and by how much it may be behind that."""
        return clocked(node, time, lambda origin: self._given(origin, width)) or (node, None)

    def _given(self, origin: EventTimeOrigin, width: int | None) -> Watermark | None:
        """The watermark that a stream without one gets by the join."""
        scan = origin.scan
        if scan.rules != Rules.TIMEPLUS or scan.stream.kind != Kind.APPEND or scan.records is not None:
            return None
        if not self._fits(origin.whole):
            return None
        delay = self.settings.distance("watermark_delay", origin.whole)
        if delay is None:
            delay = None if scan.trusted or origin.whole else width
        if delay is None:
            return None
        return as_set(Watermark(origin.column, delay, shared=True), self.settings)

    def _fits(self, whole: bool) -> bool:
        """Whether ``watermark_delay`` is for columns of this kind: a length for times, a number for whole numbers."""
        delay = self.settings["watermark_delay"]
        return delay is None or not whole or str(delay).isdecimal()

    def _refuse_delay(self, found: _RangeJoin) -> None:
        """A delay that does not fit the band that was found: its streams would have no watermark."""
        join, whole = found.join, bool(pa.types.is_integer(found.time_type))
        appends = not join.left.updates and not join.right.updates
        if rules_of(join) == Rules.TIMEPLUS and appends and not self._fits(whole):
            self.settings.distance("watermark_delay", whole)

    def _refuse_wide(self, found: _RangeJoin) -> None:
        widest, band, kind = self.settings.number("max_join_range"), found.method.band, found.time_type
        if widest is None or not pa.types.is_timestamp(kind):
            return
        width = None if band.lower is None or band.upper is None else band.upper - band.lower
        if width is None or width * per_unit(kind) > widest * 1_000_000:
            wide = "has one bound" if width is None else f"is {length_text(width, kind)} wide"
            raise SqlError(
                f"the range of {band.left} and {band.right} {wide}, and max_join_range is {widest} s",
                where=found.join.place,
                fix="give a narrower range, or SETTINGS max_join_range = .., in seconds",
            )

    def _unlimited(self, found: _RangeJoin) -> _RangeJoin:
        """What the watermarks bound needs no limit that nobody asked for."""
        bounded = not found.state.left_open() and not found.state.right_open()
        if bounded and self.settings.number("join_max_buffered_bytes") is None:
            return found.with_join(replace(found.join, max_buffered_bytes=None))
        return found

    def _once(self, found: _RangeJoin) -> _RangeJoin:
        """``output = 'append'``: padded rows leave once."""
        if not self.once or found.join.kind in (JoinKind.INNER, JoinKind.SEMI):
            return found
        place = "SETTINGS output" if self.settings["output"] == "append" else "EMIT"
        return _RangeJoin.of(found.join, padded_once(found.join, found.method, place))


@dataclass(frozen=True)
class _RangeJoin:
    """A join with its method, which is ``method``."""

    join: Join
    method: Range

    @staticmethod
    def of(join: Join, method: Range) -> _RangeJoin:
        return _RangeJoin(replace(join, method=method), method)

    def with_join(self, join: Join) -> _RangeJoin:
        return replace(self, join=join)

    @property
    def state(self) -> RangeState:
        return self.method.bound(self.join.sides)

    @property
    def time_type(self) -> pa.DataType:
        """The type of both columns of the band."""
        return self.join.left.schema.field(self.method.band.left).type


def _symmetric(join: Join) -> bool:
    """SEMI and ANTI joins of append streams are one-shot only where no range of time says what is to come yet."""
    appends = not join.left.updates and not join.right.updates
    method = join.method
    if join.kind is JoinKind.MARK:
        return False
    one_shot = isinstance(method, Enrichment) and join.kind in _LEFT_ONLY and method.alignment is None
    return isinstance(method, Bidirectional) or (one_shot and appends)


def padded_once(join: Join, method: Range, place: str) -> Range:
    """The method of the join whose padded rows leave when nothing can match them any more. Raises Unsupported where
    this never is.
    """
    state = method.bound(join.sides)
    reasons = [state.left_open()] if join.kind != JoinKind.RIGHT else []
    reasons += [state.right_open()] if join.kind in (JoinKind.RIGHT, JoinKind.FULL) else []
    for reason in reasons:
        if reason:
            raise Unsupported(
                f"the unmatched rows of this {join.kind.value.upper()} JOIN have no append form: {reason}, so it is "
                "never known that nothing will match them",
                where=place,
                fix="give both bounds, and watermarks: WATERMARK FOR .. in the table, or SETTINGS watermark_delay for "
                "streams; or SETTINGS output = 'changelog'",
            )
    return replace(method, append=True)


def _rank(found: _RangeJoin) -> tuple[int, bool, int]:
    """How many sides are cleared, whether there are two bounds, how many columns follow a watermark."""
    state, band = found.state, found.method.band
    cleared = [state.left_open(), state.right_open()].count("")
    followed = [band.left_shift, band.right_shift]
    return cleared, band.lower is not None and band.upper is not None, 2 - followed.count(None)


def _band_type(left: pa.DataType, right: pa.DataType, place: str) -> pa.DataType | None:
    """The type in which both columns have their distance; None if they have none."""
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        return left if left == right else pa.int64()
    if family(left) != "instant" or family(right) != "instant":
        return None
    if pa.types.is_date(left) and pa.types.is_date(right):
        return LOCAL
    common = common_type(left, right, "a range", place)
    return common if pa.types.is_timestamp(common) and common.unit in ("s", "ms", "us") else INSTANT


def _in_watermarks(width: int, kind: pa.DataType) -> int:
    """A distance in the unit of watermarks: ms, or the number itself."""
    return ceil(Fraction(width * per_unit(kind), 1_000)) if pa.types.is_timestamp(kind) else width


def _refuse_empty(found: _RangeJoin) -> None:
    """Under Timeplus rules; an interval join of tables may match nothing."""
    join, band = found.join, found.method.band
    if band.lower is None or band.upper is None or band.lower <= band.upper:
        return
    if rules_of(join.left) == rules_of(join.right) == Rules.TIMEPLUS:
        lower, upper = (length_text(bound, found.time_type) for bound in (band.lower, band.upper))
        raise SqlError(
            f"nothing is in the range: {band.left} - {band.right} is to be {lower} at least and {upper} at most",
            where=join.place,
            fix="write the smaller bound first: date_diff('second', l.time, r.time) BETWEEN -2 AND 8",
        )
