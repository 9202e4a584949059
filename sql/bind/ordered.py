"""Joins that take one right row of many, and joins that wait for the right side, as they are written.

l ASOF JOIN r ON l.k = r.k AND l.t >= r.t                the nearest
l LATEST JOIN r ON l.k = r.k                             the last inserted
l JOIN r FOR SYSTEM_TIME AS OF l.t ON l.k = r.k          the version valid at l.t
.. AND lag_behind(20ms, l.t, r.t)                        answered when the right side has passed l.t by 20 ms
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from changelog.errors import SqlError, Unsupported
from changelog.schema import Kind
from joins.dataflow.ports import JoinKind, Watermark
from joins.operators.one_shot import Alignment
from sql.bind.clauses import event_time
from sql.bind.resolve import resolved
from sql.bind.scope import Scope, place_of
from sql.expressions.evaluate import plain_column, quoted
from sql.expressions.functions import function_name
from sql.expressions.predicates import conjuncts
from sql.plan.event_times import EventTimeOrigin, origin_of, with_watermark
from sql.plan.nodes import ONE_SHOT, Join, Map, Node, Scan, StaticJoin, Strategy
from sql.plan.ordered import Asof, Method, Version
from sql.query_settings import QuerySettings
from sql.syntax.intervals import milliseconds

_LAG = "lag_behind"
_LAG_FORM = f"{_LAG}(20ms, l.time, r.time)"


@dataclass(frozen=True)
class Lag:
    """``lag_behind(d, l.t, r.t)``: the two columns, in either order, and the distance."""

    columns: tuple[str, str]
    ms: int
    place: str


@dataclass(frozen=True)
class How:
    """What a JOIN says beside its kind and its condition. ``as_of``: TEMPORAL, an expression over the left row."""

    method: Method = Method.ALL
    as_of: str = ""
    lag: Lag | None = None

    @staticmethod
    def of(join: exp.Join, modifiers: Sequence[exp.Expr], left: Scope, both: Scope) -> How:
        lag = _lag(modifiers, both, place_of(join, "JOIN .. ON"))
        time = event_time(join.this)
        if time is not None:
            return How(Method.TEMPORAL, resolved(time, left, "FOR SYSTEM_TIME AS OF"), lag)
        written = join.method.upper()
        return How(Method(written) if written in (Method.ASOF, Method.LATEST) else Method.ALL, lag=lag)


def kind_of(join: exp.Join) -> JoinKind:
    if join.kind.upper() in ("SEMI", "ANTI"):
        return JoinKind(join.kind.lower())
    return JoinKind(join.side.lower()) if join.side else JoinKind.INNER


def terms_of(on: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The conditions of ON, and the modifiers among them. Raises SqlError for a modifier within a condition."""
    terms = conjuncts(on)
    modifiers = [term for term in terms if function_name(term) == _LAG]
    conditions = [term for term in terms if function_name(term) != _LAG]
    for condition in conditions:
        if any(function_name(node) == _LAG for node in condition.walk()):
            raise SqlError(
                f"{_LAG} is no condition: it says when a left row is answered",
                where=place_of(condition, "JOIN .. ON"),
                fix=f"AND {_LAG_FORM}, by itself",
            )
    return conditions, modifiers


def _lag(modifiers: Sequence[exp.Expr], scope: Scope, place: str) -> Lag | None:
    if not modifiers:
        return None
    if len(modifiers) > 1:
        raise SqlError(f"{_LAG} stands once in ON", where=place, fix="leave the second one out")
    arguments = list(modifiers[0].expressions)
    lengths = [milliseconds(argument) for argument in arguments]
    if len(arguments) == 1 and lengths[0] is not None:
        raise Unsupported(
            f"{_LAG} with a length alone would wait by the clock, and a replay would give other rows",
            where=place,
            fix=f"align by event time: {_LAG_FORM}",
        )
    columns = [argument for argument in arguments if isinstance(argument, exp.Column)]
    given = [length for length in lengths if length is not None]
    if len(arguments) != 3 or len(columns) != 2 or len(given) != 1:
        raise SqlError(f"{_LAG} takes a length of time and a column of each side", where=place, fix=_LAG_FORM)
    first, second = (scope.find(column, "JOIN .. ON").internal for column in columns)
    return Lag((first, second), _whole_ms(given[0], place), place)


def _whole_ms(length: Decimal, place: str) -> int:
    if length <= 0 or length % 1:
        raise SqlError(f"{_LAG} takes a positive length, in whole milliseconds", where=place, fix=_LAG_FORM)
    return int(length)


def refuse_ordered(how: How, kind: JoinKind, place: str) -> None:
    """What is said of a join with ``table(x)`` or with what is looked up, neither of which has an order in time."""
    if how.method != Method.ALL:
        written = f"{how.method} JOIN" if how.method != Method.TEMPORAL else f"JOIN .. {how.method}"
        shown = written if kind == JoinKind.INNER else f"{kind.upper()} {written}"
        raise Unsupported(
            f"{shown} needs a stream on both sides: table(x) is read once, and what is looked up has no order",
            where=place,
            fix=f"{written} with the stream itself, or JOIN table(x) by equalities",
        )
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        raise Unsupported(
            f"{kind.upper()} JOIN with table(x) is not supported",
            where=place,
            fix="LEFT JOIN table(x), with WHERE x.key IS NULL" if kind == JoinKind.ANTI else "JOIN table(x)",
        )
    if how.lag is not None:
        raise Unsupported(
            f"{_LAG} waits for a stream on the right: table(x), and what is looked up, is there",
            where=how.lag.place,
            fix=f"leave {_LAG} out",
        )


def ordered(join: Join, how: How, settings: QuerySettings) -> Join:
    """``join``, whose strategy is chosen, with what that needs of its sides."""
    match join.strategy:
        case Strategy.ASOF:
            keep = int(settings["keep_versions"] or 0)
            if keep < 1:
                raise SqlError(f"keep_versions cannot be {keep}", where="SETTINGS", fix="give a whole number from 1 on")
            join = replace(join, right=_versions(join.right), asof=Asof("", "", "", keep))
        case Strategy.ASOF_UPDATING:
            join = replace(join, asof=Asof("", "", "", keep_versions=0))
        case Strategy.TEMPORAL:
            join = _temporal(join, how.as_of)
    return join if how.lag is None else _aligned(join, how.lag, settings)


def _versions(right: Node) -> Node:
    """The right side of a one-shot ASOF join: an update of a keyed stream adds a version to those that are kept."""
    match right:
        case Scan() if right.stream.kind == Kind.UPSERT:
            return replace(right, stream=replace(right.stream, kind=Kind.APPEND, version=""), records=right.stream)
        case Map() | StaticJoin():
            return replace(right, input=_versions(right.input))
        case _:
            return right


# -- FOR SYSTEM_TIME AS OF l.time


def _temporal(join: Join, as_of: str) -> Join:
    left = _timed(join, as_of)
    scan, stated = _version_key(join)
    time = scan.internal(stated.column)
    deletes = f"{scan.alias}.#deleted" if pa.types.is_timestamp(scan.schema.field(time).type) else ""
    right = replace(
        scan,
        stream=replace(scan.stream, kind=Kind.APPEND, version=""),
        records=scan.stream,
        deletes=deletes,
        watermark=stated,
    )
    return replace(join, left=left, right=right, version=Version(as_of, quoted(time), deletes))


def _timed(join: Join, as_of: str) -> Node:
    """The left side, with the watermark over the time that is asked for."""
    origin = origin_of(join.left, as_of) if plain_column(as_of) is not None else None
    if origin is None or origin.shift:
        raise Unsupported(
            "FOR SYSTEM_TIME AS OF takes a column of the left stream itself",
            where=join.place,
            fix="FROM l JOIN r FOR SYSTEM_TIME AS OF l.time",
        )
    stated, name = origin.scan.stated, origin.scan.stream.name
    if stated is None or stated.column != origin.column:
        over = "has no WATERMARK" if stated is None else f"has its WATERMARK over {stated.column}"
        raise Unsupported(
            f'a left row waits until the watermark has passed {origin.column}, and "{name}" {over}',
            where=join.place,
            fix=f"declare it: WATERMARK FOR {origin.column} AS {origin.column} - INTERVAL '5 SECONDS'",
        )
    return with_watermark(join.left, stated)


def _version_key(join: Join) -> tuple[Scan, Watermark]:
    """The right side, and the watermark over the time from which its versions hold."""
    right = join.right
    fix = "CREATE TABLE r (.., PRIMARY KEY (k), WATERMARK FOR since AS since - INTERVAL '5 SECONDS')"
    if not isinstance(right, Scan) or right.trusted:
        raise Unsupported(
            "the right side of FOR SYSTEM_TIME AS OF is a table by its name: a query keeps no versions",
            where=join.place,
            fix=f"JOIN the table itself, declared with a primary key and a watermark: {fix}",
        )
    if right.stream.kind != Kind.UPSERT:
        raise Unsupported(
            f'"{right.stream.name}" has no primary key, so no record of it is a version of another',
            where=join.place,
            fix=fix,
        )
    if right.stated is None:
        raise Unsupported(
            f'"{right.stream.name}" has no WATERMARK: nothing tells from when on a version of it holds',
            where=join.place,
            fix=fix,
        )
    return right, right.stated


# -- lag_behind


def _aligned(join: Join, lag: Lag, settings: QuerySettings) -> Join:
    if join.strategy not in ONE_SHOT:
        raise Unsupported(
            f"{_LAG} is for joins that answer a left row once; this one answers anew when the right side changes",
            where=lag.place,
            fix=f"leave {_LAG} out; or ASOF JOIN, LATEST JOIN, or an append stream with a keyed one",
        )
    on_left = [column for column in lag.columns if column in join.left.schema.names]
    on_right = [column for column in lag.columns if column in join.right.schema.names]
    if len(on_left) != 1 or len(on_right) != 1:
        raise SqlError(f"{_LAG} compares a column of each side", where=lag.place, fix=_LAG_FORM)
    if not pa.types.is_timestamp(join.left.schema.field(on_left[0]).type):
        raise SqlError(f"{_LAG} compares times", where=lag.place, fix=_LAG_FORM)
    idle_ms = settings.number("join_quiesce_threshold_ms") or settings.duration_ms("idle_timeout")
    origin = _origin(join.right, on_right[0], lag.place)
    right = with_watermark(join.right, replace(_told_by(origin, 0, settings), idle_ms=idle_ms))
    left = join.left
    if idle_ms is not None:
        # A silent right side stands where the left one does: past all left rows that there are, by the lag.
        before = _origin(left, on_left[0], lag.place)
        left = left if before.scan.watermark else with_watermark(left, _told_by(before, -lag.ms, settings))
    return replace(join, left=left, right=right, alignment=Alignment(on_left[0], lag.ms))


def _origin(node: Node, column: str, place: str) -> EventTimeOrigin:
    origin = origin_of(node, quoted(column))
    if origin is None or origin.shift or not pa.types.is_timestamp(origin.type):
        raise Unsupported(f"{_LAG} compares times that are columns of two streams", where=place, fix=_LAG_FORM)
    return origin


def _told_by(origin: EventTimeOrigin, delay_ms: int, settings: QuerySettings) -> Watermark:
    """How far the rows of a scan have come: what is stated of it, else a watermark behind which no row is late."""
    known = origin.scan.watermark
    if known is not None and known.column == origin.column:
        return known
    future_ms = settings.duration_ms("max_future")
    return Watermark(origin.column, delay_ms, max_future_ms=future_ms, drops_late=False)
