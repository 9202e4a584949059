"""The columns that a lookup join adds to the left ones, built from the rows that were found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from dovetail.changelog.errors import InternalError, RecordRejected
from dovetail.changelog.formats.time_range import RANGE, outside
from dovetail.changelog.lookup import Row
from dovetail.changelog.values import normalised_array
from dovetail.joins.dataflow.lookup import LookupJoinSpec
from dovetail.joins.dataflow.ports import JoinKind


class LookedUpColumns:
    """Builds the columns of ``join.schema``; for LEFT with the padding as their last value."""

    def __init__(self, join: LookupJoinSpec) -> None:
        self._access = join.access
        self.schema = join.schema
        places = {name: place for place, name in enumerate(join.access.columns)}
        self._places = [places[name] for _, name in join.columns]
        self._padding: tuple[Any, ...] | None = join.padding if join.kind is JoinKind.LEFT else None
        if self._padding is not None and len(self._padding) != len(self._places):
            raise InternalError(f"{len(self._places)} columns of {join.access.table}, padded with {self._padding}")

    def build(self, found: Sequence[Row]) -> list[pa.Array]:
        """Raises RecordRejected if a value does not fit the type that was declared for it."""
        columns = list(zip(*found, strict=True)) if found else [()] * len(self._access.columns)
        arrays = [
            self._array(columns[place], place, field) for place, field in zip(self._places, self.schema, strict=True)
        ]
        if self._padding is None:
            return arrays
        pads = [pa.array([value], field.type) for value, field in zip(self._padding, self.schema, strict=True)]
        return [pa.concat_arrays(pair) for pair in zip(arrays, pads, strict=True)]

    def _array(self, values: Sequence[Any], place: int, field: pa.Field) -> pa.Array:
        declared = self._access.types[place]
        try:
            array = normalised_array(pa.array(values, declared))
            if outside(array) is not None:
                raise ValueError(f"a time is outside of {RANGE}")
            return array if declared == field.type else array.cast(field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as fault:
            raise RecordRejected(
                f"a looked-up value is no {declared}: {fault}",
                where=f"{self._access.target} {self._access.table}, column {self._access.columns[place]}",
                fix="declare the column with the type that its values have",
            ) from None
