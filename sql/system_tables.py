"""Relations of the system itself: what Dovetail knows of what it holds, and the dead letters of its queries."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dovetail.changelog.dead_letter import DEAD_LETTER_SCHEMA, is_dead_letter_topic
from dovetail.sql.syntax.types import INSTANT

DATABASE = "system"

DICTIONARIES = pa.schema(
    [
        ("name", pa.string()),
        ("status", pa.string()),
        ("type", pa.string()),
        ("key", pa.string()),
        ("source", pa.string()),
        ("lifetime_min", pa.int64()),
        ("lifetime_max", pa.int64()),
        ("query_count", pa.int64()),
        ("hit_rate", pa.float64()),
        ("found_rate", pa.float64()),
        ("element_count", pa.int64()),
        ("bytes_allocated", pa.int64()),
        ("load_factor", pa.float64()),
        ("loading_start_time", INSTANT),
        ("last_successful_update_time", INSTANT),
        ("loading_duration", pa.float64()),
        ("last_exception", pa.string()),
        ("hot_hits", pa.int64()),
        ("cold_hits", pa.int64()),
        ("misses", pa.int64()),
        ("source_statements", pa.int64()),
        ("source_keys", pa.int64()),
        ("coalesced", pa.int64()),
        ("stale_served", pa.int64()),
        ("negative_stored", pa.int64()),
        ("evictions", pa.int64()),
        ("oversize", pa.int64()),
        ("redis_errors", pa.int64()),
        ("feed_records", pa.int64()),
        ("feed_invalidated", pa.int64()),
        ("workers", pa.int64()),
    ]
)
"""``system.dictionaries``: a row for each dictionary, its figures summed over the workers; ``type`` is the layout.

Rates are shares of 1, ``loading_duration`` is in seconds.
"""

SYSTEM_TABLES: Mapping[str, pa.Schema] = {f"{DATABASE}.dictionaries": DICTIONARIES}
"""Name, as it is written after FROM, and columns."""

_LISTS = {
    **dict.fromkeys(("tables", "streams", "sources", "pg_tables", "rw_tables", "pg_class"), "SHOW STREAMS"),
    **dict.fromkeys(("views", "materialized_views", "pg_views", "pg_matviews", "rw_materialized_views"), "SHOW VIEWS"),
    **dict.fromkeys(("columns", "pg_attribute", "rw_columns"), "DESCRIBE s, of each stream and view"),
    **dict.fromkeys(("functions", "routines", "pg_proc"), "SHOW FUNCTIONS"),
    **dict.fromkeys(("databases", "schemata", "schemas", "pg_namespace", "pg_database"), "SHOW SCHEMAS"),
    **dict.fromkeys(("settings", "pg_settings"), "SHOW SETTINGS"),
    **dict.fromkeys(("processes", "query_log", "queries", "pg_stat_activity"), "SHOW QUERIES"),
    **dict.fromkeys(("indexes", "pg_indexes", "rw_indexes"), "SHOW INDEXES"),
    **dict.fromkeys(("users", "roles", "pg_user", "pg_roles"), "dovetail user list, in a shell"),
}
_OF_SYSTEMS = (DATABASE, "information_schema", "pg_catalog", "rw_catalog")


def listed_by(name: str) -> str:
    """The statement that lists what other systems have in a table of this name; '' where it is the name of none."""
    *before, last = name.lower().split(".")
    is_of_system = (before[-1:] == [] and last.startswith(("pg_", "rw_"))) or set(before) & set(_OF_SYSTEMS)
    return _LISTS.get(last, "SHOW STREAMS, SHOW VIEWS and DESCRIBE s") if is_of_system else ""


DEAD_LETTERS = DEAD_LETTER_SCHEMA.append(pa.field("replayed_at", DEAD_LETTER_SCHEMA.field("rejected_at").type))
"""``table(v.dead_letter)``: the records that a query could not use; ``replayed_at`` of those that were put back."""


def is_of_system(name: str) -> bool:
    """Whether a relation is none of the catalog: it has no query, and emits no rows."""
    return name in SYSTEM_TABLES or is_dead_letter_topic(name)
