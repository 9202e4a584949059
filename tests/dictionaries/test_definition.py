"""A dictionary is refused where its parts do not fit, with the fix; its password does not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.schema import Column
from dovetail.dictionaries.cache.cache_settings import read_settings
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, Parameter, SourceSpec
from dovetail.dictionaries.definition.kinds import LAYOUTS, SOURCES
from dovetail.dictionaries.definition.options import read_options
from tests.paths import ROOT

COLUMNS = (Column("id", pa.string()), Column("name", pa.string()))
MYSQL: dict[str, Parameter] = {
    "host": "db",
    "port": 3306,
    "user": "u",
    "password": "pass-word",
    "db": "shop",
    "table": "goods",
}
_FIXED = ("database",)
"""They may be given, and have one value: default."""
HYBRID: dict[str, Parameter] = {"ttl": 3600, "path": "cache", "max_hot_key_count": 1000}


def made(
    *,
    columns: Sequence[Column] = COLUMNS,
    key: Sequence[str] = ("id",),
    source: SourceSpec | None = None,
    layout: LayoutSpec | None = None,
    lifetime_s: tuple[int, int] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Definition:
    source = source or SourceSpec("mysql", MYSQL)
    return define("d", columns, key, source, layout or LayoutSpec("direct"), lifetime_s, settings)


def test_a_definition_holds_what_was_declared() -> None:
    layout = LayoutSpec("complex_key_hybrid_hash_cache", HYBRID)
    definition = made(layout=layout, lifetime_s=(1, 2), settings={"negative_ttl": 5})
    assert definition.names == ("id", "name")
    assert definition.layout.kind == "hybrid_hash_cache"
    assert definition.layout.parameters["max_hot_key_count"] == 1000
    assert definition.lifetime_s == (1, 2)
    assert definition.settings["negative_ttl"] == 5.0


def test_a_password_does_not_show() -> None:
    assert "pass-word" not in repr(made())


@pytest.mark.parametrize(
    ("changed", "error", "said", "fix"),
    [
        ({"source": SourceSpec("mysq", MYSQL)}, UnknownName, 'no source "mysq"', 'did you mean "mysql"?'),
        ({"source": SourceSpec("executable", {})}, Unsupported, "EXECUTABLE", "HTTP|FILE"),
        ({"source": SourceSpec("mysql", {**MYSQL, "hots": "x"})}, UnknownName, '"hots"', 'did you mean "host"?'),
        ({"source": SourceSpec("mysql", {**MYSQL, "port": "x"})}, SqlError, "PORT takes a whole number", ""),
        ({"source": SourceSpec("mysql", {**MYSQL, "query": "SELECT 1"})}, SqlError, "TABLE or a QUERY", "TABLE"),
        ({"source": SourceSpec("mysql", {**MYSQL, "password_env": "X"})}, SqlError, "password is given twice", "once"),
        ({"source": SourceSpec("sqlite", {"table": "t"})}, SqlError, "PATH is missing", "PATH"),
        ({"source": SourceSpec("file", {"path": "x", "format": "cvs"})}, UnknownName, '"cvs"', 'did you mean "csv"?'),
        ({"layout": LayoutSpec("hybrid_hash_cahe", HYBRID)}, UnknownName, "no layout", "hybrid_hash_cache"),
        ({"layout": LayoutSpec("hybrid_hash_cache", {"path": "x"})}, SqlError, "TTL is missing", "TTL"),
        ({"layout": LayoutSpec("hybrid_hash_cache", {**HYBRID, "ttl": 0})}, SqlError, "TTL is at least", ""),
        ({"layout": LayoutSpec("ip_trie")}, Unsupported, "IP_TRIE", "HASHED"),
        ({"layout": LayoutSpec("flat")}, SqlError, "whole numbers", "HASHED"),
        ({"layout": LayoutSpec("mutable_cache")}, SqlError, "STREAM is missing", "STREAM"),
        ({"key": ["ident"]}, UnknownName, 'no column "ident"', "id"),
        ({"key": ["id", "id"]}, SqlError, "twice", "once"),
        ({"key": [], "layout": LayoutSpec("hashed")}, SqlError, "no key", "PRIMARY KEY"),
        ({"columns": [Column("id", pa.list_(pa.int8()))]}, SqlError, "no key", "scalars"),
        ({"columns": [Column("id", pa.int8(), default="x")]}, SqlError, "DEFAULT 'x'", "literal"),
        ({"lifetime_s": (5, 2)}, SqlError, "LIFETIME", "MIN below MAX"),
        ({"layout": LayoutSpec("hashed", {"shards": 4})}, Unsupported, "SHARDS", "leave it out"),
        ({"layout": LayoutSpec("hashed", {"max_array_size": 4})}, Unsupported, "MAX_ARRAY_SIZE", "leave it out"),
        ({"layout": LayoutSpec("mutable_cache", {"stream": "s", "db": "b"})}, SqlError, 'DB knows no "b"', "default"),
        ({"source": SourceSpec("timeplus", {"stream": "s", "db": "b"})}, SqlError, 'DB knows no "b"', "default"),
        ({"settings": {"negative_tll": 5}}, UnknownName, '"negative_tll"', 'did you mean "negative_ttl"?'),
        ({"settings": {"on_error": "panic"}}, SqlError, "panic", "stale"),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any], error: type[SqlError], said: str, fix: str) -> None:
    with pytest.raises(error) as caught:
        made(**changed)
    assert said in caught.value.what
    assert any(part in caught.value.fix for part in fix.split("|"))
    assert 'dictionary "d"' in caught.value.where
    assert "pass-word" not in str(caught.value)


def test_every_option_that_is_taken_is_looked_at() -> None:
    """An option that is accepted and does nothing says of a dictionary what is not so."""
    declared = {option for options in (*SOURCES.values(), *LAYOUTS.values()) for option in options}
    taken = {option.name for option in declared if not option.refused and option.name not in _FIXED}
    code = "".join(path.read_text() for path in (ROOT / "dictionaries").rglob("*.py") if path.name != "kinds.py")
    assert [name for name in sorted(taken) if f'"{name}"' not in code] == []


def test_the_options_of_clickhouse_s_cache() -> None:
    layout = LayoutSpec("cache", {"query_wait_timeout_milliseconds": 700, "max_update_queue_size": 9})
    settings = read_settings(made(layout=layout))
    assert (settings.timeout_ms, settings.waiting) == (700, 9)
    assert read_settings(made(layout=layout, settings={"timeout_ms": 90})).timeout_ms == 90
    assert read_settings(made(layout=LayoutSpec("cache"))).timeout_ms == 5000


@pytest.mark.parametrize(("given", "meant"), [("database", "db"), ("username", "user"), ("hostname", "host")])
def test_what_other_systems_call_an_option_is_answered_with_its_name_here(given: str, meant: str) -> None:
    with pytest.raises(UnknownName) as caught:
        read_options(SOURCES["mysql"], {given: "x"}, "here")
    assert caught.value.fix == f'did you mean "{meant}"?'
