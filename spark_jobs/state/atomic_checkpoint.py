"""A checkpoint in the making: whole at the end, or not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.broker.query_origin import ORIGIN_FILE, QueryOrigin
from dovetail.runtime.storage.storage import Storage, copy_file
from dovetail.spark_jobs.state.checkpoint import Checkpoint


@contextmanager
def atomic_checkpoint(place: Storage) -> Iterator[None]:
    """What lies in ``place`` goes at the beginning, and again where what makes the checkpoint fails."""
    place.clear()
    try:
        yield
    except BaseException:
        place.clear()
        raise


def complete(place: Storage, origin: QueryOrigin) -> None:
    """Only what has an origin is a checkpoint: all else of it is on the disk by then."""
    place.sync()
    place.put(ORIGIN_FILE, origin.text.encode())


def copy_snapshots(checkpoint: Checkpoint, place: Storage) -> None:
    for table in checkpoint.snapshots.files():
        copy_file(checkpoint.snapshots, table, Checkpoint(place).snapshots)
