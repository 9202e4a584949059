"""CREATE DICTIONARY as a definition."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.dictionaries.definition.definition import Definition
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateDictionary

SEED = (
    "CREATE DICTIONARY mysql_dict(id string, name string) PRIMARY KEY id SOURCE(MYSQL(DB 'testdb' TABLE 'products' "
    "HOST 'mysql' PORT 3306 USER 'root' PASSWORD 'rootpassword' BG_RECONNECT true)) "
    "LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'test_dict_cache' max_hot_key_count 1000))"
)


def defined(text: str) -> Definition:
    statement = parse_one(text)
    assert isinstance(statement, CreateDictionary)
    return definition_of(statement)


def test_the_seed_statement_is_a_definition() -> None:
    made = defined(SEED)
    assert (made.name, made.names, made.key, made.lifetime_s) == ("mysql_dict", ("id", "name"), ("id",), (0, 0))
    assert (made.source.kind, made.source.parameters["table"]) == ("mysql", "products")
    assert (made.layout.kind, made.layout.parameters["max_hot_key_count"]) == ("hybrid_hash_cache", 1000)
    assert "rootpassword" not in repr(made)


def test_a_layout_for_keys_of_several_columns_is_the_same_layout() -> None:
    text = (
        "CREATE DICTIONARY d(a int, b int, c int) PRIMARY KEY (a, b) SOURCE(MYSQL(DB 'x' TABLE 't' HOST 'h' USER 'u'))"
    )
    made = defined(f"{text} LAYOUT(COMPLEX_KEY_DIRECT()) ")
    assert (made.layout.kind, made.key) == ("direct", ("a", "b"))


def test_a_range_is_refused() -> None:
    text = SEED.replace("LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'test_dict_cache' max_hot_key_count 1000))", "")
    with pytest.raises(Unsupported, match="looked up by a range"):
        defined(text.replace("name string", "a date, b date") + "LAYOUT(RANGE_HASHED()) RANGE(MIN a MAX b) LIFETIME(5)")


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SqlError):
        defined(SEED.replace("HYBRID_HASH_CACHE(TTL 3600 PATH 'test_dict_cache' max_hot_key_count 1000)", "HYBRIT()"))
