"""What leaves a step of a delta join, told apart: each path has rows of its own columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import DELTA

PATH = "__path"
"""The column that has the number of the path of a row."""


@dataclass(frozen=True)
class OnPath:
    """The rows of the path ``number``, with its ``columns``."""

    number: int
    columns: tuple[str, ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        mine = pc.equal(rows.column(PATH), pa.scalar(self.number, pa.int8()))
        return rows.select([*self.columns, DELTA]).filter(mine)

    def of(self, schema: pa.Schema) -> pa.Schema:
        """That of its rows, which ``schema`` has the columns of."""
        return pa.schema([schema.field(name).with_nullable(True) for name in self.columns])

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Self:
        return self
