"""Tables as files of Arrow in a place of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dovetail.runtime.storage.storage import Storage


def read_arrow(storage: Storage, name: str) -> pa.Table:
    """Memory-mapped where it lies in a folder."""
    if storage.folder is not None:
        return map_arrow(storage.folder / name)
    return pa.ipc.open_file(pa.py_buffer(storage.read(name))).read_all()


def map_arrow(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def write_arrow(storage: Storage, name: str, rows: pa.Table) -> None:
    with storage.writing(name) as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
