"""Texts as decimals of Arrow, in one place: its own cast reads beyond its table of powers of ten where a text has more
digits behind the point than 76, written out or by its exponent. The process ends, or the number is any other.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.formats.json_types import Mismatch, converter

_PLAIN = r"^[-+]?[0-9]{0,38}(\.[0-9]{0,38})?$"
_WHOLE = pa.decimal128(38, 0)


def cast(values: pa.Array | pa.ChunkedArray, kind: pa.DataType, *, safe: bool = True) -> pa.Array | pa.ChunkedArray:
    """As ``pc.cast``, which no text may reach as a decimal. Raises ArrowInvalid.

    A text within a list or a struct has to be plain: digits, at most 38 of them on each side of the point.
    """
    if not holds_decimal(kind):
        return pc.cast(values, kind, safe=safe)
    if pa.types.is_integer(values.type):
        # Directly there would have to be room for the largest integer of the type.
        values = pc.cast(values, _WHOLE)
    odd = [texts for texts in _texts(values, kind) if not _are_plain(texts)]
    if odd and pa.types.is_decimal(kind):
        return _each(values, kind)
    if odd:
        raise pa.ArrowInvalid(f"a text within it is no {kind} in plain digits")
    return pc.cast(values, kind, safe=safe)


def holds_decimal(kind: pa.DataType) -> bool:
    """At any depth."""
    if pa.types.is_decimal(kind):
        return True
    return any(holds_decimal(kind.field(place).type) for place in range(kind.num_fields))


def _are_plain(texts: pa.Array) -> bool:
    return pc.all(pc.match_substring_regex(texts.cast(pa.large_binary()), _PLAIN)).as_py() is not False


def _each(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    convert = converter(kind)
    try:
        return pa.array([None if text is None else convert(_text(text)) for text in values.to_pylist()], kind)
    except Mismatch as mismatch:
        raise pa.ArrowInvalid(str(mismatch)) from None


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("ascii", "replace")


def _texts(values: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> Iterator[pa.Array]:
    """The texts in ``values``, at any depth, that are to be decimals."""
    kind = values.type
    if not holds_decimal(wanted):
        return
    if isinstance(values, pa.ChunkedArray) or pa.types.is_nested(kind) or hasattr(kind, "storage_type"):
        parts = _parts(values)
        inner = _inner(wanted) if isinstance(values, pa.Array) and pa.types.is_nested(kind) else []
        for place, part in enumerate(parts):
            yield from _texts(part, inner[place] if len(inner) == len(parts) else wanted)
    elif pa.types.is_dictionary(kind):
        yield from _texts(values.dictionary, wanted)
    elif not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)):
        yield values


def _inner(kind: pa.DataType) -> list[pa.DataType]:
    """The types of what ``_parts`` gives of values of a type."""
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(place).type for place in range(kind.num_fields)]


def _parts(values: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """What values that hold others hold."""
    if isinstance(values, pa.ChunkedArray):
        return list(values.chunks)
    if isinstance(values, pa.ExtensionArray):
        return [values.storage]
    if pa.types.is_map(values.type):
        return [values.keys, values.items]
    if pa.types.is_struct(values.type):
        return [values.field(place) for place in range(values.type.num_fields)]
    if pa.types.is_union(values.type):
        raise pa.ArrowNotImplementedError(f"{values.type} is no decimal")
    return [values.values]
