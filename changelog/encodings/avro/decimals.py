"""Decimals as Avro has them: the bytes of a whole number, the greatest first, in two's complement."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_WORD = 16


def of_bytes(values: pa.Array, precision: int, scale: int) -> pa.Array:
    """Binary as decimals. Raises ArrowInvalid where a number has more than 16 bytes, or more digits than told."""
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    _, offsets, data = values.buffers()
    starts = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    lengths = np.diff(starts)
    if len(lengths) and lengths.max() > _WORD:
        raise pa.ArrowInvalid(f"a decimal of {lengths.max()} bytes; {_WORD} are the most")
    octets = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    words = np.zeros((len(values), _WORD), dtype=np.uint8)
    for length in np.unique(lengths[lengths > 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        taken = octets[starts[rows, None] + np.arange(length)]
        words[rows, :length] = taken[:, ::-1]
        words[rows, length:] = np.where(taken[:, :1] >= 0x80, 0xFF, 0)
    valid = None if values.null_count == 0 else values.is_valid().to_numpy(zero_copy_only=False)
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    made = pa.Array.from_buffers(pa.decimal128(38, scale), len(values), [bits, pa.py_buffer(words)])
    return made.cast(pa.decimal128(min(precision, 38), scale))


def as_bytes(numbers: pa.Array) -> pa.Array:
    """Decimals of 128 bits as binary of 16 bytes each."""
    words = np.frombuffer(numbers.buffers()[1], np.uint8).reshape(-1, _WORD)
    octets = np.ascontiguousarray(words[numbers.offset : numbers.offset + len(numbers), ::-1])
    starts = pa.py_buffer(np.arange(0, (len(numbers) + 1) * _WORD, _WORD, dtype=np.int32))
    valid = None if numbers.null_count == 0 else numbers.is_valid().to_numpy(zero_copy_only=False)
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(numbers), [bits, starts, pa.py_buffer(octets)])
