"""The one place that makes connections to DuckDB: a computer of expressions, shut in.

What a connection runs is made of statements that strangers write, so it can do nothing besides computing: it opens no
file and no address, loads no extension, does not look for tables among the variables of Python, and its settings
cannot be changed (duckdb.org/security). Its memory and what it spills are bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import duckdb

from dovetail.sql.expressions.engine_calls.bounds import Bounds, bounds_of_process
from dovetail.sql.expressions.guard import ALWAYS_DISABLED, DISABLED_WITH_GUARDS

_SHUT_IN: Mapping[str, str | int] = {
    # One thread keeps rows in order.
    "threads": 1,
    "enable_external_access": "false",
    "allow_persistent_secrets": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}


_local = threading.local()


def connection() -> duckdb.DuckDBPyConnection:
    """This thread's own, in UTC, so that a result is the same everywhere."""
    found: duckdb.DuckDBPyConnection | None = getattr(_local, "connection", None)
    if found is None:
        found = _local.connection = _connected(bounds_of_process())
    return found


def _connected(bounds: Bounds) -> duckdb.DuckDBPyConnection:
    # The one folder that a query may open is its own, with nothing in it but what it spilled.
    folder = "" if bounds.spill_folder is None else str(bounds.spill_folder())
    made = duckdb.connect(
        config={**_SHUT_IN, "memory_limit": f"{bounds.memory_bytes}B", "temp_directory": folder},
    )
    made.execute("SET TimeZone = 'UTC'")
    guard_calls(made, guarded=False)
    if folder:
        # As part of the configuration it is shown, and not kept.
        made.execute(f"SET max_temp_directory_size = '{bounds.spill_bytes}B'")
    else:
        made.execute("SET disabled_filesystems = 'LocalFileSystem'")
    # Which optimizers run is all that a query can want to be different.
    made.execute("SET allowed_configs = ['disabled_optimizers']")
    made.execute("SET lock_configuration = true")
    return made


def guard_calls(session: duckdb.DuckDBPyConnection, *, guarded: bool) -> None:
    """Have ``session`` leave guarded calls as they are written."""
    session.execute(f"SET disabled_optimizers = '{DISABLED_WITH_GUARDS if guarded else ALWAYS_DISABLED}'")
