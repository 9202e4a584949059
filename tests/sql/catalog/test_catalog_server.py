"""The catalog in a MariaDB whose database has a character set of one byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.sql.catalog import Actual, Catalog, Query
from tests.servers import mariadb
from tests.servers.process import Server
from tests.sql.catalog.relations import create

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with mariadb(tmp_path_factory.mktemp("mariadb")) as running:
        yield running


@pytest.mark.parametrize("driver", ["mysql", "mariadb"])
def test_all_of_unicode_comes_back_from_it(server: Server, driver: str, tmp_path: Path) -> None:
    assert server.ask is not None
    server.ask(server, f"CREATE DATABASE catalog_{driver} CHARACTER SET latin1")
    login = f"{server.user}:{server.password}@{server.host}:{server.port}"
    catalog = Catalog.open(f"{driver}+pymysql://{login}/catalog_{driver}")
    text = "CREATE MATERIALIZED VIEW v AS SELECT 'ŝ漢🦆' AS s FROM orders"
    for ddl in ("CREATE STREAM orders (k int)", "CREATE STREAM Orders (k int)"):
        create(catalog, ddl)
    plan = "Join\n├─ orders\n└─ users 🦆"
    create(catalog, text, "orders", query=Query("v", text, plan, "f00d", "v"))
    catalog.report(catalog.query("v").id, now_ms=2, actual=Actual.FAILED, error="„ŝ漢🦆“")
    found = catalog.query("v")
    assert (found.sql, found.plan, found.error) == (text, plan, "„ŝ漢🦆“")
    assert catalog.get("v").ddl == text
    catalog.close()
