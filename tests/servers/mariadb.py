"""A MariaDB server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql

from dovetail.services.stack.free_ports import choose_ports
from tests.servers.process import PASSWORD, Server, program, with_shop

_USER = "dovetail"
_SETUP = f"""\
CREATE USER IF NOT EXISTS '{_USER}'@'%' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO '{_USER}'@'%' WITH GRANT OPTION;
"""


@contextmanager
def mariadb(folder: Path, certificates: Path | None = None) -> Iterator[Server]:
    """A running MariaDB with an empty database ``shop``, whose data stands below ``folder``.

    certificates  where ``write_certificates`` has written: it speaks TLS to who asks for it
    """
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    install = [program("mariadb-install-db", package="mariadb-server"), "--no-defaults", f"--datadir={data}"]
    quick = ["--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run([*install, *quick], check=True, capture_output=True)
    setup = folder / "setup.sql"
    setup.write_text(_SETUP)
    (port,) = choose_ports(0)
    argv = [
        program("mariadbd", package="mariadb-server"),
        "--no-defaults",
        "--user=root",
        f"--datadir={data}",
        f"--port={port}",
        "--bind-address=127.0.0.1",
        "--socket=server.sock",
        f"--init-file={setup}",
        "--skip-name-resolve",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-buffer-pool-size=64M",
    ]
    if certificates is not None:
        files = {"cert": "server.pem", "key": "server.key", "ca": "ca.pem"}
        argv += [f"--ssl-{name}={certificates / file}" for name, file in files.items()]
    server = Server("mariadb", argv, folder, port, _USER, answers=_answers, ask=_ask)
    with with_shop(server):
        yield server


def _answers(server: Server) -> bool:
    try:
        _ask(server, "SELECT 1")
    except pymysql.err.OperationalError:
        return False
    return True


def _ask(server: Server, statement: str) -> list[tuple[object, ...]]:
    connection = pymysql.connect(
        host=server.host, port=server.port, user=server.user, password=server.password, autocommit=True
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())
