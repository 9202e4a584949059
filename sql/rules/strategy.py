"""Which join two sides make.

Timeplus rules, which hold where every stream below has them:

    left \\ right     append              keyed, changelog
    append           bidirectional       enrichment: INNER, LEFT
    keyed, changelog refused             bidirectional

RIGHT is LEFT with the sides turned. A chain of append streams alone is bidirectional throughout: an outer join of them
is updating only in that padded rows come and go. RisingWave rules: bidirectional, always.
"""

from __future__ import annotations

from dataclasses import dataclass

from changelog.errors import Unsupported
from changelog.schema import Kind
from joins.dataflow import JoinKind
from sql.plan import Join, Map, Node, Scan, Strategy, changes, rules_of, walk
from sql.types import Rules


@dataclass(frozen=True)
class Choice:
    """``turned``: the sides change places, LEFT for RIGHT."""

    strategy: Strategy
    turned: bool = False


def choose(kind: JoinKind, left: Node, right: Node, asof: bool, place: str) -> Choice:
    """Raises Unsupported for a pair of sides that makes no join; ``place`` says where it is written."""
    if asof:
        return _asof(kind, left, right, place)
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
        or isinstance(part, Map)
        for part in walk(node)
    )


def _asof(kind: JoinKind, left: Node, right: Node, place: str) -> Choice:
    if rules_of(left) != Rules.TIMEPLUS or rules_of(right) != Rules.TIMEPLUS or changes(left):
        raise Unsupported(
            "this release runs ASOF JOIN for an append stream on the left, under Timeplus rules only",
            where=place,
            fix="declare the inputs with CREATE STREAM, or join by an equality",
        )
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise Unsupported(
            f"{kind.value.upper()} ASOF JOIN is not supported", where=place, fix="ASOF JOIN or LEFT ASOF JOIN"
        )
    return Choice(Strategy.ASOF)
