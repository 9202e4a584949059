"""Numbers and kinds of things in messages, and names of types."""

from __future__ import annotations

import pyarrow as pa


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 row``, ``1,200 rows``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def articled(noun: str) -> str:
    """``a table``, ``an index``."""
    return f"{'an' if noun[0].lower() in 'aeio' else 'a'} {noun}"


def type_words(kind: pa.DataType) -> str:
    """The type as a column is declared; where the dialect is known, ``sql.syntax.types.display`` has its own name."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else _INSTANTS[kind.unit]
    if pa.types.is_list(kind):
        return f"array({type_words(kind.value_type)})"
    if pa.types.is_map(kind):
        return f"map({type_words(kind.key_type)}, {type_words(kind.item_type)})"
    if pa.types.is_struct(kind):
        return f"tuple({', '.join(f'{field.name} {type_words(field.type)}' for field in kind)})"
    return _NAMES.get(str(kind), str(kind))


_INSTANTS = {"s": "datetime", "ms": "datetime64(3)", "us": "datetime64(6)", "ns": "datetime64(9)"}
_NAMES = {
    "double": "float64",
    "float": "float32",
    "halffloat": "float32",
    "date32[day]": "date",
    "time64[us]": "time",
    "binary": "bytes",
    "large_string": "string",
    "month_day_nano_interval": "interval",
}
