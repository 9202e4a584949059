"""From the logical plan to a Dataflow: Scan, Keyed and Join become stages, what lies between them their transforms."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import TIME
from dovetail.joins.dataflow.graph import Dataflow, Edge, OperatorNode, Outlet, Sink, TopicScan
from dovetail.joins.dataflow.ports import Transform
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.sql.compile.delta_stages import DeltaStage, delta_stages
from dovetail.sql.compile.operators import operator_of
from dovetail.sql.compile.transforms import transform_of
from dovetail.sql.expressions.evaluate import RowMap, quoted
from dovetail.sql.expressions.expression import Expr, column_named
from dovetail.sql.expressions.predicates import conjunction
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.nodes import (
    Chained,
    DeltaJoin,
    Exchanged,
    Join,
    Node,
    Output,
    Scan,
    Shared,
    StaticJoin,
    UnionAll,
)
from dovetail.sql.plan.nodes.upserts import UPSERTS
from dovetail.sql.transforms.version_step import VersionStep


def dataflow(plan: Output) -> Dataflow:
    """The physical plan."""
    return _Compiler(plan.hybrid).output(plan)


@dataclass(frozen=True)
class Stages:
    """The nodes of a plan that are stages of its dataflow, in the order in which that has them."""

    scans: tuple[Scan, ...]
    operators: tuple[Node, ...]
    shared: tuple[Node, ...] = ()
    """Of these operators: those that several read."""


def stages(plan: Output) -> Stages:
    """Of ``dataflow(plan)``."""
    compiler = _Compiler(plan.hybrid)
    compiler.output(plan)
    several = (
        len(stage.outlets) > 1 and not isinstance(operated, DeltaJoin)
        for stage, operated in zip(compiler.stages, compiler.operated, strict=True)
    )
    return Stages(
        tuple(compiler.scanned), tuple(compiler.operated), tuple(itertools.compress(compiler.operated, several))
    )


_INSERTED = Expr.condition(exp.GT(this=column_named(DELTA), expression=exp.Literal.number(0)))


@dataclass(frozen=True)
class _Stream:
    """Rows on their way: where they come from, and the transforms collected since."""

    source: Node
    inputs: tuple[int, ...]
    level: int
    schema: pa.Schema
    transforms: tuple[Transform, ...] = ()

    def then(self, transform: Transform, schema: pa.Schema) -> _Stream:
        return _Stream(self.source, self.inputs, self.level, schema, (*self.transforms, transform))


@dataclass
class _Compiler:
    hybrid: HybridState | None
    scans: list[TopicScan] = field(default_factory=list)
    stages: list[OperatorNode] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    scanned: list[Scan] = field(default_factory=list)
    operated: list[Node] = field(default_factory=list)
    shared: dict[str, _Stream] = field(default_factory=dict)
    """The rows of shared operators, by name."""

    def output(self, plan: Output) -> Dataflow:
        rows = self._stream(plan.input)
        select = selection(plan)
        stream = rows.then(select, select.schema)
        level = max((stage.level for stage in self.stages), default=0)
        level = max(level, rows.level)
        edge = self._emit(stream, plan.key, level + 1)
        snapshots = tuple(dict.fromkeys(self.snapshots))
        sink = sink_of(plan, edge)
        return Dataflow(
            tuple(self.scans), tuple(self.stages), tuple(self.edges), sink, snapshots, period_ms=plan.period_ms
        )

    def _stream(self, node: Node) -> _Stream:
        if isinstance(node, Shared):
            if node.name not in self.shared:
                self.shared[node.name] = self._stream(node.input)
            return self.shared[node.name]
        if isinstance(node, Scan):
            return _scanned(node)
        if isinstance(node, Chained):
            self.snapshots += node.static.relations if isinstance(node, StaticJoin) else ()
            return self._stream(node.input).then(transform_of(node), node.schema)
        if isinstance(node, DeltaJoin):
            return self._delta_join(node)
        if isinstance(node, Exchanged):
            return self._operator(node)
        raise InternalError(f"no stage for {type(node).__name__}")

    def _operator(self, node: Exchanged) -> _Stream:
        inputs = [(self._stream(one.node), one) for one in node.exchanges]
        level = 1 + max(rows.level for rows, _ in inputs)
        edges = tuple(self._emit(rows, one.keys, level, one.broadcast) for rows, one in inputs)
        return _Stream(node, edges, level, node.schema)

    def _delta_join(self, join: DeltaJoin) -> _Stream:
        """A step is a stage; what it makes goes on by an edge for each path."""
        inputs = [self._stream(part) for part in join.inputs]
        level = max(rows.level for rows in inputs)
        paths = inputs
        *before, last = delta_stages(join)
        for stage in before:
            level += 1
            made = _Stream(join, self._of_step(stage, inputs, paths, level), level, join.schema)
            self._begin(made, stage.operator)
            paths = [made.then(one, one.of(join.schema)) for one in stage.leaving]
        level += 1
        return _Stream(join, self._of_step(last, inputs, paths, level), level, join.schema)

    def _of_step(
        self, stage: DeltaStage, inputs: Sequence[_Stream], paths: Sequence[_Stream], level: int
    ) -> tuple[int, ...]:
        sources = ((paths if part.on_path else inputs)[part.number] for part in stage.parts)
        return tuple(self._emit(rows, part.keys, level) for rows, part in zip(sources, stage.parts, strict=True))

    def _emit(self, stream: _Stream, keys: tuple[str, ...], level: int, broadcast: bool = False) -> int:
        """The edge that the rows of ``stream`` leave by; their scan or stage is there with it."""
        edge = Edge(id=len(self.edges), level=level, keys=keys, broadcast=broadcast)
        self.edges.append(edge)
        source = stream.source
        if isinstance(source, Scan):
            self.scans.append(scan_stage(source, stream.transforms, edge.id))
            self.scanned.append(source)
            return edge.id
        begun = (place for place, made in enumerate(self.stages) if made.inputs == stream.inputs)
        place = next(begun, None)
        if place is None:
            place = self._begin(stream, operator_of(source))
        made = self.stages[place]
        self.stages[place] = replace(made, outlets=(*made.outlets, Outlet(edge.id, stream.transforms)))
        return edge.id

    def _begin(self, stream: _Stream, operator: OperatorSpec) -> int:
        """The number of the stage that makes the rows of ``stream``; nobody reads them yet."""
        source = stream.source
        memory = None if self.hybrid is None else source.memory(self.hybrid)
        self.stages.append(OperatorNode(stream.level, operator, stream.inputs, (), _clock(source), memory))
        self.operated.append(source)
        return len(self.stages) - 1


def _clock(source: Node) -> tuple[int, ...]:
    """By input, how much less than its watermark a time may be that leaves; empty where no watermark goes on."""
    if isinstance(source, Join):
        return source.method.clock_shifts(source.sides) or ()
    return source.shifts if isinstance(source, UnionAll) else ()


def selection(plan: Output) -> RowMap:
    """The step that computes the columns of the output, those of its key besides."""
    columns = (*plan.columns, *plan.hidden)
    schema = pa.schema([pa.field(name, expr.type) for name, expr in columns])
    return RowMap(tuple((name, expr.text) for name, expr in columns), schema)


def sink_of(plan: Output, edge: int) -> Sink:
    return Sink(
        edge=edge,
        columns=tuple(name for name, _ in plan.columns),
        key=plan.key,
        key_names=plan.key_names,
        updating=plan.updating or plan.marked,
        exchanged=plan.exchanged,
        format=plan.format,
        clock=() if plan.clock is None else plan.clock.behind,
        grid=(1, 0) if plan.clock is None else plan.clock.grid,
        value_format=plan.value_format,
        key_format=plan.key_format,
    )


def _scanned(scan: Scan) -> _Stream:
    return _Stream(scan, (), 0, scan.schema, (scan_transform(scan), *_versions(scan)))


def scan_transform(scan: Scan) -> RowMap:
    """The first step on decoded rows: internal names, the condition."""
    declared = {internal: Expr.column(name, scan.schema.field(internal).type) for internal, name in scan.columns}
    select = tuple((internal, quoted(name)) for internal, name in scan.columns)
    terms = [scan.where.substituted(declared)] if scan.where is not None else []
    if scan.records is not None and not scan.deletes:
        terms.append(_INSERTED)
    where = conjunction(terms)
    on_reject: Literal["drop", "delete"] = "delete" if scan.stream.kind in UPSERTS else "drop"
    schema = pa.schema([scan.schema.field(internal) for internal, _ in scan.columns])
    return RowMap(select, schema, None if where is None else where.text, on_reject)


def _versions(scan: Scan) -> tuple[Transform, ...]:
    """The step that makes versions of deletes too, if they are to count."""
    if not scan.deletes or scan.watermark is None:
        return ()
    return (VersionStep(scan.internal(scan.watermark.column), scan.internal(TIME), scan.deletes),)


def scan_stage(scan: Scan, transforms: tuple[Transform, ...], edge: int) -> TopicScan:
    stream = scan.records or scan.stream
    return TopicScan(
        # What a query writes is in the form of its column: no text of it needs a look.
        stream=replace(stream, columns=tuple(replace(one, form="") for one in stream.columns))
        if scan.trusted
        else stream,
        topic=scan.topic,
        columns=tuple(name for _, name in scan.columns),
        transforms=transforms,
        edge=edge,
        watermark=scan.watermark,
        starts_latest=scan.latest,
        start_offsets=scan.seek,
        alias=scan.alias,
    )
