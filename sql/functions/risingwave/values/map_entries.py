"""Maps: their entries stand in the order of the keys, so that maps with equal entries are equal values."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions.kept_values import entries_in_order
from dovetail.sql.functions.risingwave.values.kinds import TEXT, engine_name, kind_of, name_of, quoted
from dovetail.sql.functions.typed import Typed, filled


def map_kind(key: pa.DataType, item: pa.DataType) -> pa.DataType:
    """Raises SqlError for keys of a type that RisingWave's maps do not have."""
    if not (pa.types.is_integer(key) or key == TEXT):
        raise SqlError(f"a map has no keys of the type {name_of(key)}", fix="keys of varchar, smallint, int or bigint")
    return pa.map_(key, item)


def from_entries(entries: exp.Expr, kind: pa.DataType) -> exp.Expr:
    """The map of an array of rows of a key and a value. It fails where a key is NULL, or there twice."""
    shown = f"STRUCT(key {engine_name(kind.key_type)}, value {engine_name(kind.item_type)})[]"
    return filled(f"map_from_entries(list_sort(CAST({{0}} AS {shown})))", [entries])


def row_of(key: exp.Expr, item: exp.Expr) -> exp.Expr:
    return filled("{'key': {0}, 'value': {1}}", [key, item])


def key_in(entry: exp.Expr, value: Typed) -> Typed:
    return value.of(filled("struct_extract({0}, {1})", [entry, quoted("key")]), kind_of(value).key_type)


def item_in(entry: exp.Expr, value: Typed) -> Typed:
    return value.of(filled("struct_extract({0}, {1})", [entry, quoted("value")]), kind_of(value).item_type)


def by_entry(value: Typed, made: Callable[[Typed, Typed], exp.Expr]) -> exp.Expr:
    """The array of what is made of each key and its value."""
    entry = exp.column("e_")
    return filled(
        "list_transform(map_entries({0}), lambda e_: {1})",
        [value.tree, made(key_in(entry, value), item_in(entry, value))],
    )


def in_order(value: Typed) -> Typed:
    return value.of(entries_in_order(value.tree), kind_of(value))
