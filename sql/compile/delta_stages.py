"""The steps of a delta join as operators: which ports they have, and what leaves by each path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.operators.delta_joins.delta_step import DeltaProbe, DeltaStepSpec, EqualColumns, KeptPart
from dovetail.joins.operators.delta_joins.on_path import OnPath
from dovetail.joins.operators.multiway import ResidualCondition
from dovetail.sql.compile.operators import operator_of
from dovetail.sql.compile.ports import port_of
from dovetail.sql.expressions.evaluate import Condition
from dovetail.sql.plan.nodes import DeltaJoin
from dovetail.sql.plan.nodes.delta_steps import DeltaStep, InputCopy, PathStep


@dataclass(frozen=True)
class StepPart:
    """What comes by a port of a step, by ``keys``: the rows of the input of that number, or those that the step before
    has made ``on_path``.
    """

    keys: tuple[str, ...]
    number: int
    on_path: bool = False


@dataclass(frozen=True)
class DeltaStage:
    """A step. ``leaving``: by path, what is told apart of the rows that it makes; none behind the last one."""

    operator: DeltaStepSpec
    parts: tuple[StepPart, ...]
    leaving: tuple[OnPath, ...] = ()


@operator_of.register
def _last_step(join: DeltaJoin) -> OperatorSpec:
    return delta_stages(join)[-1].operator


def delta_stages(join: DeltaJoin) -> list[DeltaStage]:
    steps = join.steps
    return [_stage(join, steps[number], number + 1, last=number + 1 == len(steps)) for number in range(len(steps))]


def _stage(join: DeltaJoin, step: DeltaStep, number: int, last: bool) -> DeltaStage:
    parts = [StepPart(one.probe_columns, one.path, on_path=number > 1) for one in step.paths]
    kept: list[KeptPart] = []
    for copy in step.copies:
        # Of two copies by the same columns one may have NULL for a key and the other not: each has a part of its own.
        part, taken = StepPart(copy.keys, copy.input), {one.place for one in kept}
        free = (place for place, one in enumerate(parts) if one == part and place not in taken)
        place = next(free, len(parts))
        if place == len(parts):
            parts.append(part)
        kept.append(KeptPart(place, copy.null_safe))
    operator = DeltaStepSpec(
        tuple(_port(join, part, number) for part in parts),
        tuple(kept),
        tuple(_probe(join, one, place, step.copies) for place, one in enumerate(step.paths)),
        join.schema,
        numbered=not last,
        max_buffered_bytes=join.chain.max_buffered_bytes,
    )
    leaving = () if last else tuple(OnPath(one.path, _columns(join, one.path, number + 1)) for one in step.paths)
    return DeltaStage(operator, tuple(parts), leaving)


def _port(join: DeltaJoin, part: StepPart, number: int) -> Port:
    if part.on_path:
        names = _columns(join, part.number, number)
        schema = pa.schema([join.schema.field(name).with_nullable(True) for name in names])
        return Port(schema, part.keys, Ingest.CHANGES)
    node = join.inputs[part.number]
    # What was late has been left out before, or nothing is.
    return replace(port_of(node, part.keys), watermark=None)


def _columns(join: DeltaJoin, path: int, inputs: int) -> tuple[str, ...]:
    """Those of the first ``inputs`` of a path."""
    return tuple(name for place in join.paths[path][:inputs] for name in join.inputs[place].schema.names)


def _probe(join: DeltaJoin, one: PathStep, place: int, copies: Sequence[InputCopy]) -> DeltaProbe:
    return DeltaProbe(
        place,
        copies.index(one.of),
        after=one.of.input < one.path,
        path=one.path,
        equal=tuple(EqualColumns(pair.left, pair.right, pair.null_safe) for pair in one.equal),
        conditions=tuple(
            ResidualCondition(term.columns or one.probe_columns[:1], Condition(term.text)) for term in one.terms
        ),
    )
