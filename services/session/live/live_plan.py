"""The plan of a query with what its nodes have done, as its runner has last reported it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.joins.host.activity import Activity, NodeWork
from dovetail.joins.state.arrangement_stats import ArrangementStats
from dovetail.runtime.query_plan import plan_of
from dovetail.services.session.context import Context
from dovetail.services.session.live.lookups import Cached, KeptForLookups
from dovetail.services.session.live.watermark_texts import watermark_texts
from dovetail.sql.catalog import Query
from dovetail.sql.compile.dataflow import Stages, stages
from dovetail.sql.engines import Engine
from dovetail.sql.fragments import Fragment
from dovetail.sql.plan.explain import line_again
from dovetail.sql.plan.nodes import LookupTable, Node, Output, Scan, Shared


@dataclass(frozen=True)
class LiveNode:
    """A node of the plan.

    text      its line in EXPLAIN
    work      of a node that is a stage of its own; None: of any other, or nothing was told of it yet
    rows_out  rows that left it; None: they are not counted between this step and the next one of the same stage
    held      by part of its state; a join has ``left`` and ``right``
    cached    of a table that lookup workers look up in
    memo      rows and bytes of what they have emitted for updating rows
    watermark of an input, where it stands and which partition holds it back; '' where it has none
    """

    text: str
    work: NodeWork | None
    rows_out: int | None
    held: Mapping[str, ArrangementStats] = field(default_factory=dict)
    inputs: tuple[LiveNode, ...] = ()
    cached: Cached | None = None
    memo: tuple[int, int] | None = None
    watermark: str = ""

    @property
    def name(self) -> str:
        """The beginning of its line: what it does, and by which columns."""
        return "  ".join(self.text.split("  ")[:2])


def live_plans(context: Context, view: str) -> list[tuple[Query, LiveNode]]:
    """Of the queries that a view is cut into, upstream first. Raises UnknownName where there is none."""
    queries = context.catalog.fragments(view)
    plan = plan_of(queries[-1], context.catalog)
    workers = context.live_workers()
    return [(query, _live(query, plan.fragment(query.name), workers)) for query in queries]


def _live(query: Query, fragment: Fragment, workers: Collection[str]) -> LiveNode:
    if fragment.engine is Engine.FAUST:
        lookups = KeptForLookups.of(query.progress, workers)
        return _LookedUp(query.progress.get("counts", {}), lookups).output(fragment.output)
    activity = Activity.read(query.progress.get("activity", {}))
    written = query.progress.get("counts", {}).get("rows_out")
    return _Staged(stages(fragment.output), activity, watermark_texts(query)).output(fragment.output, written)


@dataclass(frozen=True)
class _Staged:
    """Of a fragment of Spark. Steps that keep nothing belong to the stage below them: what leaves the uppermost of them
    is what leaves the stage. Of one that several read is told once, and what leaves it of all of them together.
    """

    stages: Stages
    activity: Activity
    watermarks: Mapping[str, str]
    met: set[str] = field(default_factory=set)

    def output(self, node: Output, written: int | None) -> LiveNode:
        return LiveNode(node.line, None, written, inputs=(self._node(node.input, beneath_step=False),))

    def _node(self, node: Node, *, beneath_step: bool) -> LiveNode:
        """``beneath_step``: what leaves the node is not what leaves its stage."""
        if isinstance(node, Shared):
            if node.name in self.met:
                return LiveNode(line_again(node), None, None)
            self.met.add(node.name)
            node = node.input
        work, held = self._of(node)
        below = tuple(self._node(one, beneath_step=not self._is_stage(node)) for one in node.inputs)
        if work is None:
            return LiveNode(node.line, None, None if beneath_step else self._leaving(node), held, below)
        is_known = not beneath_step or self._is_shared(node)
        watermark = self.watermarks.get(node.alias, "") if isinstance(node, Scan) else ""
        return LiveNode(node.line, work, work.rows_out if is_known else None, held, below, watermark=watermark)

    def _is_stage(self, node: Node) -> bool:
        return any(one is node for one in (*self.stages.scans, *self.stages.operators))

    def _is_shared(self, stage: Node) -> bool:
        return stage in self.stages.shared

    def _of(self, node: Node) -> tuple[NodeWork | None, Mapping[str, ArrangementStats]]:
        """What a stage has done, and holds."""
        for number, scan in enumerate(self.stages.scans):
            if scan is node:
                return self.activity.scans.get(number), {}
        numbers = [number for number, operator in enumerate(self.stages.operators) if operator is node]
        if len(numbers) > 1:
            return self._of_steps(numbers, len(node.inputs))
        for number in numbers:
            return self.activity.nodes.get(number), self.activity.parts_of(number)
        return None, {}

    def _of_steps(self, numbers: Sequence[int], inputs: int) -> tuple[NodeWork | None, Mapping[str, ArrangementStats]]:
        """Of a node that several stages are made of: the first takes its rows in, by as many ports as it has ``inputs``
        and by further ones again; the last makes what leaves.
        """
        held = {
            f"step{step}.{part}": holding
            for step, number in enumerate(numbers, start=1)
            for part, holding in self.activity.parts_of(number).items()
        }
        works = [self.activity.nodes.get(number) for number in numbers]
        begun = [work for work in works if work is not None]
        first, last = works[0], works[-1]
        if first is None:
            return None, held
        busy_ns, batches = sum(work.busy_ns for work in begun), max(work.batches for work in begun)
        made, left = (0, 0) if last is None else (last.changes, last.rows_out)
        return NodeWork(first.rows_in[:inputs], made, left, busy_ns, batches), held

    def _leaving(self, step: Node) -> int | None:
        """The rows that have left the stage that a step belongs to."""
        while not self._is_stage(step) and step.inputs:
            step = step.inputs[0]
        work, _ = self._of(step)
        return None if work is None or self._is_shared(step) else work.rows_out


@dataclass(frozen=True)
class _LookedUp:
    """Of a fragment of the lookup workers, which count what comes in and what leaves, and tell what they keep."""

    counts: Mapping[str, int]
    lookups: KeptForLookups

    def output(self, node: Output) -> LiveNode:
        inputs = (self._node(node.input),)
        return LiveNode(node.line, None, self.counts.get("rows_out"), inputs=inputs, memo=self.lookups.memo)

    def _node(self, node: Node) -> LiveNode:
        below = tuple(self._node(one) for one in node.inputs)
        if isinstance(node, Scan):
            return LiveNode(node.line, None, self.counts.get("rows_in"))
        cached = self.lookups.tables.get(node.name) if isinstance(node, LookupTable) else None
        return LiveNode(node.line, None, None, inputs=below, cached=cached)
