"""LookupJoin: rows with what is found under their key."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.sql.engines import Engine
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.joined import canonical_join, joined_columns, residual_text
from dovetail.sql.plan.nodes.lookup_table import LookupTable
from dovetail.sql.plan.nodes.node import Cut, Node, RowByRow, names_read


@dataclass(frozen=True)
class LookupJoin(RowByRow):
    """Rows joined, once and when they come, with those of ``table`` under their key then. INNER or LEFT; or asked
    whether there are any: SEMI, ANTI, MARK.

    Before the rule ``join_keys`` has run, the whole condition stands in ``on``, conjunct by conjunct.

    keys     pairs: a column of the input, a declared column of the table
    index    what serves the lookup
    padding  values of padded columns that are not as ``pad`` says, by internal name
    """

    table: LookupTable
    kind: JoinKind
    on: tuple[Expr, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    index: str = ""
    residual: Expr | None = None
    pad: Pad = Pad.NULL
    padding: tuple[tuple[str, Any], ...] = ()
    place: str = ""
    mark: str = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, self.table)

    def with_inputs(self, *inputs: Node) -> Self:
        below, table = inputs
        if not isinstance(table, LookupTable):
            raise InternalError(f"the right side is a LookupTable, not {type(table).__name__}")
        return replace(self, input=below, table=table)

    @cached_property
    def schema(self) -> pa.Schema:
        return joined_columns(self.kind, self.input.schema, self.table.schema, self.mark)

    @property
    def single(self) -> bool:
        """Whether a row meets at most one row."""
        key = set(self.table.primary_key)
        return bool(key) and key <= {name for _, name in self.keys}

    # -- keys --

    @cached_property
    def unique_keys(self) -> list[Key]:
        """Those of the input, where a row meets at most one; else with the primary key of what it meets."""
        left = self.input.unique_keys
        if self.single or self.kind.is_existence:
            return left
        return [tuple(dict.fromkeys(first + key)) for first in left for key in self.table.unique_keys]

    @cached_property
    def nullable(self) -> Set[str]:
        padded = set(self.table.schema.names) if self.kind == JoinKind.LEFT else set()
        return self.input.nullable | padded

    @cached_property
    def equal_columns(self) -> Mapping[str, Set[str]]:
        """Not the reverse: the database may hold equal what differs here, in letter case."""
        travels = {} if self.kind.is_existence else {name: internal for internal, name in self.table.columns}
        by_left = {travels[right]: {left} for left, right in self.keys if right in travels}
        return {**self.input.equal_columns, **by_left}

    # -- execution --

    @property
    def engine(self) -> Engine | None:
        return Engine.FAUST

    @property
    def own_engine(self) -> Engine | None:
        return Engine.FAUST

    @property
    def bucket_key(self) -> Cut | None:
        return self.input.partition_key

    def pruned(self, needed: Set[str]) -> Node:
        wanted = needed | {left for left, _ in self.keys} | names_read(self.residual)
        padding = tuple((name, value) for name, value in self.padding if name in wanted)
        return replace(self, input=self.input.pruned(wanted), table=self.table.pruned(wanted), padding=padding)

    # -- words --

    @property
    def line(self) -> str:
        on = ",".join(f"{left}={self.table.internal(right)}" for left, right in self.keys)
        parts = [f"Lookup {self.kind.value}", f"on={on}", f"{self.table.name} by {self.index}"]
        parts += residual_text(self.residual)
        if self.pad == Pad.DEFAULT:
            parts.append("unmatched=default")
        if given := dict(self.padding):
            parts.append(f"unmatched {', '.join(f'{name}={value!r}' for name, value in given.items())}")
        state = "memo: what was looked up, per left row" if self.input.updates else "state: none"
        return "  ".join([*parts, state, "engine=faust"])

    @property
    def canonical(self) -> Form:
        own = members(
            node="lookup_join",
            index=self.index,
            padding=[[name, repr(value)] for name, value in self.padding],
            mark=self.mark,
            input=self.input.canonical,
            table=self.table.canonical,
        )
        return {**own, **canonical_join(self.kind, self.pad, self.on, self.keys, self.residual)}
