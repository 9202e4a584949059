"""From the logical plan of a lookup fragment to a LookupFlow: each LookupJoin a stage, what lies between transforms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import TIME
from dovetail.joins.dataflow.graph import TopicScan
from dovetail.joins.dataflow.lookup import Access, LookupFlow, LookupJoinSpec, LookupStage, LookupTarget
from dovetail.joins.dataflow.ports import Ingest, Pad, Transform
from dovetail.sql.compile.dataflow import scan_stage, scan_transform, selection, sink_of
from dovetail.sql.compile.ports import port_of
from dovetail.sql.compile.transforms import transform_of
from dovetail.sql.expressions.evaluate import Condition
from dovetail.sql.plan.nodes import Chained, LookupJoin, LookupTable, Node, Output, Scan, StaticJoin
from dovetail.sql.transforms.static_join_step import default_of

_SCANNED, _SUNK = 0, 1
"""The edges of a flow."""


def lookup_flow(plan: Output) -> LookupFlow:
    """The physical plan."""
    return _Compiler().output(plan)


@dataclass
class _Compiler:
    """``transforms`` are those after the last of ``stages``, or after the scan."""

    scan: TopicScan | None = None
    input: Node | None = None
    stages: list[LookupStage] = field(default_factory=list)
    transforms: list[Transform] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)

    def output(self, plan: Output) -> LookupFlow:
        self._rows(plan.input)
        self.transforms.append(selection(plan))
        self._close()
        if self.scan is None or self.input is None:
            raise InternalError(f'"{plan.name}" looks nothing up')
        ingest, identity = _read_as(self.input)
        return LookupFlow(
            scan=self.scan,
            stages=tuple(self.stages),
            sink=sink_of(plan, _SUNK),
            ingest=ingest,
            identity=identity,
            snapshots=tuple(dict.fromkeys(self.snapshots)),
        )

    def _rows(self, node: Node) -> None:
        if isinstance(node, Scan):
            self.scan = scan_stage(node, (), _SCANNED)
            self.transforms.append(scan_transform(node))
        elif isinstance(node, LookupJoin):
            self._rows(node.input)
            self.input = self.input or node.input
            self._close()
            self.stages.append(LookupStage(_join(node)))
        elif isinstance(node, Chained):
            self._rows(node.input)
            self.snapshots += node.static.relations if isinstance(node, StaticJoin) else ()
            self.transforms.append(transform_of(node))
        else:
            raise InternalError(f"no stage for {type(node).__name__} in a lookup")

    def _close(self) -> None:
        """What was collected belongs to the last stage, or to the scan."""
        if self.stages:
            self.stages[-1] = replace(self.stages[-1], transforms=tuple(self.transforms))
        elif self.scan is not None:
            self.scan = replace(self.scan, transforms=tuple(self.transforms))
        self.transforms = []


def _read_as(node: Node) -> tuple[Ingest, tuple[str, ...]]:
    """What the rows are that reach the first lookup, and the columns by which a retraction finds its row."""
    if not node.updates:
        return Ingest.APPEND, ()
    port = port_of(node, ())
    return port.ingest, port.primary_key or port.identity or tuple(node.schema.names)


def _join(node: LookupJoin) -> LookupJoinSpec:
    return LookupJoinSpec(
        kind=node.kind,
        access=_access(node),
        keys=tuple(left for left, _ in node.keys),
        columns=node.table.columns,
        schema=node.table.schema,
        padding=tuple(_padding(node, dict(node.padding))),
        mark=node.mark,
        condition=Condition(node.residual.text) if node.residual is not None else None,
    )


def _access(node: LookupJoin) -> Access:
    columns = [column for column in node.table.declared if column.name != TIME or _asks_time(node.table)]
    return Access(
        target=node.table.target,
        table=node.table.name,
        by=tuple(name for _, name in node.keys),
        columns=tuple(column.name for column in columns),
        types=tuple(column.type for column in columns),
        index=node.index,
    )


def _asks_time(table: LookupTable) -> bool:
    """``_tp_time`` of a stream is kept where it is asked for; of a dictionary it is a column like any other."""
    return table.target != LookupTarget.STREAM or any(name == TIME for _, name in table.columns)


def _padding(node: LookupJoin, given: Mapping[str, Any]) -> list[Any]:
    return [given.get(column.name, _pad(column.type, node.pad)) for column in node.table.schema]


def _pad(kind: pa.DataType, pad: Pad) -> Any:
    return default_of(kind).as_py() if pad == Pad.DEFAULT else None
