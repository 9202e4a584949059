"""Upserts in, changes out, by primary key: the step before a join whose key is not part of it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from changelog.changes import Changes
from joins.dataflow.graph import KeyedSpec
from joins.inputs.intake import Intake
from joins.state.store import RunStore


class KeyedOperator:
    """Upserts in, changes out: -1 of the old row, +1 of the new one; a record that changes nothing leaves no trace."""

    def __init__(self, spec: KeyedSpec, store: RunStore, name: str) -> None:
        self._intake = Intake.of(spec.port, store, name)

    @property
    def unfounded(self) -> int:
        return self._intake.unfounded

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        (rows,) = inputs
        if rows is None:
            return Changes.empty(self._intake.port.schema)
        changes = self._intake.changes(rows)
        self._intake.arrangement.insert(changes)
        return changes
