"""A store that speaks S3: moto's server, which keeps its objects in memory. A proxy before it is how it is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from pyarrow import fs

from dovetail.runtime.storage.object_store import ObjectStore
from dovetail.runtime.storage.s3_access import S3Access
from dovetail.services.stack.free_ports import choose_ports
from tests.servers.process import PASSWORD, Server
from tests.servers.proxy import Proxy, proxy

BUCKET = "checkpoints"
USER = "tests"


@contextmanager
def object_store(folder: Path, *, refuses: bool = False) -> Iterator[Proxy]:
    """The way to a running store that has the bucket ``BUCKET``, and takes any login.

    refuses  none, once the bucket is made
    """
    (port,) = choose_ports(0)
    argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = Server("moto", argv, folder, port, USER, _answers)
    try:
        server.start()
        with proxy("127.0.0.1", port) as way:
            _files(access(way)).create_dir(BUCKET)
            if refuses:
                httpx.post(f"http://127.0.0.1:{port}/moto-api/reset-auth", content=b"0").raise_for_status()
            yield way
    finally:
        server.kill()


def access(way: Proxy, secret: str = PASSWORD) -> S3Access:
    return S3Access(f"127.0.0.1:{way.port}", "http", "us-east-1", access_key=USER, secret_key=secret, path_style=True)


def place(way: Proxy, prefix: str) -> ObjectStore:
    return ObjectStore(BUCKET, prefix, access(way))


def spark_conf(way: Proxy) -> str:
    """For ``DOVETAIL_SPARK_CONF``."""
    return " ".join(f"{name}={value}" for name, value in access(way).spark_conf.items())


def _files(login: S3Access) -> fs.S3FileSystem:
    return fs.S3FileSystem(
        access_key=login.access_key,
        secret_key=login.secret_key,
        region=login.region,
        scheme=login.scheme,
        endpoint_override=login.endpoint,
        allow_bucket_creation=True,
    )


def _answers(server: Server) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{server.port}/moto-api/").is_success
    except httpx.TransportError:
        return False
