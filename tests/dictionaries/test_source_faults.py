"""What a source says when it cannot be asked: at once, clearly, and without the password."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from dovetail.changelog.errors import DovetailError, ServiceUnavailable, SourceRefused, UnknownName, Unsupported
from dovetail.changelog.schema import Column
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import LayoutSpec, SourceSpec
from dovetail.dictionaries.definition.options import Parameter
from dovetail.dictionaries.open import Checkable, open_source, reflect
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.resources import Resources
from tests.dictionaries.backends import INSTANT, SERVERS, ClickHouse, Sqlite, SqlServer
from tests.servers import proxy
from tests.servers.process import PASSWORD

COLUMNS = (Column("id", pa.int64()), Column("name", pa.string()))
THREADS = 10
ROWS = [(1, "a"), (2, "b")]
Served = SqlServer | ClickHouse


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.services) for name in SERVERS], scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with SERVERS[request.param](tmp_path_factory.mktemp("backend") / "server") as running:
        assert isinstance(running, SqlServer | ClickHouse)
        running.put("products", COLUMNS, ["id"], ROWS)
        yield running


def opened(served: Served, columns: tuple[Column, ...] = COLUMNS, **changed: Parameter) -> Checkable:
    parameters: dict[str, Parameter] = {"table": "products", **changed}
    source = served.source(**parameters)
    return open_source(define("d", columns, [columns[0].name], source, LayoutSpec("direct")), served.resources)


def refusal(source: Checkable) -> DovetailError:
    started = time.monotonic()
    with pytest.raises(DovetailError) as caught:
        source.check()
    assert time.monotonic() - started < 10
    assert PASSWORD not in str(caught.value)
    source.close()
    return caught.value


@pytest.mark.parametrize(
    ("changed", "kind", "said"),
    [
        ({"password": "wrong-word"}, SourceRefused, "password"),
        ({"db": "warehouse"}, SourceRefused, 'no database "warehouse"'),
        ({"table": "prodcts"}, SourceRefused, 'no table "prodcts"'),
    ],
    ids=["password", "database", "table"],
)
def test_what_is_wrong_is_said_with_host_and_database(
    served: Served, changed: dict[str, Parameter], kind: type[DovetailError], said: str
) -> None:
    error = refusal(opened(served, COLUMNS, **changed))
    assert isinstance(error, kind)
    assert said in error.what
    assert f"{served.server.host}:{served.server.port}" in error.where
    assert str(changed.get("db", "shop")) in error.where
    assert "wrong-word" not in str(error)


def test_a_key_column_that_the_source_lacks(served: Served) -> None:
    error = refusal(opened(served, (Column("ident", pa.int64()), COLUMNS[1])))
    assert isinstance(error, UnknownName)
    assert 'no key column "ident"' in error.what


def test_a_type_that_does_not_fit(served: Served) -> None:
    error = refusal(opened(served, (COLUMNS[0], Column("name", pa.int32()))))
    assert isinstance(error, Unsupported)
    assert '"name"' in error.what
    assert "string" in error.fix


def test_a_type_that_does_not_fit_is_told_in_the_words_of_sql(served: Served) -> None:
    there = (Column("id", pa.int64()), Column("price", pa.decimal128(10, 2)), Column("note", pa.string()))
    served.put("priced", there, ["id"], [])
    for column, fix in (
        (Column("price", pa.date32()), 'declare "price" as decimal(10, 2), or as string'),
        (Column("note", pa.int32()), 'declare "note" as string'),
    ):
        assert refusal(opened(served, (COLUMNS[0], column), table="priced")).fix == fix


@pytest.mark.services
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_a_password_of_any_letters_and_signs(kind: str, tmp_path: Path) -> None:
    with SERVERS[kind](tmp_path / "server") as served:
        assert isinstance(served, SqlServer)
        served.put("products", COLUMNS, ["id"], ROWS)
        for number, password in enumerate(["größer-als-密码", "a b:c/d@e#f%20\"g\\;`h'i"]):
            user = f"odd{number}"
            mysql, postgresql = f"CREATE USER {user} IDENTIFIED BY", f"CREATE USER {user} SUPERUSER PASSWORD"
            served.server.execute(f"{mysql if kind == 'mysql' else postgresql} {served.text(password)}")
            if kind == "mysql":
                served.server.execute(f"GRANT SELECT ON shop.* TO {user}")
            source = opened(served, user=user, password=password)
            assert source.fetch(["id"], [1]) == {1: (ROWS[0],)}
            source.close()


def test_a_port_of_another_protocol(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        parameters: dict[str, Parameter] = {"host": "127.0.0.1", "port": silent.getsockname()[1], "db": "shop"}
        limits: dict[str, Parameter] = {
            "table": "products",
            "connect_timeout": 0.5,
            "timeout": 0.5,
            "load_timeout": 0.5,
        }
        source = SourceSpec("clickhouse", parameters | limits)
        error = refusal(
            open_source(define("d", COLUMNS, ["id"], source, LayoutSpec("direct")), Resources(None, Outside(tmp_path)))
        )
    assert isinstance(error, ServiceUnavailable)
    assert "no answer in time" in error.what
    assert "not that of HTTP" in error.fix


def test_nobody_listens(served: Served) -> None:
    error = refusal(opened(served, port=1))
    assert isinstance(error, ServiceUnavailable)
    assert error.retry
    assert "127.0.0.1:1" in error.where


def test_a_server_that_stops_and_comes_back(served: Served) -> None:
    source = opened(served)
    assert source.fetch(["id"], [1]) == {1: (ROWS[0],)}
    served.server.stop()
    with pytest.raises(ServiceUnavailable):
        source.fetch(["id"], [1])
    served.server.start()
    assert source.fetch(["id"], [2]) == {2: (ROWS[1],)}
    source.close()


def test_a_frozen_server_is_given_up_in_time(served: Served) -> None:
    source = opened(served, timeout=0.5, connect_timeout=2)
    assert source.fetch(["id"], [1]) == {1: (ROWS[0],)}
    with proxy(served.server.host, served.server.port) as between:
        slow = opened(served, timeout=0.5, connect_timeout=2, port=between.port)
        assert slow.fetch(["id"], [1]) == {1: (ROWS[0],)}
        between.latency_s = 3.0
        started = time.monotonic()
        with pytest.raises(ServiceUnavailable):
            slow.fetch(["id"], [1])
        assert time.monotonic() - started < 8
        between.latency_s = 0.0
        between.cut()
        assert slow.fetch(["id"], [1]) == {1: (ROWS[0],)}
        slow.close()
    source.close()


def test_threads_that_come_and_go_leave_no_connections_behind(served: Served) -> None:
    """As the lanes of a worker do, at each rebalance. What other tests have left in the process may go meanwhile."""
    source = opened(served)
    descriptors = []
    for _ in range(3):
        for _ in range(THREADS):
            thread = threading.Thread(target=source.fetch, args=(["id"], [1]))
            thread.start()
            thread.join()
        descriptors.append(psutil.Process().num_fds())
    source.close()
    assert descriptors[-1] - descriptors[0] < THREADS


def test_a_query_in_the_place_of_a_table(served: Served) -> None:
    query = f"SELECT id, name FROM {served.named('products')} WHERE name <> 'a:%'"
    source = served.source(query=query)
    made = open_source(define("d", COLUMNS, ["id"], source, LayoutSpec("direct")), served.resources)
    made.check()
    assert made.fetch(["id"], [1, 3]) == {1: (ROWS[0],)}
    assert sorted(row for piece in made.load() for row in piece) == ROWS
    made.close()


def test_a_condition_and_an_expression(served: Served) -> None:
    source = served.source(table="products", where="name = 'b'")
    expressions = {"name": "concat(name, '!')"}
    definition = define("d", COLUMNS, ["id"], source, LayoutSpec("direct"), expressions=expressions)
    made = open_source(definition, served.resources)
    made.check()
    assert made.fetch(["id"], [1, 2]) == {2: ((2, "b!"),)}
    made.close()


def test_odd_names_are_quoted(served: Served) -> None:
    columns = (Column("select", pa.int64()), Column('a b"c`d;%s:x', pa.string()))
    source = served.put("or der;--", columns, ["select"], ROWS)
    made = open_source(define("d", columns, ["select"], source, LayoutSpec("direct")), served.resources)
    made.check()
    assert made.fetch(["select"], [1, 2]) == {1: (ROWS[0],), 2: (ROWS[1],)}
    made.close()


def test_the_columns_of_a_table(served: Served) -> None:
    columns = (
        Column("id", pa.int64()),
        Column("name", pa.string()),
        Column("price", pa.decimal128(10, 2)),
        Column("weight", pa.float64()),
        Column("day", pa.date32()),
        Column("at", INSTANT),
    )
    source = served.put("described", columns, ["id"], [])
    found = reflect(source, served.resources.outside)
    assert [(column.name, column.type) for column in found] == [(column.name, column.type) for column in columns]


def test_a_password_in_the_environment_or_a_file(
    served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOVETAIL_SECRET_SHOP", PASSWORD)
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    for form, given in (("password_env", "DOVETAIL_SECRET_SHOP"), ("password_file", str(tmp_path / "secret"))):
        parameters = dict(served.source(table="products").parameters) | {form: given}
        del parameters["password"]
        source = SourceSpec(served.kind, parameters)
        made = open_source(
            define("d", COLUMNS, ["id"], source, LayoutSpec("direct")), Resources(None, Outside(tmp_path))
        )
        made.check()
        made.close()
    monkeypatch.delenv("DOVETAIL_SECRET_SHOP")
    parameters = dict(served.source(table="products").parameters) | {"password_env": "DOVETAIL_SECRET_SHOP"}
    del parameters["password"]
    made = open_source(
        define("d", COLUMNS, ["id"], SourceSpec(served.kind, parameters), LayoutSpec("direct")), served.resources
    )
    assert "DOVETAIL_SECRET_SHOP" in refusal(made).what


def test_an_update_field_gives_the_rows_written_since(served: Served) -> None:
    columns = (Column("id", pa.int64()), Column("at", INSTANT))
    at = datetime.fromtimestamp(1_720_000_000, UTC)
    source = served.put("changing", columns, ["id"], [(1, at), (2, at), (3, at - timedelta(seconds=1))])
    parameters = dict(source.parameters) | {"update_field": "at", "update_lag": 0}
    definition = define("d", columns, ["id"], SourceSpec(served.kind, parameters), LayoutSpec("hashed"))
    made = open_source(definition, served.resources)
    assert [len(piece) for piece in made.load_since(1_720_000_000_000)] == [2]  # type: ignore[attr-defined]
    assert list(made.load_since(1_720_000_001_000)) == []  # type: ignore[attr-defined]
    made.close()


def test_a_lenient_collation_answers_for_no_other_key(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE goods (id TEXT COLLATE NOCASE, v INTEGER)")
        database.execute("INSERT INTO goods VALUES ('Abc', 1)")
    database.close()
    columns = (Column("id", pa.string()), Column("v", pa.int64()))
    source = Sqlite(tmp_path).source(table="goods")
    made = open_source(define("d", columns, ["id"], source, LayoutSpec("direct")), Resources(None, Outside(tmp_path)))
    assert made.fetch(["id"], ["ABC", "abc"]) == {}
    assert made.fetch(["id"], ["ABC", "Abc"]) == {"Abc": (("Abc", 1),)}
    made.close()


@pytest.mark.parametrize(
    ("parameters", "said"),
    [({"path": "none.db", "table": "t"}, "no file"), ({"path": "shop.db", "table": "t"}, 'no table "t"')],
)
def test_sqlite_says_what_is_missing(tmp_path: Path, parameters: dict[str, Parameter], said: str) -> None:
    sqlite3.connect(tmp_path / "shop.db").close()
    source = SourceSpec("sqlite", parameters)
    made = open_source(define("d", COLUMNS, ["id"], source, LayoutSpec("direct")), Resources(None, Outside(tmp_path)))
    error = refusal(made)
    assert isinstance(error, SourceRefused)
    assert said in error.what
    assert not (tmp_path / "none.db").exists()
