"""A ClickHouse server."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from clickhouse_driver import Client
from clickhouse_driver.errors import Error

from dovetail.services.stack.free_ports import choose_ports
from tests.servers.process import PASSWORD, Server, program, with_shop

# While a server starts, each refused connection would be logged with a traceback.
logging.getLogger("clickhouse_driver").addHandler(logging.NullHandler())

_CONFIG = """<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <tcp_port>{tcp}</tcp_port>
  <http_port>{http}</http_port>
  <path>{folder}/data/</path>
  <tmp_path>{folder}/tmp/</tmp_path>
  <user_files_path>{folder}/files/</user_files_path>
  <format_schema_path>{folder}/schemas/</format_schema_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <timezone>Europe/Berlin</timezone>
  <mark_cache_size>67108864</mark_cache_size>{more}
</yandex>
"""
_SECURE = """
  <tcp_port_secure>{port}</tcp_port_secure>
  <openSSL><server>
    <certificateFile>{certificates}/server.pem</certificateFile>
    <privateKeyFile>{certificates}/server.key</privateKeyFile>
    <caConfig>{certificates}/ca.pem</caConfig>
    <verificationMode>{mode}</verificationMode>
  </server></openSSL>"""
_USERS = """<yandex>
  <profiles><default><max_threads>2</max_threads></default></profiles>
  <quotas><default></default></quotas>
  <users>
    <dovetail>
      <password_sha256_hex>{digest}</password_sha256_hex>
      <networks><ip>::/0</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
    </dovetail>
    <default>
      <password></password>
      <networks><ip>::/0</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
    </default>
  </users>
</yandex>
"""


@contextmanager
def clickhouse(folder: Path, certificates: Path | None = None, mode: str = "none") -> Iterator[Server]:
    """A running ClickHouse with an empty database ``shop``; its clock is in Berlin, so that zones show in tests.

    certificates  where ``write_certificates`` has written: it speaks TLS on a port of its own
    mode          ``strict``: and asks who comes there for a certificate
    """
    folder.mkdir(parents=True, exist_ok=True)
    tcp, http, secure = choose_ports(0, 0, 0)
    more = "" if certificates is None else _SECURE.format(port=secure, certificates=certificates, mode=mode)
    config = folder / "config.xml"
    config.write_text(_CONFIG.format(tcp=tcp, http=http, folder=folder, more=more))
    digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
    (folder / "users.xml").write_text(_USERS.format(digest=digest))
    argv = [program("clickhouse-server", package="clickhouse-server"), f"--config-file={config}"]
    server = Server("clickhouse", argv, folder, tcp, "dovetail", _answers, _ask, http_port=http, secure_port=secure)
    with with_shop(server):
        yield server


def _answers(server: Server) -> bool:
    try:
        _ask(server, "SELECT 1")
    except (Error, OSError):
        return False
    return True


def _ask(server: Server, statement: str) -> list[tuple[object, ...]]:
    if statement.lstrip().upper().startswith("INSERT"):
        # In the native protocol, VALUES do not stand in the statement.
        login = {"X-ClickHouse-User": server.user, "X-ClickHouse-Key": server.password}
        address = f"http://{server.host}:{server.http_port}/"
        answer = httpx.post(address, content=statement.encode(), headers=login, timeout=30)
        assert answer.is_success, answer.text
        return []
    with Client(server.host, server.port, user=server.user, password=server.password) as client:
        rows: list[tuple[object, ...]] = client.execute(statement)
        return rows if isinstance(rows, list) else []
