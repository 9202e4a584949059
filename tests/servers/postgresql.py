"""A PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from dovetail.services.stack.free_ports import choose_ports
from tests.servers.process import PASSWORD, Server, program

_USER = "dovetail"
_ACCOUNT = "postgres"
_FILES = {"cert": "server.pem", "key": "server.key", "ca": "ca.pem"}
_BINARIES = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]


@contextmanager
def postgresql(folder: Path, certificates: Path | None = None) -> Iterator[Server]:
    """A running PostgreSQL with an empty database ``shop``.

    certificates  where ``write_certificates`` has written: it speaks TLS to who asks for it

    It refuses to be run by root: then the account ``postgres`` of its package runs it, in a folder of its own, since
    pytest's folders are closed to other accounts.
    """
    if os.geteuid() != 0:
        with _running(folder, None, certificates) as server:
            yield server
        return
    with tempfile.TemporaryDirectory(prefix="postgresql-", ignore_cleanup_errors=True) as own:
        shutil.chown(own, _ACCOUNT)
        with _running(Path(own), _ACCOUNT, certificates) as server:
            yield server


@contextmanager
def _running(folder: Path, os_user: str | None, certificates: Path | None) -> Iterator[Server]:
    folder.mkdir(parents=True, exist_ok=True)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    initdb = [program("initdb", *_BINARIES, package="postgresql"), "--no-sync", "--auth=scram-sha-256"]
    account = [f"--username={_USER}", f"--pwfile={secret}", f"--pgdata={folder / 'data'}"]
    locale = ["--locale=C", "--encoding=UTF8"]
    subprocess.run([*initdb, *account, *locale], check=True, capture_output=True, user=os_user, cwd=folder)
    (port,) = choose_ports(0)
    options: dict[str, object] = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "fsync": "off",
        "timezone": "Europe/Berlin",
    }
    if certificates is not None:
        options |= {"ssl": "on"} | {f"ssl_{name}_file": folder / file for name, file in _FILES.items()}
        for file in _FILES.values():
            # It reads no key that others could read.
            shutil.copy(certificates / file, folder)
            (folder / file).chmod(0o600)
            if os_user is not None:
                shutil.chown(folder / file, os_user)
    argv = [program("postgres", *_BINARIES, package="postgresql"), "-D", str(folder / "data")]
    argv += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    server = Server("postgresql", argv, folder, port, _USER, answers=_answers, ask=_ask, os_user=os_user)
    try:
        server.start()
        _ask(server, "CREATE DATABASE shop", database="postgres")
        yield server
    finally:
        server.kill()


def _answers(server: Server) -> bool:
    try:
        _ask(server, "SELECT 1", database="postgres")
    except psycopg.OperationalError:
        return False
    return True


def _ask(server: Server, statement: str, database: str = "shop") -> list[tuple[object, ...]]:
    with psycopg.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        dbname=database,
        autocommit=True,
    ) as connection:
        cursor = connection.execute(statement.encode())
        return list(cursor.fetchall()) if cursor.description else []
