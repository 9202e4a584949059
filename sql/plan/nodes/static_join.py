"""StaticJoin: a stream with a table that does not change."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.joined import canonical_join, joined_columns, residual_text
from dovetail.sql.plan.nodes.node import Chained, Node, names_read
from dovetail.sql.plan.nodes.static import Static


@dataclass(frozen=True)
class StaticJoin(Chained):
    """A stream joined with a table that does not change; no state."""

    static: Static
    kind: JoinKind
    on: tuple[Expr, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    null_safe: tuple[bool, ...] = ()
    residual: Expr | None = None
    pad: Pad = Pad.NULL
    place: str = ""
    mark: str = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, self.static)

    def with_inputs(self, *inputs: Node) -> Self:
        below, static = inputs
        if not isinstance(static, Static):
            raise InternalError(f"the right side is a Static, not {type(static).__name__}")
        return replace(self, input=below, static=static)

    @cached_property
    def schema(self) -> pa.Schema:
        return joined_columns(self.kind, self.input.schema, self.static.schema, self.mark)

    @property
    def unique_keys(self) -> list[Key]:
        return self.input.unique_keys if self.kind.is_existence else []

    @cached_property
    def nullable(self) -> Set[str]:
        padded = set(self.static.schema.names) if self.kind == JoinKind.LEFT else set()
        return self.input.nullable | padded

    def pruned(self, needed: Set[str]) -> Node:
        wanted = needed | {name for pair in self.keys for name in pair} | names_read(self.residual)
        return replace(self, input=self.input.pruned(wanted), static=self.static.pruned(wanted))

    @property
    def line(self) -> str:
        on = ",".join(f"{left}={right}" for left, right in self.keys) or "every row"
        parts = [f"StaticJoin {self.kind.value}", f"on={on}", *residual_text(self.residual)]
        return "  ".join([*parts, "state: none", "engine=spark"])

    @property
    def canonical(self) -> Form:
        own = members(
            node="static_join",
            null_safe=list(self.null_safe),
            mark=self.mark,
            input=self.input.canonical,
            static=self.static.canonical,
        )
        return {**own, **canonical_join(self.kind, self.pad, self.on, self.keys, self.residual)}
