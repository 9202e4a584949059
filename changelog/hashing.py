"""64-bit hashes of rows, vectorised, the same in every process and on every machine.

They cut rows into buckets and order arrangements, so they are part of what a checkpoint means: never change them.
Equal values of one type, as ``changelog.values`` has it, have equal hashes; NULL is a value of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.values import normal_numbers, normalised_array, numbers_of

Hashes = npt.NDArray[np.uint64]

_SEED = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xA0761D6478BD642F)
_LONG = 256
"""Texts above this many bytes are hashed one by one: the loop over words would be as long as the longest."""


def mixed(values: Hashes) -> Hashes:
    """The finalizer of splitmix64: a bijection under which every input bit moves every output bit."""
    with np.errstate(over="ignore"):
        values = values + _SEED
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def row_hashes(rows: pa.Table, columns: Sequence[str]) -> Hashes:
    """One hash for each row over ``columns``, in their order; without columns all rows are equal."""
    hashes = np.zeros(rows.num_rows, dtype=np.uint64)
    for name in columns:
        hashes = mixed(hashes ^ column_hashes(_one_array(rows.column(name))))
    return hashes


def column_hashes(column: pa.Array) -> Hashes:
    hashes = _hashes_of_type(column)
    if column.null_count:
        hashes = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def _hashes_of_type(column: pa.Array) -> Hashes:
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_floating(kind):
        return mixed(normal_numbers(numbers_of(column.cast(pa.float64()))).view(np.uint64))
    elif pa.types.is_temporal(kind):
        column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    elif not pa.types.is_integer(kind):
        return _text_hashes(_as_binary(column))
    filled = column.fill_null(0) if column.null_count else column
    return mixed(filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False).view(np.uint64))


def _as_binary(column: pa.Array) -> pa.LargeBinaryArray:
    if is_text(column.type):
        return column.cast(pa.large_binary())
    if pa.types.is_decimal(column.type):
        return column.cast(pa.string()).cast(pa.large_binary())
    values = normalised_array(column).to_pylist()
    return pa.array([None if value is None else repr(value).encode() for value in values], pa.large_binary())


def is_text(kind: pa.DataType) -> bool:
    """Whether values of the type are texts or bytes, of any length."""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _text_hashes(column: pa.LargeBinaryArray) -> Hashes:
    _, offsets_buffer, content = column.buffers()
    count = len(column)
    if count == 0:
        return np.zeros(0, dtype=np.uint64)
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[column.offset : column.offset + count + 1]
    start, lengths = offsets[:-1], np.diff(offsets)
    hashes = mixed(lengths.astype(np.uint64))
    words = _words_at_every_byte(content, int(offsets[-1]))
    longest = int(min(lengths.max(), _LONG))
    for position in range(0, longest, 8):
        active = np.flatnonzero((lengths > position) & (lengths <= _LONG))
        word = words[start[active] + position]
        spare = np.clip(8 - (lengths[active] - position), 0, 7).astype(np.uint64) * np.uint64(8)
        hashes[active] = mixed(hashes[active] ^ ((word << spare) >> spare))
    for row in np.flatnonzero(lengths > _LONG):
        # The bytes of the buffer: a NULL has no value, but may have bytes.
        text = memoryview(content)[offsets[row] : offsets[row + 1]]
        hashes[row] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    return hashes


def _words_at_every_byte(content: pa.Buffer | None, size: int) -> Hashes:
    """The little-endian word that starts at each byte of ``content``, zeros beyond its end."""
    padded = np.zeros(size + 8, dtype=np.uint8)
    if content is not None:
        padded[:size] = np.frombuffer(content, dtype=np.uint8)[:size]
    words: Hashes = np.ndarray((size + 1,), dtype="<u8", buffer=padded.data, strides=(1,))
    return words


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
