"""What is asked of the schemas of one format when a stream is created."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import pyarrow as pa

from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.schema import RecordFormat

Fits = Callable[[pa.DataType], object]
"""Raises SchemaMisfit where a member is no column of a type."""

ColumnType: TypeAlias = pa.DataType | SchemaMisfit
"""The type of the column that a member is; or why it is none."""


def column_type(made: Callable[[], pa.DataType]) -> ColumnType:
    try:
        return made()
    except SchemaMisfit as misfit:
        return misfit


class SchemaParser(Protocol):
    """``form`` is the format of the values, with its options."""

    def own(self, columns: pa.Schema, name: str, former: SchemaDefinition | None = None) -> SchemaDefinition:
        """The schema of ``columns``, called ``name``, which follows ``former``, one of this name too. Raises SqlError
        for a column that has no form in it.
        """
        ...

    def is_own(self, definition: SchemaDefinition, name: str) -> bool:
        """Whether ``own`` made it, of whatever columns."""
        ...

    def members(self, definition: SchemaDefinition, form: RecordFormat) -> Mapping[str, Fits] | None:
        """Those of a record; None where it does not say which there are. Raises SchemaMisfit."""
        ...

    def columns(self, definition: SchemaDefinition, form: RecordFormat) -> Mapping[str, ColumnType]:
        """What the members are as columns, in their order. Raises SchemaMisfit, also where it does not say."""
        ...
