"""The sources, layouts and settings that there are, each with its options."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.dictionaries.definition.options import Option
from dovetail.dictionaries.definition.tls import OPTIONS

_SECRET = (Option("password"), Option("password_env"), Option("password_file"))
"""``PASSWORD 'x'``, ``PASSWORD ENV 'NAME'`` and ``PASSWORD FILE 'path'``; the parser names the last two so."""
_ROWS = (
    Option("table"),
    Option("query"),
    Option("where"),
    Option("update_field"),
    Option("update_lag", int, 1, least=0),
)
_POOL = (
    Option("pool_size", int, 8, least=1),
    Option("connect_timeout", float, 5.0, least=0.001),
    Option("timeout", float, 5.0, least=0.001),
    Option("load_timeout", float, 300.0, least=0.001),
)
"""Seconds: to connect, for one statement of a lookup, between two pieces of a whole load."""
_SERVER = (Option("host", default="localhost"), Option("user"), *_SECRET, Option("db"), *OPTIONS)

SOURCES: Mapping[str, tuple[Option, ...]] = {
    "mysql": (
        *_SERVER,
        Option("port", int, 3306, least=1),
        Option("bg_reconnect", bool, True),
        *_ROWS,
        *_POOL,
    ),
    "postgresql": (*_SERVER, Option("port", int, 5432, least=1), Option("schema"), *_ROWS, *_POOL),
    "clickhouse": (*_SERVER, Option("port", int, 9000, least=1), *_ROWS, *_POOL),
    "sqlite": (Option("path", required=True), *_ROWS, *_POOL),
    "timeplus": (Option("stream"), Option("table"), Option("db", default="default", choices=("default",))),
    "table": (Option("name"), Option("stream"), Option("table")),
    "file": (Option("path", required=True), Option("format")),
    "http": (
        Option("url", required=True),
        Option("format", default="jsoneachrow"),
        Option("method", default="post", choices=("post", "get")),
        Option("user"),
        *_SECRET,
        Option("connect_timeout", float, 5.0, least=0.001),
        Option("timeout", float, 5.0, least=0.001),
        Option("load_timeout", float, 300.0, least=0.001),
    ),
}
TABLE_OR_QUERY = ("mysql", "postgresql", "clickhouse", "sqlite")
FORMATS = ("csv", "csvwithnames", "json", "jsoneachrow", "ndjson")
REFUSED_SOURCES: Mapping[str, str] = {
    "executable": "write the program's rows to a file, and use SOURCE(FILE(PATH '..' FORMAT 'JSONEachRow'))",
    "executable_pool": "serve the program over HTTP, and use SOURCE(HTTP(URL '..' FORMAT 'JSONEachRow'))",
    "mongodb": "SOURCE(HTTP(URL '..' FORMAT 'JSONEachRow')), or a keyed stream that a connector fills",
    "redis": "a keyed stream, or SOURCE(HTTP(..)); Redis is the cold tier of LAYOUT(HYBRID_HASH_CACHE(..)) already",
    "null": "SOURCE(FILE(PATH '..' FORMAT 'CSV')) with an empty file",
}
SPELLINGS: Mapping[str, str] = {"postgres": "postgresql", "mariadb": "mysql", "stream": "table"}

_LEAVE_OUT = "leave it out: a dict of the process holds the rows, and grows by itself"
_LOADED = tuple(
    Option(name, refused=_LEAVE_OUT)
    for name in ("shards", "shard_load_queue_backlog", "max_load_factor", "initial_array_size")
)
_DATABASE = Option("db", default="default", choices=("default",))
"""There is one."""
_CACHE = (
    Option("size_in_cells", int, 100_000, least=1),
    Option("allow_read_expired_keys", bool, False),
    Option("max_update_queue_size", int, 100_000, least=1),
    Option("update_queue_push_timeout_milliseconds", refused="leave it out: a lookup never waits for the queue"),
    Option("query_wait_timeout_milliseconds", int, least=1),
    Option("max_threads_for_updates", int, 4, least=1),
)
LOADED_LAYOUTS = ("flat", "hashed", "sparse_hashed", "hashed_array")
LAYOUTS: Mapping[str, tuple[Option, ...]] = {
    "direct": (),
    **dict.fromkeys(LOADED_LAYOUTS, (*_LOADED, Option("max_array_size", refused=_LEAVE_OUT))),
    "flat": (*_LOADED, Option("max_array_size", int, least=1)),
    "cache": _CACHE,
    "hybrid_hash_cache": (
        Option("ttl", float, required=True, least=0.001),
        Option("path", required=True),
        Option("max_hot_key_count", int, 100_000, least=1),
    ),
    "mutable_cache": (
        _DATABASE,
        Option("database", choices=("default",)),
        Option("stream", required=True),
        Option("update_from_source", bool, False),
    ),
}
REFUSED_LAYOUTS: Mapping[str, str] = {
    "range_hashed": "LAYOUT(HASHED()) with one row per key, or an ASOF join with a stream of versions",
    "ssd_cache": "LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'name'))",
    "ip_trie": "LAYOUT(HASHED()) with the addresses themselves as keys",
    "polygon": "LAYOUT(HASHED())",
    "regexp_tree": "LAYOUT(HASHED())",
}

SOURCE_SETTINGS = (Option("timeout_ms", float, least=1), Option("load_timeout_ms", float, least=1))
"""In SETTINGS they win over TIMEOUT and LOAD_TIMEOUT of the source; the caches declare further settings."""
