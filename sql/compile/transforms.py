"""The steps between two operators, as they run on batches of rows."""

from __future__ import annotations

from functools import singledispatch

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import Pad, Transform
from dovetail.sql.expressions.evaluate import RowMap, quoted
from dovetail.sql.plan.nodes import ArrayJoin, Map, Node, StaticJoin, Window
from dovetail.sql.transforms.array_join_step import ArrayJoinStep
from dovetail.sql.transforms.static_join_step import StaticJoinStep
from dovetail.sql.transforms.window_step import WindowStep


@singledispatch
def transform_of(node: Node) -> Transform:
    """What makes the rows of ``node`` of a batch of its input."""
    raise InternalError(f"no step for {type(node).__name__}")


@transform_of.register
def row_map(node: Map) -> RowMap:
    select = tuple((name, expr.text) for name, expr in node.columns)
    return RowMap(select, node.schema, None if node.where is None else node.where.text)


@transform_of.register
def windows_step(node: Window) -> WindowStep:
    return WindowStep(node.time, node.windows, node.start, node.end)


@transform_of.register
def array_join_step(node: ArrayJoin) -> ArrayJoinStep:
    arrays = tuple((name, array.text) for name, array in node.arrays)
    kinds = tuple(array.type.value_type for _, array in node.arrays)
    return ArrayJoinStep(arrays, kinds, node.left, node.kept, node.pad)


@transform_of.register
def static_step(node: StaticJoin) -> StaticJoinStep:
    static = node.static
    names = ", ".join(quoted(name) for name in static.schema.names)
    return StaticJoinStep(
        relations=static.relations,
        sql=f"SELECT {names or '1 AS one'} FROM ({static.sql})",
        schema=static.schema,
        left_keys=tuple(left for left, _ in node.keys),
        right_keys=tuple(right for _, right in node.keys),
        null_safe=node.null_safe,
        kind=node.kind,
        condition=None if node.residual is None else node.residual.text,
        defaults=node.pad == Pad.DEFAULT,
        mark=node.mark,
    )
