"""A prefix of a bucket in a store that speaks S3.

An object is there when its last byte has been put, and not before. A store must answer with what was put last, as
Amazon's and its kin do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO, cast

import pyarrow as pa
from pyarrow import fs

from dovetail.changelog.errors import DovetailError, ServiceUnavailable, StorageRefused
from dovetail.runtime.storage.s3_access import S3Access

_ANSWER_S = 10.0
_NO_BUCKET = "create the bucket, or name another one in DOVETAIL_CHECKPOINT_DIR"
_REGION = "set spark.hadoop.fs.s3a.endpoint.region in DOVETAIL_SPARK_CONF, or AWS_REGION, to the bucket's"
_LOGIN = (
    "set spark.hadoop.fs.s3a.access.key and .secret.key in DOVETAIL_SPARK_CONF, or AWS_ACCESS_KEY_ID and"
    " AWS_SECRET_ACCESS_KEY, to what the store knows, and let them read, write, list and delete there"
)
_LOGINS = (
    "ACCESS_DENIED",
    "INVALID_ACCESS_KEY_ID",
    "SIGNATURE_DOES_NOT_MATCH",
    "INVALID_CLIENT_TOKEN_ID",
    "EXPIRED_TOKEN",
    "NO_CREDENTIALS",
    "HTTP status 401",
    "HTTP status 403",
)
_REACH = (
    "see that the store runs, and that spark.hadoop.fs.s3a.endpoint in DOVETAIL_SPARK_CONF, or AWS_ENDPOINT_URL, names"
    " it; it is tried again by itself"
)


@dataclass(frozen=True)
class ObjectStore:
    """A ``Storage``: the objects of ``bucket`` whose keys begin with ``prefix``."""

    bucket: str
    prefix: str
    access: S3Access

    @property
    def location(self) -> str:
        return f"s3a://{self._key('')}".rstrip("/")

    @property
    def url(self) -> str:
        return self.location

    @property
    def folder(self) -> None:
        return None

    def inside(self, name: str) -> ObjectStore:
        return ObjectStore(self.bucket, "/".join(filter(None, [self.prefix, name])), self.access)

    def read(self, name: str) -> bytes:
        with self._errors_translated(), self._files.open_input_stream(self._key(name)) as object_:
            return bytes(object_.read())

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        with self._errors_translated(), self._files.open_input_stream(self._key(name)) as object_:
            yield cast(BinaryIO, object_)

    def size(self, name: str) -> int:
        with self._errors_translated():
            found = self._files.get_file_info(self._key(name))
            if not found.is_file:
                raise FileNotFoundError(self._key(name))
            return int(found.size)

    def put(self, name: str, content: bytes) -> None:
        with self.writing(name) as object_:
            object_.write(content)

    @contextmanager
    def writing(self, name: str) -> Iterator[pa.NativeFile]:
        with self._errors_translated(absent=True), self._files.open_output_stream(self._key(name)) as object_:
            yield object_

    def names(self, under: str = "") -> list[str]:
        return [found.base_name for found in self._listed(under, recursive=False)]

    def files(self, under: str = "") -> list[str]:
        begins = len(self._key(""))
        return [found.path[begins:] for found in self._listed(under, recursive=True) if found.is_file]

    def remove(self, name: str) -> None:
        with self._errors_translated(), suppress(FileNotFoundError):
            self._files.delete_file(self._key(name))

    def clear(self) -> None:
        with self._errors_translated(), suppress(FileNotFoundError):
            self._files.delete_dir(self._key("").rstrip("/"))

    def sync(self, changed_since_s: float = 0.0) -> None:
        """A store has what it has taken."""

    def expect_bucket(self) -> None:
        """Raises StorageRefused or ServiceUnavailable where the bucket is not to be had: the cheapest question."""
        with self._errors_translated():
            if self._files.get_file_info(self.bucket).type is fs.FileType.NotFound:
                raise self._refused(f"there is no bucket {self.bucket}", _NO_BUCKET)

    def expect_usable(self) -> None:
        """Raises StorageRefused or ServiceUnavailable where checkpoints cannot be kept here."""
        self.expect_bucket()
        self.names()

    # -- the store

    @property
    def _files(self) -> fs.S3FileSystem:
        return _file_system(self.access)

    def _key(self, name: str) -> str:
        return "/".join([*filter(None, [self.bucket, self.prefix]), name])

    def _listed(self, under: str, *, recursive: bool) -> list[fs.FileInfo]:
        with self._errors_translated():
            place = self._key(under).rstrip("/")
            return list(self._files.get_file_info(fs.FileSelector(place, allow_not_found=True, recursive=recursive)))

    @contextmanager
    def _errors_translated(self, *, absent: bool = False) -> Iterator[None]:
        """absent  whether what is not there is the bucket"""
        try:
            yield
        except FileNotFoundError as failure:
            if absent:
                raise self._of(failure) from None
            raise
        except OSError as failure:
            if failure.errno:
                raise  # of the disk that is copied to
            raise self._of(failure) from None

    def _of(self, failure: OSError) -> DovetailError:
        said = str(failure)
        if isinstance(failure, FileNotFoundError) or "NO_SUCH_BUCKET" in said:
            return self._refused(f"there is no bucket {self.bucket}", _NO_BUCKET)
        if any(word in said for word in _LOGINS):
            return self._refused("the object store refuses its user", _LOGIN)
        if "HTTP status 301" in said:
            return self._refused(f"the bucket {self.bucket} is in another region", _REGION)
        return ServiceUnavailable(
            f"the object store does not answer: {said.partition(' during ')[2].partition(': ')[2] or said}",
            where=self._where,
            fix=_REACH,
        )

    def _refused(self, what: str, fix: str) -> StorageRefused:
        return StorageRefused(what, where=self._where, fix=fix)

    @property
    def _where(self) -> str:
        return f"{self.location} at {self.access.endpoint or 'Amazon S3'}"


@lru_cache(maxsize=16)
def _file_system(access: S3Access) -> fs.S3FileSystem:
    """One for a process: it keeps connections, and threads that a fork would lose."""
    return fs.S3FileSystem(
        access_key=access.access_key or None,
        secret_key=access.secret_key or None,
        session_token=access.session_token or None,
        region=access.region or None,
        scheme=access.scheme,
        endpoint_override=access.endpoint or None,
        force_virtual_addressing=bool(access.endpoint) and not access.path_style,
        connect_timeout=_ANSWER_S,
        request_timeout=_ANSWER_S,
        # Small objects leave in one request, without a round trip before.
        allow_delayed_open=True,
        background_writes=False,
    )
