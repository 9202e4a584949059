"""From the name of a place, as settings and the catalog have it, to the place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.runtime.storage.s3_access import S3Access
from dovetail.runtime.storage.storage import Storage

if TYPE_CHECKING:
    from dovetail.runtime.storage.object_store import ObjectStore

_SCHEME = "s3a://"


def is_object_store(location: str) -> bool:
    return location.startswith(_SCHEME)


def checked_location(given: str) -> str:
    """The location as it is kept: an absolute path, or a URL. ValueError for a URL of another kind."""
    scheme, found, rest = given.partition("://")
    if not found:
        return str(Path(given).expanduser().absolute())
    if scheme != "s3a" or not rest.strip("/"):
        raise ValueError(f'"{given}" is neither a folder nor s3a://bucket/prefix')
    return given.rstrip("/")


def storage_at(location: str, spark_conf: Mapping[str, str]) -> Storage:
    """spark_conf  ``fs.s3a`` in it says how an object store is reached"""
    if not is_object_store(location):
        return LocalFolder(Path(location))
    return _object_store(location, S3Access.of(_parts(location)[0], spark_conf))


def beside(storage: Storage, location: str) -> Storage | None:
    """Another place that is reached as ``storage`` is; None where that cannot be told from here."""
    if not is_object_store(location):
        return LocalFolder(Path(location))
    if not is_object_store(storage.location) or _parts(storage.location)[0] != _parts(location)[0]:
        return None
    return _object_store(location, cast("ObjectStore", storage).access)


def expect_usable(storage: Storage) -> None:
    """Raises StorageRefused, ServiceUnavailable where an object store cannot be used; of folders nothing is asked."""
    if storage.folder is None:
        cast("ObjectStore", storage).expect_usable()


def expect_answer(storage: Storage) -> None:
    """As ``expect_usable``, by the cheapest question: for whoever asks all the time."""
    if storage.folder is None:
        cast("ObjectStore", storage).expect_bucket()


def hadoop_conf(storage: Storage) -> Mapping[str, str]:
    """What Spark has to be told to reach the place."""
    return {} if storage.folder is not None else cast("ObjectStore", storage).access.spark_conf


def _parts(location: str) -> tuple[str, str]:
    """Bucket and prefix."""
    bucket, _, prefix = location.removeprefix(_SCHEME).partition("/")
    return bucket, prefix.strip("/")


def _object_store(location: str, access: S3Access) -> ObjectStore:
    # Here, and not above: to load what speaks to object stores takes time, and whoever has none needs none of it.
    from dovetail.runtime.storage.object_store import ObjectStore  # noqa: PLC0415

    return ObjectStore(*_parts(location), access)


def folder_name(name: str) -> str:
    """The name of one folder, for what a statement has named: a path in it would lead elsewhere."""
    return re.sub(r"^\.+|[^\w.-]", "_", name) or "_"
