"""The names of function calls, as the dialects write them."""

from __future__ import annotations

import re

from sqlglot import exp

WINDOWS = ("tumble", "hop", "session", "gap_fill")
"""Functions in FROM over a FROM item and its time: they put rows into windows, or fill the gaps between them."""

CONTENTS = ("table", "changes")
"""Functions in FROM that give rows which are all there."""

TAKES_UNIT = frozenset(
    {"date_add", "date_sub", "timestamp_add", "timestamp_sub", "timestamp_diff", "date_diff", "age", "date_trunc"}
)
"""Functions whose first argument may be a unit of time, written without quotes."""


def function_name(node: exp.Expr) -> str:
    """The name of a function call, in lower case; '' for what is none."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


DATABASES = ("default", "public")
"""What may stand before the name of a relation, in both dialects, and says nothing: the schema of plain names."""
SCHEMAS_OF_ALL = (*DATABASES, "system", "information_schema", "pg_catalog")
"""Schemas that nobody makes."""
DEAD_LETTERS = "dead_letter"
"""The last part of the name of a query's dead letters, and of no relation: ``changelog.dead_letter.SUFFIX``."""


def qualifier(named: exp.Expr) -> str:
    """The parts before the last of the name of a table, or of the argument of ``table(..)``: ``v`` of ``v.x``."""
    parts = [named.text(part) for part in ("catalog", "db", "table")]
    return ".".join(part for part in parts if part)


def dotted_name(named: exp.Expr) -> str:
    """The name of a table, or of the argument of ``table(..)``, with its qualifier: ``v.dead_letter``."""
    return ".".join(part for part in (qualifier(named), named.name) if part)


def registered_name(node: exp.Expr) -> str:
    """The name of a function call as the registries of functions have it; '' for what is none."""
    return snake_case(str(node.this) if isinstance(node, _NAMED) else function_name(node))


_NAMED = (exp.Anonymous, exp.AnonymousAggFunc, exp.ParameterizedAgg)
"""Calls that hold their name as it is written."""
_WORDS = (
    "UInt",
    "DateTime",
    "UTF8",
    "TDigest",
    "IPv4",
    "IPv6",
    "YYYYMMDDhhmmss",
    "YYYYMMDD",
    "YYYYMM",
    "UUIDv4",
    "UUIDv7",
    "NaN",
    "ILike",
)
"""What stays in one piece in the names of ClickHouse."""
_WORD = re.compile("|".join([*_WORDS, "[A-Z]+(?![a-z])", "[A-Z][a-z]*"]))


def snake_case(name: str) -> str:
    """``toUInt32``, as ClickHouse writes it, is ``to_uint32``; ``JSONExtractString`` is ``json_extract_string``."""
    if name.islower() or name.isupper() or "_" in name:
        return name.lower()
    return _WORD.sub(lambda word: f"_{word[0].lower()}", name).lstrip("_")
