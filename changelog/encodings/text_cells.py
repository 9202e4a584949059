"""Texts without quotes around them, as cells of CSV are, as values of a type: a column at once, or one alone.

integer, float, decimal   digits; neither NaN nor an infinity
boolean                   true, false, 1, 0, in any letter case
timestamp                 as in JSON, a number too
date, time, binary        as the texts of JSON
list, struct, map         JSON
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.formats import decimal_text
from dovetail.changelog.formats.json_batch import BatchReader, NeedsRowDecoding, decline_where, typed
from dovetail.changelog.formats.json_types import Mismatch, converter, type_name
from dovetail.changelog.formats.members import Member

_INTEGER = r"[+-]?[0-9]{1,30}"
_NUMBER = r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?"
_LONGEST = 1_000
"""Characters of a number: one with more is none of any type."""
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def column_of_cells(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    """``cells`` (string; null is NULL) as a column of ``kind``. Raises NeedsRowDecoding if one is not plainly right."""
    if pa.types.is_string(kind):
        return cells
    if pa.types.is_boolean(kind):
        return _truth_values(cells)
    if pa.types.is_integer(kind):
        return _parsed(cells, _INTEGER, kind)
    if pa.types.is_floating(kind):
        doubles = _parsed(cells, _NUMBER, pa.float64())
        decline_where(pc.is_inf(doubles).fill_null(False))
        return doubles.cast(kind, safe=False)
    if pa.types.is_decimal(kind):
        return _decimals(cells, kind)
    if pa.types.is_timestamp(kind):
        return _instants(cells, kind)
    if pa.types.is_nested(kind):
        return _of_json(cells, kind)
    return typed(cells, kind)


def cell_reader(kind: pa.DataType) -> Callable[[str], Any]:
    """For one cell, what ``pa.array`` takes for its type. Raises Mismatch."""
    convert = converter(kind)

    def read(cell: str) -> Any:
        if pa.types.is_boolean(kind):
            return convert(_TRUTH.get(cell.lower(), cell))
        if pa.types.is_nested(kind):
            return convert(_parsed_json(cell, kind))
        number = _number(cell)
        if pa.types.is_decimal(kind) and number is None:
            raise Mismatch(cell, type_name(kind))
        value = convert(cell if number is None or pa.types.is_string(kind) or pa.types.is_binary(kind) else number)
        if isinstance(value, float) and np.isinf(value):
            raise Mismatch(cell, type_name(kind))
        return value

    return read


def _number(cell: str) -> int | Decimal | None:
    if len(cell) > _LONGEST:
        return None
    if re.fullmatch(_INTEGER, cell, re.ASCII):
        return int(cell)
    return Decimal(cell) if re.fullmatch(_NUMBER, cell, re.ASCII) else None


def _parsed_json(cell: str, kind: pa.DataType) -> Any:
    try:
        return orjson.loads(cell)
    except orjson.JSONDecodeError:
        raise Mismatch(cell, f"{type_name(kind)} as JSON") from None


def _decline_unlike(cells: pa.Array, form: str) -> None:
    decline_where(pc.invert(pc.match_substring_regex(cells, f"^(?:{form})$")).fill_null(False))


def _parsed(cells: pa.Array, form: str, kind: pa.DataType) -> pa.Array:
    decline_where(pc.greater(pc.utf8_length(cells), _LONGEST).fill_null(False))
    _decline_unlike(cells, form)
    target = pl.Series(pa.array([], kind)).dtype
    found = pl.Series(cells).cast(target, strict=False).to_arrow()
    decline_where(pc.and_(found.is_null(), cells.is_valid()))
    return found


def _decimals(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    _decline_unlike(cells, rf"-?0*[0-9]{{1,{max(kind.precision - kind.scale, 1)}}}(\.[0-9]{{0,{kind.scale}}})?")
    try:
        return decimal_text.cast(cells, kind)
    except pa.ArrowInvalid:
        raise NeedsRowDecoding from None


def _truth_values(cells: pa.Array) -> pa.Array:
    folded = pc.utf8_lower(cells)
    place = pc.index_in(folded, pa.array(list(_TRUTH)))
    decline_where(pc.and_(place.is_null(), cells.is_valid()))
    return pa.array(list(_TRUTH.values())).take(place)


def _instants(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    numeric = pc.match_substring_regex(cells, r"^-?[0-9]{1,18}$").fill_null(False)
    if not pc.any(numeric).as_py():
        return typed(cells, kind)
    # The form of most counts; the others are looked at each.
    if 2 * pc.sum(numeric).as_py() >= len(cells) - cells.null_count:
        decline_where(pc.and_(cells.is_valid(), pc.invert(numeric)))
        return typed(cells.cast(pa.int64()), kind)
    decline_where(numeric)
    return typed(cells, kind)


def _of_json(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    objects = pc.binary_join_element_wise('{"v":', cells.fill_null("null"), "}", "")
    return BatchReader((Member("v", kind),)).read(objects.cast(pa.binary())).column("v").combine_chunks()
