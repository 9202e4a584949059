"""A batch of JSON objects at once, in Arrow's own parser, or not at all.

``read`` answers only if every object is plainly right; for the rest ``json_record`` decides. What it takes care of:

- *Alignment*: row n must be record n. Each text begins with ``{``, ends with ``}`` and has no line break, and there are
  as many rows as texts: an object that ends within a line or spans two lines breaks one of these.
- *Strictness*: the schema is explicit, so that a value of another type is an error and not a NULL.
- *Decimals*: the parser multiplies them by the power of ten of their scale, and what is too large for its 256 bits
  comes out as any other number; it divides by powers that it has up to the 76th, and reads beyond them for more. Of a
  text with that many digits, or an exponent of two, or one that hides them behind escapes, it is not asked.
- *Leniency of the parser*: it knows NaN and Inf and lets bytes pass that are no UTF-8; JSON has neither.
- *Absent or null*: both come as NULL. A default is taken only for a text that nowhere mentions the member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from dovetail.changelog.formats import time_text
from dovetail.changelog.formats.members import Member
from dovetail.changelog.formats.text_forms import jsonb_members

_NOT_JSON = rb"[:,\[]\s*-?(?:NaN|Inf)"
_ESCAPED_NAME = rb'\\[^"]*"\s*:'
_LONGEST = 1 << 30
_NEWLINE = ord("\n")
_MISFITS_PER_ROW = 1 / 64
_DIGITS = 76
_ALIKE = bytes.maketrans(b'123456789E}]" \t\r\n', b"000000000e,,,,,,,")
_EXPONENT_ALIKE = re.compile(rb"e[-+]?00+,")
_GREAT_EXPONENT = rb'[:,\[]\s*"?[-+]?[0-9.]+[eE][-+]?0*[1-9][0-9]+[\s",}\]]'
_ESCAPED_NUMBER = rb"\\u00(?:3[0-9]|2[bBdDeE]|[46]5)"
"""A digit, a sign, a point or the mark of an exponent."""

Positions = npt.NDArray[np.int64]


class NeedsRowDecoding(Exception):
    """The rows at ``positions`` need a closer look each; all of them, if None. The others may pass without them."""

    def __init__(self, positions: Positions | None = None) -> None:
        super().__init__()
        self.positions = positions


def decline_where(misfit: pa.Array | pa.ChunkedArray) -> None:
    """Raises NeedsRowDecoding if any of ``misfit`` is true or NULL."""
    positions = np.flatnonzero(misfit.fill_null(True).to_numpy(zero_copy_only=False))
    if len(positions):
        raise NeedsRowDecoding(positions)


class BatchReader:
    """Reads the given members out of batches of JSON objects."""

    def __init__(self, members: tuple[Member, ...]) -> None:
        self._members = members
        self._scale = max((scale for member in members for scale in _scales(member.type)), default=None)

    def read(self, texts: pa.Array) -> pa.Table:
        """A column per member, in order, a row per text (binary, none null). Raises NeedsRowDecoding."""
        if len(texts) == 0:
            return pa.table({member.name: pa.array([], member.type) for member in self._members})
        lines, first = _lines(texts), _first(texts)
        others = [one for one in self._members if not one.document]
        carriers = [(one.name, _carrier(one.name, one.type, first.get(one.name), texts)) for one in others]
        if self._scale is not None:
            _decline_great(lines, texts, self._scale)
        raw = _parsed(lines, texts, pa.schema(carriers or [_NO_MEMBER]))
        columns = self._documents(texts)
        for member in others:
            parsed = raw.column(member.name).combine_chunks()
            _expect_finite(parsed)
            columns[member.name] = typed(parsed, member.type)
        defaults = [member for member in self._members if member.default is not None]
        columns |= {member.name: _with_default(columns[member.name], member, texts) for member in defaults}
        return pa.table({member.name: columns[member.name] for member in self._members})

    def _documents(self, texts: pa.Array) -> dict[str, pa.Array]:
        """The parser of the other members has no column that takes any JSON."""
        names = [member.name for member in self._members if member.document]
        try:
            return jsonb_members(texts, names) if names else {}
        except ValueError:
            raise NeedsRowDecoding from None


_NO_MEMBER = pa.field("", pa.null())
"""Read where all members are documents, for the parser to look at each text."""


def may_contain(texts: pa.Array, name: str) -> pa.Array:
    """Which texts hold ``name`` in double quotes, or a member whose name is written with escapes: others lack it."""
    return pc.or_(pc.match_substring(texts, f'"{name}"'), pc.match_substring_regex(texts, _ESCAPED_NAME))


def _lines(texts: pa.Array) -> bytes:
    """The texts, a line each; raises NeedsRowDecoding if a line would not be one whole text."""
    decline_where(pc.invert(pc.and_(pc.starts_with(texts, b"{"), pc.ends_with(texts, b"}"))))
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    lines: bytes = pc.binary_join(whole, b"\n")[0].as_py()
    if len(lines) > _LONGEST:
        raise NeedsRowDecoding
    if np.count_nonzero(np.frombuffer(lines, np.uint8) == _NEWLINE) != len(texts) - 1:
        decline_where(pc.match_substring(texts, b"\n"))
    if b"NaN" in lines or b"Inf" in lines:
        decline_where(pc.match_substring_regex(texts, _NOT_JSON))
    return lines


def _expect_finite(parsed: pa.Array) -> None:
    """Raises NeedsRowDecoding where the parser has made an infinity of too many digits."""
    if pa.types.is_floating(parsed.type):
        infinite = pc.is_inf(parsed)
        if pc.any(infinite).as_py():
            decline_where(infinite.fill_null(False))
    elif pa.types.is_list(parsed.type) or pa.types.is_struct(parsed.type):
        for part in parsed.flatten() if pa.types.is_struct(parsed.type) else [parsed.flatten()]:
            try:
                _expect_finite(part)
            except NeedsRowDecoding as declined:
                raise (NeedsRowDecoding if pa.types.is_list(parsed.type) else declined) from None


def _scales(kind: pa.DataType) -> Iterator[int]:
    """Of the decimals at any depth."""
    if pa.types.is_decimal(kind):
        yield kind.scale
    for index in range(kind.num_fields):
        yield from _scales(kind.field(index).type)


def _decline_great(lines: bytes, texts: pa.Array, scale: int) -> None:
    """Raises NeedsRowDecoding if a number, or a text, has more digits than the parser brings to ``scale`` exactly."""
    alike = lines.translate(_ALIKE)
    # Exponents of one digit are left to it: there is room for nine more, in front of the point or behind it.
    most = _DIGITS - 9 - scale
    if b"0" * most in alike:
        decline_where(pc.match_substring_regex(texts, rb"[0-9]{%d}" % most))
    if _EXPONENT_ALIKE.search(alike):
        decline_where(pc.match_substring_regex(texts, _GREAT_EXPONENT))
    if b"\\u00" in lines:
        decline_where(pc.match_substring_regex(texts, _ESCAPED_NUMBER))


def _first(texts: pa.Array) -> dict[str, Any]:
    try:
        first: dict[str, Any] = orjson.loads(texts[0].as_py())
    except orjson.JSONDecodeError:
        raise NeedsRowDecoding(np.zeros(1, dtype=np.int64)) from None
    return first


def _parsed(lines: bytes, texts: pa.Array, schema: pa.Schema) -> pa.Table:
    try:
        lines.decode()
        rows = _read_json(pa.py_buffer(lines), schema)
    except UnicodeDecodeError:
        raise NeedsRowDecoding from None
    except pa.ArrowInvalid:
        raise NeedsRowDecoding(_misfits(lines, texts, schema)) from None
    if rows.num_rows != len(texts):
        raise NeedsRowDecoding
    return rows


def _read_json(lines: pa.Buffer, schema: pa.Schema) -> pa.Table:
    reading = pa.json.ReadOptions(use_threads=False, block_size=lines.size + 1)
    parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return pa.json.read_json(lines, reading, parsing)


def _misfits(lines: bytes, texts: pa.Array, schema: pa.Schema) -> Positions | None:
    """The rows that the parser stumbles over, found by starting anew after each; None if they are many, or not named.

    Integers are read as floats here: the parser names the row of a value of another type, not that of a wrong number.
    """
    floats = pa.schema([(one.name, _as_floats(one.type)) for one in schema])
    starts = np.append(0, np.cumsum(pc.binary_length(texts).to_numpy() + 1))
    buffer, begin = pa.py_buffer(lines), 0
    found: list[int] = []
    while begin < len(texts) and len(found) <= len(texts) * _MISFITS_PER_ROW:
        try:
            rows = _read_json(buffer.slice(starts[begin]), floats)
        except pa.ArrowInvalid as fault:
            named = re.search(r"in row (\d+)", str(fault))
            if named is None or begin + int(named[1]) >= len(texts):
                return None
            found.append(begin + int(named[1]))
            begin = found[-1] + 1
        else:
            if begin + rows.num_rows != len(texts):
                return None
            return np.array(found) if found else _unfitting_integers(rows, schema)
    # A line with two objects in it shifts the numbers of the rows after it.
    return np.array(found) if begin == len(texts) else None


def _as_floats(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _as_floats(field.type)) for field in kind])
    return pa.float64() if pa.types.is_integer(kind) else kind


def _unfitting_integers(rows: pa.Table, schema: pa.Schema) -> Positions | None:
    """Where a number is no integer of its column's type, or at the very edge of what a float tells."""
    misfit = np.zeros(rows.num_rows, dtype=np.bool_)
    for field in schema:
        misfit |= _unfitting(rows.column(field.name).combine_chunks(), field.type)
    return np.flatnonzero(misfit) if misfit.any() else None


def _unfitting(read: pa.Array, kind: pa.DataType) -> npt.NDArray[np.bool_]:
    misfit = np.zeros(len(read), dtype=np.bool_)
    if pa.types.is_struct(kind):
        for part, field in zip(read.flatten(), kind, strict=True):
            misfit |= _unfitting(part, field.type)
    if pa.types.is_integer(kind):
        bounds, numbers = np.iinfo(kind.to_pandas_dtype()), read.fill_null(0).to_numpy()
        with np.errstate(invalid="ignore"):
            fractions = numbers % 1
        misfit |= (fractions != 0) | (numbers < bounds.min) | (numbers > bounds.max) | (abs(numbers) >= 2.0**63)
    return misfit


def _carrier(name: str, kind: pa.DataType, shown: Any, texts: pa.Array) -> pa.DataType:
    """The type in which the parser reads a member, which the first text has as ``shown``; whether times are numbers is
    seen from the first that has one.
    """
    if pa.types.is_timestamp(kind):
        return pa.int64() if isinstance(shown, int) or (shown is None and _numbers(texts, name)) else pa.string()
    if pa.types.is_date32(kind) or pa.types.is_binary(kind) or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_float32(kind):
        # Rounded once from the digits, or once more from the double: json_record does the latter.
        return pa.float64()
    if pa.types.is_decimal(kind):
        return pa.decimal256(_DIGITS, kind.scale)
    if _is_native(kind):
        return kind
    if pa.types.is_struct(kind):
        inside = shown if isinstance(shown, dict) else {}
        return pa.struct(
            [(field.name, _carrier(field.name, field.type, inside.get(field.name), texts)) for field in kind]
        )
    raise NeedsRowDecoding


def _numbers(texts: pa.Array, name: str) -> bool:
    """Whether the member ``name`` of some text is a number, as far as a glance tells."""
    number = rf'"{re.escape(name)}"\s*:\s*-?\d'
    return bool(pc.any(pc.match_substring_regex(texts, number)).as_py())


def _is_native(kind: pa.DataType) -> bool:
    """Whether the parser's own reading is the one wanted, at any depth."""
    if pa.types.is_list(kind):
        return _is_native(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_native(field.type) for field in kind)
    return bool(
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_float64(kind)
    )


def typed(parsed: pa.Array, kind: pa.DataType) -> pa.Array:
    """What the parser read, in its carrier, as a column of ``kind``. Raises NeedsRowDecoding."""
    if parsed.type == kind:
        return parsed
    if pa.types.is_timestamp(kind):
        return _instants(parsed, kind)
    if pa.types.is_struct(kind):
        parts = [typed(part, field.type) for part, field in zip(parsed.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=parsed.is_null())
    try:
        if pa.types.is_binary(kind):
            return pl.Series(parsed).str.decode("base64", strict=True).to_arrow().cast(kind)
        if pa.types.is_time(kind):
            raise NeedsRowDecoding
        if pa.types.is_decimal256(parsed.type):
            return _decimals(parsed, kind)
        return parsed.cast(kind)
    except (pa.ArrowInvalid, pl.exceptions.ComputeError):
        raise NeedsRowDecoding from None


def _decimals(parsed: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return parsed.cast(kind)
    except pa.ArrowInvalid:
        bound = pa.scalar(Decimal(10) ** (kind.precision - kind.scale), pa.decimal256(_DIGITS, kind.scale))
        decline_where(pc.greater_equal(pc.abs(parsed), bound).fill_null(False))
        raise


def _instants(parsed: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_string(parsed.type):
        instants = time_text.instants_of_numbers(parsed, kind.unit)
    else:
        instants = time_text.instants_of_texts(parsed, kind.unit)
        if instants is None:
            decline_where(time_text.unlike_the_others(parsed))
    if instants is None:
        raise NeedsRowDecoding
    return instants.view(kind)


def _with_default(column: pa.Array, member: Member, texts: pa.Array) -> pa.Array:
    if column.null_count == 0:
        return column
    decline_where(pc.and_(column.is_null(), may_contain(texts, member.name)))
    return column.fill_null(pa.scalar(member.default, member.type))
