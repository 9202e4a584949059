"""Which join two sides make.

Timeplus rules, which hold where every stream below has them:

    left \\ right     append              keyed, changelog
    append           bidirectional       enrichment: INNER, LEFT
    keyed, changelog refused             bidirectional

RIGHT is LEFT with the sides turned. A chain of append streams alone is bidirectional throughout: an outer join of them
is updating only in that padded rows come and go. RisingWave rules: bidirectional, always.

SEMI, ANTI and LATEST are one-shot: they answer the rows of an append stream under Timeplus rules; other SEMI and ANTI
joins must turn out to be of rows near in time (the rule ``bands``). So does ASOF where
both sides have these rules and the left one is append-only; else it updates, and keeps both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

from changelog.errors import Unsupported
from changelog.schema import Kind
from joins.dataflow.ports import JoinKind
from sql.plan.nodes import Join, Map, Node, Scan, Strategy, Window
from sql.plan.ordered import Method
from sql.plan.properties import changes, rules_of, walk
from sql.syntax.types import Rules


@dataclass(frozen=True)
class Choice:
    """``turned``: the sides change places, LEFT for RIGHT."""

    strategy: Strategy
    turned: bool = False


def choose(kind: JoinKind, left: Node, right: Node, method: Method, place: str) -> Choice:
    """Raises Unsupported for a pair of sides that makes no join; ``place`` says where it is written."""
    match method:
        case Method.ASOF:
            return _asof(kind, left, right, place)
        case Method.LATEST:
            return _latest(kind, left, right, place)
        case Method.TEMPORAL:
            return _temporal(kind, place)
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        once = rules_of(left) == rules_of(right) == Rules.TIMEPLUS and not changes(left)
        return Choice(Strategy.ENRICHMENT if once else Strategy.BIDIRECTIONAL)
    timeplus = rules_of(left) == rules_of(right) == Rules.TIMEPLUS
    if not timeplus or changes(left) == changes(right) or (_of_appends(left) and _of_appends(right)):
        return Choice(Strategy.BIDIRECTIONAL)
    turned = changes(left)
    wanted = JoinKind.RIGHT if turned else JoinKind.LEFT
    if kind == wanted or (kind == JoinKind.INNER and not turned):
        return Choice(Strategy.ENRICHMENT, turned)
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
        or (isinstance(part, Join) and part.strategy == Strategy.BIDIRECTIONAL)
        or isinstance(part, Map | Window)
        for part in walk(node)
    )


def _asof(kind: JoinKind, left: Node, right: Node, place: str) -> Choice:
    turned = kind == JoinKind.RIGHT
    if turned:
        left, right = right, left
    if kind == JoinKind.FULL:
        raise Unsupported(
            "FULL ASOF JOIN is not supported: one row is the nearest of many, and the others are no worse for it",
            where=place,
            fix="ASOF JOIN or LEFT ASOF JOIN",
        )
    once = rules_of(left) == rules_of(right) == Rules.TIMEPLUS and not changes(left)
    return Choice(Strategy.ASOF if once else Strategy.ASOF_UPDATING, turned)


def _latest(kind: JoinKind, left: Node, right: Node, place: str) -> Choice:
    turned = kind == JoinKind.RIGHT
    if turned:
        left, right = right, left
    answered = [left, right] if kind == JoinKind.FULL else [left]
    if any(rules_of(side) != Rules.TIMEPLUS for side in answered):
        raise Unsupported(
            f"{_written(kind, 'LATEST')} answers rows once, and those of a TABLE or SOURCE are answered anew "
            "whenever the other side changes",
            where=place,
            fix="declare what is answered with CREATE STREAM, or JOIN a TABLE whose PRIMARY KEY is the join key",
        )
    if changes(left) and kind != JoinKind.FULL:
        raise Unsupported(
            f"{_written(kind, 'LATEST')} answers the rows of an append stream, once; those of its left side can be "
            "taken back",
            where=place,
            fix="JOIN, which answers anew, or put an append stream on the left",
        )
    return Choice(Strategy.LATEST, turned)


def _temporal(kind: JoinKind, place: str) -> Choice:
    if kind in (JoinKind.INNER, JoinKind.LEFT):
        return Choice(Strategy.TEMPORAL)
    raise Unsupported(
        f"{kind.value.upper()} JOIN with FOR SYSTEM_TIME AS OF is not supported: the right side is asked for its "
        "versions, not streamed, so its unmatched rows never become known",
        where=place,
        fix="JOIN or LEFT JOIN, with the stream whose time is asked for on the left",
    )


def answered_anew(kind: JoinKind, place: str) -> Unsupported:
    """SEMI and ANTI, where neither the rules nor a range of time say when a left row has its answer."""
    other = "JOIN, with a stream that is unique by the key" if kind == JoinKind.SEMI else "LEFT JOIN"
    where = ", with WHERE r.key IS NULL" if kind == JoinKind.ANTI else ""
    return Unsupported(
        f"{kind.value.upper()} JOIN of rows that are answered anew is not supported in this release: only those of an "
        "append stream, which are answered once, and of rows near in time",
        where=place,
        fix=f"{other}{where}; or add a range of time: AND l.time BETWEEN r.time AND r.time + INTERVAL '1' MINUTE; or "
        "declare both sides with CREATE STREAM, the left one append-only",
    )


def _written(kind: JoinKind, method: str) -> str:
    return f"{method} JOIN" if kind == JoinKind.INNER else f"{kind.value.upper()} {method} JOIN"
