"""The names of function calls, as the dialects write them."""

from __future__ import annotations

import re

from sqlglot import exp

WINDOWS = ("tumble", "hop")
"""Functions in FROM that put rows into windows."""

TAKES_UNIT = frozenset({"date_add", "date_sub", "timestamp_add", "timestamp_sub", "date_diff", "age", "date_trunc"})
"""Functions whose first argument may be a unit of time, written without quotes."""


def function_name(node: exp.Expr) -> str:
    """The name of a function call, in lower case; '' for what is none."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def snake_case(name: str) -> str:
    """``toInt32``, as ClickHouse writes it, is ``to_int32``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
