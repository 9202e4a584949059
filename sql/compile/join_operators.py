"""The operator of a join of two streams, by its method."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import TypedDict

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import JoinKind, Pad, Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.operators.asof import AsofSpec
from dovetail.joins.operators.asof_once import AsofOnceSpec
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.dynamic_filter import DynamicFilterSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.range import RangeSpec
from dovetail.joins.operators.temporal import TemporalSpec
from dovetail.sql.compile.ports import budgeted, port_of, renamed
from dovetail.sql.expressions.evaluate import Condition
from dovetail.sql.plan.joins import (
    Asof,
    AsofOnce,
    Bidirectional,
    DynamicFilter,
    Enrichment,
    JoinMethod,
    Latest,
    Range,
    Temporal,
)
from dovetail.sql.plan.nodes import Join


class _Shared(TypedDict):
    """What every join says of itself."""

    kind: JoinKind
    left: Port
    right: Port
    pad: Pad
    max_buffered_bytes: int | None


def _shared(join: Join) -> _Shared:
    # A dynamic filter has no key: what cuts its left rows finds them again.
    held_by = join.left_cut if isinstance(join.method, DynamicFilter) else tuple(left for left, _ in join.keys)
    left = port_of(join.left, held_by)
    right = replace(port_of(join.right, tuple(right for _, right in join.keys)), everywhere=join.method.everywhere)
    return {
        "kind": join.kind,
        "left": budgeted(left, join.max_rows_per_key),
        "right": budgeted(right, join.max_rows_per_key),
        "pad": join.pad,
        "max_buffered_bytes": join.max_buffered_bytes,
    }


def _residual(join: Join) -> Condition | None:
    return None if join.residual is None else Condition(join.residual.text)


@singledispatch
def join_operator(method: JoinMethod, join: Join) -> OperatorSpec:
    raise InternalError(f"no operator for {join.line}")


@join_operator.register
def _bidirectional(method: Bidirectional, join: Join) -> OperatorSpec:
    return BidirectionalSpec(
        **_shared(join),
        null_safe=join.null_safe,
        condition=_residual(join),
        mark=join.mark,
        right_as_left=renamed(join.left, join.right) if join.right.shared_with else (),
    )


@join_operator.register
def _range(method: Range, join: Join) -> OperatorSpec:
    return RangeSpec(
        **_shared(join),
        band=method.band,
        null_safe=join.null_safe,
        condition=_residual(join),
        append=method.append,
        closed=method.closed,
    )


@join_operator.register
def _enrichment(method: Enrichment, join: Join) -> OperatorSpec:
    return EnrichmentSpec(
        **_shared(join),
        null_safe=join.null_safe,
        condition=_residual(join),
        alignment=method.alignment,
        mark=join.mark,
    )


@join_operator.register
def _asof_once(method: AsofOnce, join: Join) -> OperatorSpec:
    return AsofOnceSpec(
        **_shared(join),
        left_time=method.inequality.left,
        right_time=method.inequality.right,
        comparison=method.inequality.comparison,
        keep_versions=method.keep_versions,
        condition=_residual(join),
        alignment=method.alignment,
    )


@join_operator.register
def _latest(method: Latest, join: Join) -> OperatorSpec:
    return LatestSpec(**_shared(join), alignment=method.alignment)


@join_operator.register
def _asof(method: Asof, join: Join) -> OperatorSpec:
    return AsofSpec(
        **_shared(join),
        left_time=method.inequality.left,
        right_time=method.inequality.right,
        comparison=method.inequality.comparison,
        tie_break=method.tie_breaks,
        tolerance=method.tolerance,
        null_safe=join.null_safe,
    )


@join_operator.register
def _temporal(method: Temporal, join: Join) -> OperatorSpec:
    return TemporalSpec(
        **_shared(join),
        left_time=method.left,
        right_time=method.right,
        deleted=method.deleted,
        null_safe=join.null_safe,
        condition=_residual(join),
    )


@join_operator.register
def _dynamic_filter(method: DynamicFilter, join: Join) -> OperatorSpec:
    return DynamicFilterSpec(**_shared(join), condition=_residual(join), bound=method.bound)
