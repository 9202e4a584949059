"""What a program gives of another type than is asked for is refused before anything is done."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dovetail
from dovetail import Connection, StreamHandle
from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.runtime.settings import Settings
from dovetail.services.session import Session
from dovetail.sql.catalog import Catalog
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream

NO_BROKER = BrokerAddress("127.0.0.1:1")
FITTING: dict[str, object] = {
    "statements": "SHOW STREAMS",
    "query": "SELECT id FROM orders",
    "stream": "orders",
    "name": "orders",
    "rows": [{"id": 1}],
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    with Connection(Session(Settings(data_dir=tmp_path, broker_timeout_s=1), catalog, NO_BROKER)) as connection:
        orders = parse_one("CREATE STREAM orders (id int64)")
        assert isinstance(orders, CreateStream)
        catalog.create(orders, now_ms=0)
        yield connection


def parameters() -> list[tuple[type, str, str]]:
    """Each of each public method, so a new one is tried as well."""
    return [
        (kind, name, parameter)
        for kind in (Connection, StreamHandle)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
        for parameter in list(inspect.signature(method).parameters)[1:]
    ]


@pytest.mark.parametrize("wrong", [5, b"SHOW STREAMS", object(), 1.5])
@pytest.mark.parametrize(("kind", "method", "parameter"), parameters())
def test_another_type_is_refused(db: Connection, kind: type, method: str, parameter: str, wrong: object) -> None:
    asked = db if kind is Connection else db.stream("orders")
    if (parameter, wrong) == ("limit", 5):
        return
    needed = inspect.signature(getattr(asked, method)).parameters
    given = {name: FITTING[name] for name, one in needed.items() if one.default is inspect.Parameter.empty}
    with pytest.raises(SqlError) as refused:
        getattr(asked, method)(**given | {parameter: wrong})
    assert refused.value.where
    assert refused.value.fix


@pytest.mark.parametrize("arguments", [1, "x", {"a"}, {1: 2}])
def test_the_values_of_parameters_are_listed_or_named(db: Connection, arguments: Any) -> None:
    with pytest.raises(SqlError, match=r"neither a list nor an object|not the name of a parameter"):
        db.sql("SELECT ? AS x", arguments)


def test_what_has_no_changes_is_not_run(db: Connection) -> None:
    for statement in ("CREATE STREAM more (id int64)", "DROP STREAM orders", "SHOW STREAMS"):
        with pytest.raises(SqlError, match="was not run") as refused:
            db.changes(statement)
        assert "run it by .sql(..)" in refused.value.fix
    assert db.sql("SHOW CREATE orders").text.startswith("CREATE STREAM orders")
    with pytest.raises(UnknownName):
        db.sql("SHOW CREATE more")


def test_what_confirms_can_be_called(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match="True cannot be called"):
        dovetail.connect(data_dir=tmp_path, confirm=True)  # type: ignore[arg-type]
