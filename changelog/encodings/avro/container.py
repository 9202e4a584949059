"""Records as one container of Avro, so that a parser makes columns of them at once.

After each record stands a mark that is a field of the container's records: where a record is longer or shorter than its
schema says, the mark is not where it is expected, and row n is certain to be record n.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

MARK = "__mark"
MARK_BYTES = 16
_MARK_TYPE = {"type": "fixed", "name": "__mark_type", "size": MARK_BYTES}


def marked(fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of the container."""
    return {"type": "record", "name": "root", "fields": [*fields, {"name": MARK, "type": _MARK_TYPE}]}


def mark_of(*arrays: pa.Array) -> bytes:
    """A mark that no value of ``arrays`` was made to hold: it depends on all of them."""
    digest = hashlib.blake2b(digest_size=MARK_BYTES)
    for buffer in (buffer for array in arrays for buffer in array.buffers()):
        if buffer is not None:
            digest.update(buffer)
    return digest.digest()


def wrapped(payloads: pa.Array, schema: dict[str, Any], mark: bytes) -> bytes:
    """``payloads`` (binary, at least one, none null) as a container of the schema ``marked``."""
    text = orjson.dumps(schema)
    whole = pa.ListArray.from_arrays(pa.array([0, len(payloads)], pa.int32()), payloads)
    body = pc.binary_join(whole, mark)[0].as_py()
    head = (b"Obj\x01", _long(1), _text(b"avro.schema"), _text(text), _long(0), mark)
    block = (_long(len(payloads)), _long(len(body) + MARK_BYTES), body, mark, mark)
    return b"".join((*head, *block))


def _text(text: bytes) -> bytes:
    return _long(len(text)) + text


def _long(number: int) -> bytes:
    """A number that is not negative, as Avro writes it."""
    rest, made = number << 1, bytearray()
    while rest > 0x7F:
        made.append(rest & 0x7F | 0x80)
        rest >>= 7
    made.append(rest)
    return bytes(made)
