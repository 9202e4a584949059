"""What the joins share, whatever their right side is."""

from __future__ import annotations

import pyarrow as pa

from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, expression, expressions, members, pairs


def joined_columns(kind: JoinKind, left: pa.Schema, right: pa.Schema, mark: str) -> pa.Schema:
    """Of SEMI and ANTI the left columns alone, of MARK the mark besides."""
    added = right if not kind.is_existence else [pa.field(mark, pa.bool_())] if kind is JoinKind.MARK else []
    return pa.schema([*left, *added])


def canonical_join(
    kind: JoinKind, pad: Pad, on: tuple[Expr, ...], keys: tuple[tuple[str, str], ...], residual: Expr | None
) -> dict[str, Form]:
    return members(
        kind=kind.value, unmatched=pad.value, on=expressions(on), keys=pairs(keys), residual=expression(residual)
    )


def residual_text(residual: Expr | None) -> list[str]:
    return [] if residual is None else [f"and {residual.readable}"]
