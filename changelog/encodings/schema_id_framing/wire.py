"""The head of a value: a zero byte, and the id of its schema in four bytes, the greatest first."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.errors import RecordRejected

HEAD_BYTES = 5
NO_HEAD = -1
_FAR = (1 << 31) - 1
_HEAD = struct.Struct(">bI")


def head(schema_id: int) -> bytes:
    return _HEAD.pack(0, schema_id)


def schema_ids(values: pa.Array) -> npt.NDArray[np.int64]:
    """Of each value (binary, none null) the id of its schema; NO_HEAD where it begins otherwise."""
    _, offsets, data = values.buffers()
    starts = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    long_enough = np.diff(starts) >= HEAD_BYTES
    found = np.full(len(values), NO_HEAD, dtype=np.int64)
    if long_enough.any():
        heads = np.frombuffer(data, np.uint8)[starts[:-1][long_enough, None] + np.arange(HEAD_BYTES)].astype(np.int64)
        ids = heads[:, 1:] @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
        found[long_enough] = np.where(heads[:, 0] == 0, ids, NO_HEAD)
    return found


def payloads(values: pa.Array) -> pa.Array:
    """What follows the heads."""
    # Without an end Arrow asks for a buffer of negative size where what is left is shorter than the start.
    return pc.binary_slice(values, HEAD_BYTES, _FAR)


def parted(value: bytes, place: str) -> tuple[int, bytes]:
    """The id of the schema, and what follows. Raises RecordRejected."""
    if len(value) < HEAD_BYTES or value[0] != 0:
        shown = value[:HEAD_BYTES].hex(" ") or "nothing"
        raise RecordRejected(f"the {place} does not begin with 00 and the id of a schema, but with {shown}")
    return _HEAD.unpack_from(value)[1], value[HEAD_BYTES:]
