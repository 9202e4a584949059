"""What is asked of the schemas of one format when a stream is created."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from changelog.encodings.interface import SchemaDefinition
from changelog.schema import RecordFormat

Fits = Callable[[pa.DataType], object]
"""Raises SchemaMisfit where a member is no column of a type."""


class SchemaLanguage(Protocol):
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
