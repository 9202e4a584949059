"""Whole numbers as Protobuf writes them: seven bits a byte, the least first, the greatest bit set but in the last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_MOST = 10


def varint(number: int) -> bytes:
    """One that is not negative."""
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def number_of(text: bytes, place: int) -> tuple[int, int]:
    """The number that begins at ``place``, and where it ends. Raises IndexError where it has no end, or a far one."""
    number = 0
    for shift in range(0, 7 * _MOST, 7):
        one = text[place]
        place += 1
        number |= (one & 0x7F) << shift
        if one < 0x80:
            return number, place
    raise IndexError


def varints(numbers: Any) -> pa.Array:
    """Binary for each of ``numbers`` (an array of uint64)."""
    shifts = np.arange(_MOST, dtype=np.uint64) * np.uint64(7)
    groups = ((numbers[:, None] >> shifts) & np.uint64(0x7F)).astype(np.uint8)
    # The last group that is not 0, or the first.
    lengths = np.where(groups.any(axis=1), _MOST - np.argmax(groups[:, ::-1] != 0, axis=1), 1)
    places = np.arange(_MOST)
    groups[places < lengths[:, None] - 1] |= 0x80
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    octets = groups[places < lengths[:, None]]
    return pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(ends), pa.py_buffer(octets)])
