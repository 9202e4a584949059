"""Keys of a dictionary from values as JSON has them: those of commands, which any producer may write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.changelog.errors import SqlError
from dovetail.changelog.lookup import Key
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.sources.source_values import UnfitValue, value_reader


class KeyReader:
    """Reads what stands for a key as a value of its columns' types: '2026-01-31' is a day where the key is a date."""

    def __init__(self, definition: Definition) -> None:
        self._dictionary = definition.name
        self._names = definition.key
        types = {column.name: column.type for column in definition.columns}
        self._readers = [value_reader(types[name]) for name in definition.key]

    def read(self, given: Any) -> Key:
        """``given``: a value, or several for a key of several columns. Raises SqlError for what is no key."""
        parts: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
        if len(parts) != len(self._readers) or None in parts:
            raise self._refused(given, "")
        try:
            values = [read(part) for read, part in zip(self._readers, parts, strict=True)]
        except UnfitValue as unfit:
            raise self._refused(given, f": {unfit}") from None
        return tuple(values) if len(values) > 1 else values[0]

    def _refused(self, given: Any, why: str) -> SqlError:
        return SqlError(
            f"{given!r} is no key of {self._dictionary}{why}",
            where="keys of a command",
            fix=f"give {' and '.join(self._names)}, in an array if the key has several columns",
        )
