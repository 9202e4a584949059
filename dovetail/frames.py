"""Rows as programs have them, as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from dovetail.changelog.errors import SqlError

_WHERE = ".insert(..)"
_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow, pandas and polars raise for values that they cannot give."""


def arrow_of(rows: Any, types: Mapping[str, pa.DataType]) -> pa.Table:
    """
    rows   a frame of pandas or polars, an Arrow table, what speaks Arrow's C stream, or dictionaries
    types  of the columns that they are for: they say which dictionaries of Python are maps

    Raises SqlError for what has no rows, and for values that no column can have.
    """
    if isinstance(rows, pa.Table):
        return rows
    library, kind = type(rows).__module__.split(".")[0], type(rows).__name__
    match library, kind:
        case "pandas", "DataFrame":
            return _of_columns(rows.columns.tolist(), lambda: _of_pandas(rows, types))
        case "polars", "DataFrame":
            return _of_columns(rows.columns, lambda: _of_polars(rows))
        case "polars", "LazyFrame":
            raise SqlError("a LazyFrame has no rows yet", where=_WHERE, fix="give .collect() of it")
        case (("pandas" | "polars"), "Series"):
            raise SqlError("a Series is a column, not rows", where=_WHERE, fix="give .to_frame() of it")
    if hasattr(rows, "__arrow_c_stream__"):
        return _read(lambda: pa.table(rows), "the rows")
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping):
        listed = list(rows)
        if all(isinstance(row, Mapping) for row in listed):
            return _of_dictionaries(listed, types)
    raise SqlError(
        f"{kind} has no rows", where=_WHERE, fix="give a frame of pandas or polars, an Arrow table, or dictionaries"
    )


def _of_columns(names: list[object], read: Callable[[], pa.Table]) -> pa.Table:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SqlError(f'the column "{twice}" is there twice', where=_WHERE, fix="rename or drop one of them")
    return _read(read, "the frame")


def _of_pandas(frame: Any, types: Mapping[str, pa.DataType]) -> pa.Table:
    typed = [name for name in frame.columns if name in types and _has_maps(types[name]) and frame[name].dtype == object]
    table = pa.Table.from_pandas(frame.drop(columns=typed))
    for name in typed:
        table = table.append_column(name, _column(name, frame[name], types))
    return table


def _of_polars(frame: Any) -> pa.Table:
    import polars as pl  # noqa: PLC0415 - whoever gives none of it need not wait for it

    objects = [name for name, kind in frame.schema.items() if kind == pl.Object]
    if objects:
        raise SqlError(
            f"the column {objects[0]} holds objects of Python, which only Python can read",
            where=_WHERE,
            fix=f"give it a type: pl.Series({objects[0]!r}, [..], dtype=..)",
        )
    # The views of text that polars makes otherwise can be cast to nothing in dictionaries, as categories are.
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _of_dictionaries(rows: list[Mapping[str, object]], types: Mapping[str, pa.DataType]) -> pa.Table:
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        if not isinstance(name, str):
            raise SqlError(
                f"{name!r} is no name of a column", where=_WHERE, fix="the keys of the dictionaries are names, as texts"
            )
    return pa.table({name: _column(name, [row.get(name) for row in rows], types) for name in names})


def _column(name: str, values: Any, types: Mapping[str, pa.DataType]) -> pa.Array:
    kind = types.get(name)
    declared_type = kind if kind is not None and _has_maps(kind) else None
    return _read(
        lambda: pa.array(values, declared_type, from_pandas=not isinstance(values, list)), f"the values of {name}"
    )


def _has_maps(kind: pa.DataType) -> bool:
    """A dictionary of Python is a struct where nothing says that it is a map."""
    return bool(pa.types.is_map(kind)) or any(_has_maps(kind.field(place).type) for place in range(kind.num_fields))


def _read(read: Callable[[], Any], what: str) -> Any:
    try:
        return read()
    except _MISFITS as fault:
        # Of half a character no message can be written.
        lines = (str(fault) if isinstance(fault, UnicodeError) else "; ".join(map(str, fault.args))).splitlines()
        why = (lines[0] if lines else type(fault).__name__).encode(errors="backslashreplace").decode()
        raise SqlError(
            f"{what} cannot be read as columns: {why}",
            where=_WHERE,
            fix="make the values of a column of one type, in its range: texts, numbers, times, or lists and"
            " dictionaries of them",
        ) from None
