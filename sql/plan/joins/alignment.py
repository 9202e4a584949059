"""A one-shot join that waits for its right side: ``lag_behind(20ms, l.t, r.t)``."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dovetail.joins.operators.one_shot import Alignment
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import JoinInputs, JoinMethod
from dovetail.sql.plan.time_text import length_text

__all__ = ["AlignedJoinMethod", "Alignment"]

_MS = pa.timestamp("ms")


@dataclass(frozen=True)
class AlignedJoinMethod(JoinMethod):
    """``alignment``: how long a left row waits; None: it is answered when it comes."""

    alignment: Alignment | None = None

    @property
    def columns_read(self) -> frozenset[str]:
        return frozenset() if self.alignment is None else frozenset({self.alignment.left_time})

    @property
    def canonical_alignment(self) -> Form | None:
        found = self.alignment
        return None if found is None else members(left_time=found.left_time, lag_ms=found.lag_ms)

    def conditions(self, inputs: JoinInputs) -> list[str]:
        if self.alignment is None:
            return []
        lag = length_text(self.alignment.lag_ms, _MS)
        text = f"waits until the right side is {lag} past {self.alignment.left_time}"
        idle_ms = None if inputs.right.watermark is None else inputs.right.watermark.idle_ms
        return [text if idle_ms is None else f"{text}, or silent for {length_text(idle_ms, _MS)}"]
