"""Which join two sides make.

Timeplus rules, which hold where every stream below has them:

    left \\ right     append              keyed, changelog
    append           bidirectional       enrichment: INNER, LEFT
    keyed, changelog refused             bidirectional

RIGHT is LEFT with the sides turned. A chain of append streams alone is bidirectional throughout: an outer join of them
is updating only in that padded rows come and go. RisingWave rules: bidirectional, always.

LATEST is one-shot. So are SEMI, ANTI and MARK joins that answer the rows of an append stream under Timeplus rules;
others are bidirectional. So is ASOF where both sides have these rules and the left one is append-only; else it
updates, and keeps both sides.

A LATEST join that waits for its right side is an ASOF join by the times that it waits by.

It stands before the rules that move conditions: how far these go, and over which columns, follows from the kind of join
and from which side is the left one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from dovetail.changelog.errors import InternalError, SqlError, Unsupported
from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.comparison import comparison
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.conditions.lag import aligned
from dovetail.sql.plan.conditions.versions import temporal_sides, versions
from dovetail.sql.plan.joins import (
    Asof,
    AsofOnce,
    Bidirectional,
    Enrichment,
    JoinMethod,
    Latest,
    UnresolvedJoin,
)
from dovetail.sql.plan.joins.alignment import AlignedJoinMethod
from dovetail.sql.plan.joins.unresolved_join import LAG_BEHIND, JoinSyntax, Lag
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import ArrayJoin, Join, Map, Node, Scan, Window, rebuilt
from dovetail.sql.plan.properties import rules_of, source_of, walk
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.query_settings import APPEND_BUFFERED_BYTES, QuerySettings
from dovetail.sql.rules.join_keys import no_condition
from dovetail.sql.syntax.rules import Rules


def strategy(plan: QueryPlan) -> QueryPlan:
    """The method of each join is chosen, from what its sides are.

    Raises Unsupported for a pair of sides that makes no join, SqlError for settings that fit none.
    """
    return plan.with_rows(_below(plan.rows, plan.settings))


def _below(node: Node, settings: QuerySettings) -> Node:
    made = rebuilt(node, lambda below: _below(below, settings))
    if isinstance(node, Map) and isinstance(made, Map):
        return _passing_on(made, len(node.input.schema) if _passes_all(node) else 0)
    if isinstance(made, Join) and isinstance(made.method, UnresolvedJoin):
        return _chosen(made, made.method, settings)
    return made


def _passes_all(node: Map) -> bool:
    columns = identity(node.input)
    return node.columns[: len(columns)] == columns


def _passing_on(node: Map, before: int) -> Map:
    """``node``, whose first columns were all ``before`` of its input, with those that the input has now.

    WHERE is bound as such a Map: it must stay one that computes nothing when the sides below it turn, or gain columns.
    """
    return replace(node, columns=(*identity(node.input), *node.columns[before:])) if before else node


def _chosen(join: Join, written: UnresolvedJoin, settings: QuerySettings) -> Join:
    limited = replace(join, max_buffered_bytes=_limit(join, written.syntax, settings))
    match written.syntax:
        case JoinSyntax.ALL:
            made = _of_all(limited)
        case JoinSyntax.ASOF:
            made = _asof(limited, settings)
        case JoinSyntax.LATEST:
            made = _latest(limited)
        case JoinSyntax.TEMPORAL:
            made = _temporal(limited, written.as_of)
        case JoinSyntax.PROCESS_TIME:
            made = _with_small_table(limited)
        case _:
            assert_never(written.syntax)
    return made if written.lag is None else _aligned(made, written.lag, settings)


def _limit(join: Join, syntax: JoinSyntax, settings: QuerySettings) -> int | None:
    """A hybrid join has none: the setting says how much of it is in memory."""
    if settings.text("default_hash_join") == "hybrid":
        return None
    given = settings.number("join_max_buffered_bytes")
    if given is not None or syntax != JoinSyntax.ALL:
        return given
    unbounded = _timeplus(join) and not join.left.updates and not join.right.updates
    return APPEND_BUFFERED_BYTES if unbounded else None


def _timeplus(join: Join) -> bool:
    return rules_of(join.left) == rules_of(join.right) == Rules.TIMEPLUS


def _turned(join: Join) -> Join:
    """The sides change places, LEFT for RIGHT."""
    kind = JoinKind.LEFT if join.kind == JoinKind.RIGHT else join.kind
    return replace(join, kind=kind, left=join.right, right=join.left)


def _of_all(join: Join) -> Join:
    kind, left, right, place = join.kind, join.left, join.right, join.place
    timeplus = _timeplus(join)
    if kind.is_existence:
        once = timeplus and not left.updates
        return replace(join, method=Enrichment() if once else Bidirectional())
    if not timeplus or left.updates == right.updates or (_of_appends(left) and _of_appends(right)):
        return replace(join, method=Bidirectional())
    turned = left.updates
    wanted = JoinKind.RIGHT if turned else JoinKind.LEFT
    if kind == wanted or (kind == JoinKind.INNER and not turned):
        return replace(_turned(join) if turned else join, method=Enrichment())
    if turned:
        raise Unsupported(
            f"{kind.value.upper()} JOIN of an updating stream with an append stream is not supported: "
            "only the rows of an append stream on the left are answered",
            where=place,
            fix="put the append stream on the left, or read it as changes: changelog(stream, key)",
        )
    raise Unsupported(
        f"{kind.value.upper()} JOIN of an append stream with an updating one is not supported: "
        "each left row is answered once, so an unmatched right row never has its answer",
        where=place,
        fix="INNER JOIN or LEFT JOIN, or read the append stream as changes: changelog(stream, key)",
    )


def _of_appends(node: Node) -> bool:
    """Whether ``node`` joins nothing but append streams, symmetrically."""
    return all(
        (isinstance(part, Scan) and part.stream.kind == Kind.APPEND)
        or (isinstance(part, Join) and isinstance(part.method, Bidirectional))
        or isinstance(part, Map | Window | ArrayJoin)
        for part in walk(node)
    )


def _asof(join: Join, settings: QuerySettings) -> Join:
    if join.kind == JoinKind.FULL:
        raise Unsupported(
            "FULL ASOF JOIN is not supported: one row is the nearest of many, and the others are no worse for it",
            where=join.place,
            fix="ASOF JOIN or LEFT ASOF JOIN",
        )
    made = _turned(join) if join.kind == JoinKind.RIGHT else join
    if not _timeplus(made) or made.left.updates:
        return replace(made, method=Asof())
    _refuse_retractions(made, "ASOF JOIN")
    return replace(made, method=AsofOnce(keep_versions=_kept_versions(settings)), right=versions(made.right))


def _kept_versions(settings: QuerySettings) -> int:
    keep = int(settings["keep_versions"] or 0)
    if keep < 1:
        raise SqlError(f"keep_versions cannot be {keep}", where="SETTINGS", fix="give a whole number from 1 on")
    return keep


def _refuse_retractions(join: Join, called: str) -> None:
    """Versions are what was true at a time, and stay so; what is taken back was true at none."""
    right = source_of(join.right)
    if right is not None and right.stream.kind == Kind.CHANGELOG_KV:
        name = right.stream.name
        raise Unsupported(
            f'{called} keeps the versions of a row, and "{name}" has none: it is of kind changelog_kv, where an '
            "update takes the old row back before it gives the new one",
            where=join.place,
            fix=f"declare {name} with mode = 'versioned_kv' or as a MUTABLE STREAM, whose updates are versions; or "
            "JOIN, for the row that stands now",
        )


def _latest(join: Join) -> Join:
    made = _turned(join) if join.kind == JoinKind.RIGHT else join
    answered = [made.left, made.right] if join.kind == JoinKind.FULL else [made.left]
    if any(rules_of(side) != Rules.TIMEPLUS for side in answered):
        raise Unsupported(
            f"{_latest_join(join.kind)} answers rows once, and those of a TABLE or SOURCE are answered again "
            "whenever the other side changes",
            where=join.place,
            fix="declare what is answered with CREATE STREAM, or JOIN a TABLE whose PRIMARY KEY is the join key",
        )
    if made.left.updates and join.kind != JoinKind.FULL:
        raise Unsupported(
            f"{_latest_join(join.kind)} answers the rows of an append stream, once; those of its left side can be "
            "taken back",
            where=join.place,
            fix=f"{_answering_anew(made.right)}, or put an append stream on the left",
        )
    return replace(made, method=Latest())


def _answering_anew(right: Node) -> str:
    return "JOIN, which answers again" if right.updates else "JOIN changelog(stream, key), which answers again"


def _latest_join(kind: JoinKind) -> str:
    return "LATEST JOIN" if kind == JoinKind.INNER else f"{kind.value.upper()} LATEST JOIN"


def _temporal(join: Join, as_of: Expr | None) -> Join:
    if join.kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise Unsupported(
            f"{join.kind.value.upper()} JOIN with FOR SYSTEM_TIME AS OF is not supported: the right side is asked for "
            "its versions, not streamed, so its unmatched rows never become known",
            where=join.place,
            fix="JOIN or LEFT JOIN, with the stream whose time is asked for on the left",
        )
    if as_of is None:
        raise InternalError("FOR SYSTEM_TIME AS OF has a time")
    sides = temporal_sides(join.left, join.right, as_of, join.place)
    return replace(join, left=sides.left, right=sides.right, method=sides.method)


def _with_small_table(join: Join) -> Join:
    """A join as of PROCTIME() that nothing could be looked up by."""
    if join.kind not in (JoinKind.INNER, JoinKind.LEFT) or join.left.updates:
        side = "a left side that is updated" if join.left.updates else f"a {join.kind.value.upper()} JOIN"
        raise Unsupported(
            f"{side} with FOR SYSTEM_TIME AS OF PROCTIME() and no equality is not supported: each left row is answered "
            "once, with the rows that are there when it comes",
            where=join.place,
            fix="JOIN or LEFT JOIN with an append stream on the left; or an equality with the primary key: "
            "ON l.key = r.key",
        )
    return replace(join, method=Enrichment(everywhere=True))


def _aligned(join: Join, lag: Lag, settings: QuerySettings) -> Join:
    method: JoinMethod = join.method
    if isinstance(method, Latest) and join.kind != JoinKind.FULL:
        return _latest_as_of(join, lag, settings)
    if isinstance(method, AlignedJoinMethod):
        sides = aligned(join.left, join.right, lag, settings)
        return replace(join, left=sides.left, right=sides.right, method=replace(method, alignment=sides.alignment))
    raise Unsupported(
        f"{LAG_BEHIND} is for joins that answer a left row once; this one answers again when the right side changes",
        where=lag.place,
        fix=f"leave {LAG_BEHIND} out; or ASOF JOIN, LATEST JOIN, or an append stream with a keyed one",
    )


def _latest_as_of(join: Join, lag: Lag, settings: QuerySettings) -> Join:
    """LATEST as of the time of a left row that waits: the last of the right rows that are not after it."""
    for term in join.on:
        found = comparison(term, join.left.schema, join.right.schema)
        if found is None or found.operator not in ("=", "is"):
            raise no_condition(join, term)
    _refuse_retractions(join, f"LATEST JOIN with {LAG_BEHIND}")
    sides = aligned(join.left, versions(join.right), lag, settings)
    left_time = sides.alignment.left_time
    (right_time,) = (column for column in lag.columns if column != left_time)
    not_after = exp.GTE(
        this=sides.left.column(left_time).tree.copy(), expression=sides.right.column(right_time).tree.copy()
    )
    return replace(
        join,
        left=sides.left,
        right=sides.right,
        on=(*join.on, Expr.condition(not_after)),
        method=AsofOnce(keep_versions=_kept_versions(settings), alignment=sides.alignment),
    )
