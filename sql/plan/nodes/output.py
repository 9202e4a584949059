"""Output: what leaves a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import pyarrow as pa

from dovetail.changelog.schema import JSON, RecordFormat
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, computed, members, record_format
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.nodes.node import Node
from dovetail.sql.plan.nodes.shared import Shared
from dovetail.sql.plan.time_text import length_text


@dataclass(frozen=True)
class OutputClock:
    """The watermark of a query's output.

    behind   by input of the last operator, how much less than its watermark a time may be that is yet to leave (ms, or
             the number itself); the output has the least of these
    columns  those that are not behind it, and how much more than it they are at least
    grid     times of rows are at multiples of the first number, and the second one more
    """

    behind: tuple[int, ...]
    columns: tuple[tuple[str, int], ...]
    grid: tuple[int, int] = (1, 0)


@dataclass(frozen=True)
class Output:
    """What leaves the query: the rows of its topic.

    columns    the output columns, in order
    hidden     further columns that only make up the Kafka key
    key        names among both; ``key_names`` as they stand in the record's key
    updating   rows can be taken back; ``marked`` asks for ``_tp_delta`` even where they cannot
    unique     no two rows of the running table share the key
    value_format, key_format  those of the stream that it goes INTO
    period_ms  what changes leaves so often at most (EMIT PERIODIC); 0: at once
    hybrid     the state that may be larger than memory; None: none may
    clock      the watermark that heartbeats tell those who read the topic; None: none
    """

    name: str
    topic: str
    input: Node
    columns: tuple[tuple[str, Expr], ...]
    hidden: tuple[tuple[str, Expr], ...]
    key: tuple[str, ...]
    key_names: tuple[str, ...]
    updating: bool
    exchanged: bool
    marked: bool = False
    unique: bool = False
    format: str = "changelog"
    value_format: RecordFormat = JSON
    key_format: RecordFormat = JSON
    period_ms: int = 0
    hybrid: HybridState | None = None
    clock: OutputClock | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, below: Node) -> Self:
        return replace(self, input=below)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, expr.type) for name, expr in self.columns])

    @cached_property
    def shares(self) -> bool:
        """Whether an operator below has several readers."""
        return _shares(self.input)

    @property
    def line(self) -> str:
        forms = {"upsert": "Upserts", "debezium": "Envelopes"}
        kind = forms.get(self.format, "Changelog") if self.updating or self.marked else "Append"
        emits = "+1,-1" if self.updating else "+1"
        key = f"key={','.join(self.key_names)} ({self._key_text})" if self.key else "key=none"
        exchange = ["exchange by key"] if self.exchanged else []
        columns = f"columns={','.join(name for name, _ in self.columns)}"
        period = [f"every {length_text(self.period_ms, pa.timestamp('ms'))}"] if self.period_ms else []
        hybrid = [self.hybrid.readable] if self.hybrid is not None else []
        clock = [f"tells the watermark of {','.join(name for name, _ in self.clock.columns)}"] if self.clock else []
        emission = [f"emits={emits}", *period, *exchange, *hybrid, *clock]
        return "  ".join([f"{kind} {self.name}", f"topic={self.topic}", key, columns, *emission])

    @property
    def _key_text(self) -> str:
        """Whether rows can share the key, and what of it only the key shows."""
        hidden = {name for name, _ in self.hidden}
        unseen = [shown for name, shown in zip(self.key, self.key_names, strict=True) if name in hidden]
        named = "" if len(unseen) == len(self.key) else f"{','.join(unseen)} "
        return ", ".join([*([f"{named}hidden"] if unseen else []), "unique" if self.unique else "not unique"])

    @property
    def canonical(self) -> Form:
        return members(
            node="output",
            name=self.name,
            topic=self.topic,
            columns=computed(self.columns),
            hidden=computed(self.hidden),
            key=list(self.key),
            key_names=list(self.key_names),
            updating=self.updating,
            marked=self.marked,
            exchanged=self.exchanged,
            format=self.format,
            subplans_once=self.shares,
            value_format=record_format(self.value_format),
            key_format=record_format(self.key_format),
            input=self.input.canonical,
        )


def _shares(node: Node) -> bool:
    return isinstance(node, Shared) or any(map(_shares, node.inputs))
