"""UNION ALL: the rows of several inputs, each as often as all of them together hold it.

**State.** None; of an input whose retractions may be dangling its current rows.
"""

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
class UnionAllSpec(OperatorSpec):
    """The rows of ``parts``: of each the columns in ``schema``. A port is cut by what finds its rows again."""

    parts: tuple[Port, ...]
    schema: pa.Schema

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.parts

    def open(self, store: RunStore, name: str) -> UnionAllOperator:
        return UnionAllOperator(self, store, name)


class UnionAllOperator:
    """``on_batch([rows, rows, ..]) -> changes``"""

    def __init__(self, spec: UnionAllSpec, store: RunStore, name: str) -> None:
        self._schema = pa.schema([field.with_nullable(True) for field in spec.schema])
        self._normalizers = [
            ChangeNormalizer.of(port, store, f"{name}.part{number}") for number, port in enumerate(spec.parts)
        ]

    @property
    def dangling(self) -> int:
        return sum(normalizer.dangling for normalizer in self._normalizers)

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        parts = [self._part(normalizer, rows) for normalizer, rows in zip(self._normalizers, inputs, strict=True)]
        return Changes.concat([Changes.empty(self._schema), *parts])

    def _part(self, normalizer: ChangeNormalizer, rows: pa.Table | None) -> Changes:
        changes = normalizer.normalize_and_store(rows)
        return Changes.with_deltas(changes.rows.select(self._schema.names).cast(self._schema), changes.deltas)
