"""Upserts in, changes out, by primary key: the step before a join whose key is not part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class KeyedSpec(OperatorSpec):
    """Upserts in, changes out: -1 of the old row and +1 of the new one, by primary key."""

    port: Port

    @property
    def ports(self) -> tuple[Port, ...]:
        return (self.port,)

    def open(self, store: RunStore, name: str) -> KeyedOperator:
        return KeyedOperator(self, store, name)


class KeyedOperator:
    """Upserts in, changes out: -1 of the old row, +1 of the new one; a record that changes nothing leaves no trace."""

    def __init__(self, spec: KeyedSpec, store: RunStore, name: str) -> None:
        self._normalizer = ChangeNormalizer.of(spec.port, store, name)

    @property
    def dangling(self) -> int:
        return self._normalizer.dangling

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        (rows,) = inputs
        if rows is None or rows.num_rows == 0:
            return Changes.empty(self._normalizer.port.schema)
        changes = self._normalizer.changes(rows)
        self._normalizer.arrangement.insert(changes)
        return changes
