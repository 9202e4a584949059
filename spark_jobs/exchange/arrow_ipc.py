"""A batch of rows as one value: an Arrow IPC stream, lz4-compressed.

Spark moves few large rows well and many small ones badly, so rows cross the exchange and enter the state packed.
"""

from __future__ import annotations

import pyarrow as pa

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


def pack(rows: pa.Table) -> bytes:
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, rows.schema, options=_LZ4) as writer:
        writer.write_table(rows.combine_chunks())
    packed: bytes = buffer.getvalue().to_pybytes()
    return packed


def unpack(blob: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()
