"""Whether folders can be written to, asked before anything is started in them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dovetail.changelog.errors import StackError
from dovetail.runtime.faults import remedy
from dovetail.runtime.processes.own_files import tighten
from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.places import expect_usable, is_object_store, storage_at
from dovetail.runtime.storage.spark_conf import read_conf

_PROBE = b"\0" * (1 << 20)
"""What a start writes at the least, logs and all."""


def expect_writable(settings: Settings) -> None:
    """Raises StackError for a folder that cannot be made, or takes no file of the size of a start; StorageRefused,
    ServiceUnavailable for an object store that cannot be used.
    """
    if is_object_store(settings.checkpoints):
        expect_usable(storage_at(settings.checkpoints, read_conf(settings.spark_conf or "")))
    tighten(settings.data_dir)
    for setting, folder in _folders(settings).items():
        try:
            _probe(folder)
        except OSError as error:
            raise StackError(
                f"{folder} cannot be written to: {error.strerror}",
                where=f"the folder of {setting}",
                fix=f"{remedy(error)}; or set {setting} to a folder that can be written to",
            ) from error


def _folders(settings: Settings) -> Mapping[str, Path]:
    """Each with the setting that names it."""
    return {
        "DOVETAIL_DATA_DIR": settings.data_dir,
        **({} if is_object_store(settings.checkpoints) else {"DOVETAIL_CHECKPOINT_DIR": Path(settings.checkpoints)}),
        "DOVETAIL_LOCAL_COPY_DIR": settings.local_copies,
    }


def _probe(folder: Path) -> None:
    """Not by permissions, which say nothing of a full disk, and mean nothing to root."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        written = file.write(_PROBE)
        # A write that is cut short is no error; the next one is.
        file.write(_PROBE[written:])
        os.fsync(file.fileno())
