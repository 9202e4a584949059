"""A query on its way through the rules: what they take and what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.join_order import JoinOrder
from dovetail.sql.plan.nodes import Node, Output
from dovetail.sql.plan.state.delta_choice import DeltaChoice
from dovetail.sql.query_settings import QuerySettings
from dovetail.sql.relations import Sizes, Stream


@dataclass(frozen=True)
class QueryPlan:
    """What a query reads, joins and groups, and what it selects of that.

    rows      the tree; once it is cut, that of the last fragment
    columns   the output columns, over ``rows``
    marked    it asks for ``_tp_delta`` even where no row can be taken back
    final     its rows are to leave when they are final (EMIT ON WINDOW CLOSE)
    delay_ms  so much longer they wait than until they are final (WITH DELAY)
    period_ms  what changes leaves so often at most (EMIT PERIODIC)
    limit     it ends after so many changes; None: never
    target    the stream that it writes INTO; None: a topic of its own
    emits_watermark  others may read that topic: it tells the watermark of its rows
    sizes     about how many records its topics have; None: nobody is to ask
    orders    of chains of joins that are not in the order of the text
    deltas    chains of joins that are delta joins
    upstream  the fragments before the last, the first of them first; none before the rule ``split_fragments``
    output    what leaves the last one; None before the rule ``sink``
    """

    name: str
    rows: Node
    columns: tuple[tuple[str, Expr], ...]
    settings: QuerySettings
    marked: bool = False
    final: bool = False
    delay_ms: int = 0
    period_ms: int = 0
    limit: int | None = None
    target: Stream | None = None
    emits_watermark: bool = False
    sizes: Sizes | None = None
    orders: tuple[JoinOrder, ...] = ()
    deltas: tuple[DeltaChoice, ...] = ()
    upstream: tuple[Output, ...] = ()
    output: Output | None = None

    def with_rows(self, rows: Node) -> QueryPlan:
        return replace(self, rows=rows)

    def with_fragments(self, rewritten: Callable[[Output], Output]) -> QueryPlan:
        """Each fragment that there is as ``rewritten`` makes it."""
        output = None if self.output is None else rewritten(self.output)
        return replace(self, upstream=tuple(map(rewritten, self.upstream)), output=output)

    @property
    def fragments(self) -> tuple[Output, ...]:
        """All of them, upstream first; complete when all rules have run."""
        return self.upstream if self.output is None else (*self.upstream, self.output)
