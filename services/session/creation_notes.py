"""What is said as a stream is made: of words that Timeplus knows, and that mean less here than one may think."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateStream

_KEYED = {
    Rules.TIMEPLUS: "CREATE MUTABLE STREAM, or SETTINGS mode = 'versioned_kv'",
    Rules.RISINGWAVE: "leave APPEND ONLY out",
}


def creation_notes(statement: CreateStream) -> str:
    return "".join(f"; {note}" for note in _notes(statement))


def _notes(statement: CreateStream) -> Iterator[str]:
    if statement.sort_key:
        key = ", ".join(statement.sort_key)
        keyed = _KEYED[statement.rules]
        yield f"PRIMARY KEY ({key}) says nothing where each record is a row: for one row of each key {keyed}"
    if _may_be_raw(statement):
        yield (
            f"its records are JSON objects with a member {statement.columns[0].name}: "
            "SETTINGS data_format = 'RawBLOB' has each record as one text"
        )


def _may_be_raw(statement: CreateStream) -> bool:
    """Whether Timeplus would have each record as one text: it does for one column of texts and no format."""
    if not statement.external or statement.rules is not Rules.TIMEPLUS or "data_format" in statement.settings:
        return False
    return len(statement.columns) == 1 and bool(pa.types.is_string(statement.columns[0].type))
