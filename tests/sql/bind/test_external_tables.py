"""CREATE EXTERNAL TABLE, and the ways in which a dictionary's password is given."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.redact import redacted
from dovetail.sql.syntax.statements import Clause, CreateDictionary, Drop


def made(text: str) -> CreateDictionary:
    statement = parse_one(text)
    assert isinstance(statement, CreateDictionary)
    return statement


def test_an_external_table() -> None:
    table = made(
        "CREATE EXTERNAL TABLE IF NOT EXISTS t (id int, name string) PRIMARY KEY id SETTINGS type = 'mysql', "
        "address = 'db:3307', user = 'u', password = 'x', database = 'shop', table = 'goods', pool_size = 4"
    )
    assert table.external
    assert table.if_not_exists
    assert [column.name for column in table.columns] == ["id", "name"]
    assert table.primary_key == ("id",)
    assert table.layout == Clause("direct")
    assert table.source == Clause(
        "mysql",
        {"host": "db", "port": 3307, "user": "u", "password": "x", "db": "shop", "table": "goods", "pool_size": 4},
    )
    assert "'x'" not in redacted(table.text)


def test_what_may_be_left_out() -> None:
    table = made("CREATE EXTERNAL TABLE t SETTINGS type = 'clickhouse', address = 'h'")
    assert (table.columns, table.primary_key) == ((), ())
    assert table.source == Clause("clickhouse", {"host": "h", "table": "t"})
    table = made("CREATE EXTERNAL TABLE t (k int, PRIMARY KEY (k)) SETTINGS type = 'sqlite', address = '/data/shop.db'")
    assert table.primary_key == ("k",)
    assert table.source == Clause("sqlite", {"path": "/data/shop.db", "table": "t"})
    assert made("CREATE EXTERNAL TABLE t PRIMARY KEY k SETTINGS type = 'postgresql'").primary_key == ("k",)


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("CREATE EXTERNAL TABLE t SETTINGS type = 'mysqll'", 'no type "mysqll"', 'did you mean "mysql"'),
        ("CREATE EXTERNAL TABLE t SETTINGS address = 'h:1'", "has no type", "type = 'mysql'"),
        ("CREATE EXTERNAL TABLE t SETTINGS type = 'mysql', address = 'h:x'", "has no port", "host:3306"),
        ("CREATE EXTERNAL TABLE t (k int) PRIMARY KEY l SETTINGS type = 'mysql'", 'no column "l"', "k"),
        ("CREATE EXTERNAL TABLE t (k int)", "expected SETTINGS", ""),
    ],
)
def test_refused(text: str, what: str, fix: str) -> None:
    with pytest.raises(SqlError, match=what) as refused:
        parse_one(text)
    assert fix in refused.value.fix


def test_it_is_dropped_by_its_name() -> None:
    dropped = Drop("dictionary", "t", noun="external table", text="DROP EXTERNAL TABLE t")
    assert parse_one("DROP EXTERNAL TABLE t") == dropped


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ("PASSWORD 'x'", "password", "x"),
        ("PASSWORD ENV 'DOVETAIL_SECRET_SHOP'", "password_env", "DOVETAIL_SECRET_SHOP"),
        ("PASSWORD FILE '/run/secrets/shop'", "password_file", "/run/secrets/shop"),
        ("PASSWORD ''", "password", ""),
    ],
)
def test_a_password_may_be_somewhere_else(given: str, name: str, value: str) -> None:
    text = f"CREATE DICTIONARY d (k int) PRIMARY KEY k SOURCE(MYSQL(HOST 'h' {given} TABLE 't')) LAYOUT(DIRECT())"
    assert made(text).source.parameters == {"host": "h", name: value, "table": "t"}
    setting = given.replace(" ", " = ", 1)
    table = made(f"CREATE EXTERNAL TABLE t (k int) SETTINGS type = 'mysql', address = 'h', {setting}")
    assert table.source.parameters == {"host": "h", name: value, "table": "t"}
    definition_of(table)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SECRET shop WITH (backend = 'meta') AS 'hunter2'",
        "CREATE EXTERNAL TABLE t SETTINGS type = 'mysql', password = secret shop",
        "CREATE DICTIONARY d (k int) PRIMARY KEY k SOURCE(MYSQL(PASSWORD SECRET shop TABLE 't')) LAYOUT(DIRECT())",
        "CREATE SOURCE s (k int) WITH (connector = 'kafka', properties.sasl.password = secret shop)",
    ],
)
def test_secrets_by_name_are_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(Unsupported) as refused:
        parse_one(text)
    assert "PASSWORD ENV 'NAME'" in refused.value.fix
    assert "DOVETAIL_KAFKA_SASL_PASSWORD" in refused.value.fix
    assert "hunter2" not in str(refused.value)
