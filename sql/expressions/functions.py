"""Scalar functions: the names of Timeplus, ClickHouse and RisingWave, as DuckDB SQL.

sqlglot carries over the syntax and the functions that it knows by their standard names; the table below holds the
rest, one template each. A name in neither is left to DuckDB, which knows most of PostgreSQL's (RisingWave's), or
refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa
import sqlglot
from sqlglot import exp

from changelog.errors import UnknownName, Unsupported
from sql.syntax.types import Rules, arrow

_JSON = "json_extract_string({0}, '$.' || {1})"

TEMPLATES: Mapping[str, str] = {
    # conversions
    "to_string": "CAST({0} AS VARCHAR)",
    "to_int": "CAST({0} AS INTEGER)",
    "to_int8": "CAST({0} AS TINYINT)",
    "to_int16": "CAST({0} AS SMALLINT)",
    "to_int32": "CAST({0} AS INTEGER)",
    "to_int64": "CAST({0} AS BIGINT)",
    "to_bigint": "CAST({0} AS BIGINT)",
    "to_uint8": "CAST({0} AS UTINYINT)",
    "to_uint16": "CAST({0} AS USMALLINT)",
    "to_uint32": "CAST({0} AS UINTEGER)",
    "to_uint64": "CAST({0} AS UBIGINT)",
    "to_float": "CAST({0} AS DOUBLE)",
    "to_float32": "CAST({0} AS FLOAT)",
    "to_float64": "CAST({0} AS DOUBLE)",
    "to_bool": "CAST({0} AS BOOLEAN)",
    "to_date": "CAST({0} AS DATE)",
    "to_datetime": "date_trunc('second', CAST({0} AS TIMESTAMPTZ))",
    "to_datetime64": "CAST({0} AS TIMESTAMPTZ)",
    "to_time": "CAST({0} AS TIMESTAMPTZ)",
    "to_unix_timestamp": "CAST(floor(epoch({0})) AS BIGINT)",
    "to_unix_timestamp64_milli": "epoch_ms({0})",
    "to_unix_timestamp64_micro": "epoch_us({0})",
    "from_unix_timestamp": "to_timestamp({0})",
    "from_unix_timestamp64_milli": "to_timestamp({0} / 1000.0)",
    "earliest_ts": "TIMESTAMPTZ '1970-01-01 00:00:00+00'",
    # conditions and NULL
    "if_null": "coalesce({0}, {1})",
    "null_if": "nullif({0}, {1})",
    "is_null": "({0} IS NULL)",
    "is_not_null": "({0} IS NOT NULL)",
    "assume_not_null": "{0}",
    "to_nullable": "{0}",
    "zero_if_null": "coalesce({0}, 0)",
    # text
    "lower_utf8": "lower({0})",
    "upper_utf8": "upper({0})",
    "length_utf8": "length({0})",
    "reverse_utf8": "reverse({0})",
    "substring_utf8": "substring({*})",
    "trim_left": "ltrim({0})",
    "trim_right": "rtrim({0})",
    "trim_both": "trim({0})",
    "position": "strpos({0}, {1})",
    "locate": "strpos({0}, {1})",
    "position_case_insensitive": "strpos(lower({0}), lower({1}))",
    "starts_with": "starts_with({0}, {1})",
    "ends_with": "ends_with({0}, {1})",
    "match": "regexp_matches({0}, {1})",
    "extract_all": "regexp_extract_all({0}, {1})",
    "replace_one": "regexp_replace({0}, regexp_escape({1}), {2})",
    "replace_all": "replace({0}, {1}, {2})",
    "replace_regex": "regexp_replace({0}, {1}, {2}, 'g')",
    "replace_regexp_one": "regexp_replace({0}, {1}, {2})",
    "replace_regexp_all": "regexp_replace({0}, {1}, {2}, 'g')",
    "split_by_char": "string_split({1}, {0})",
    "split_by_string": "string_split({1}, {0})",
    "split_by_regexp": "string_split_regex({1}, {0})",
    "split_part": "split_part({0}, {1}, {2})",
    "grok": "regexp_extract({0}, {1})",
    "empty": "(len({0}) = 0)",
    "not_empty": "(len({0}) > 0)",
    # numbers
    "int_div": "({0} // {1})",
    "modulo": "({0} % {1})",
    "plus": "({0} + {1})",
    "minus": "({0} - {1})",
    "multiply": "({0} * {1})",
    "divide": "({0} / {1})",
    "negate": "(- {0})",
    "equals": "({0} = {1})",
    "not_equals": "({0} <> {1})",
    "less": "({0} < {1})",
    "less_or_equals": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_or_equals": "({0} >= {1})",
    "bit_and": "({0} & {1})",
    "bit_or": "({0} | {1})",
    "bit_xor": "xor({0}, {1})",
    # time
    "to_start_of_second": "date_trunc('second', {0})",
    "to_start_of_minute": "date_trunc('minute', {0})",
    "to_start_of_hour": "date_trunc('hour', {0})",
    "to_start_of_day": "date_trunc('day', {0})",
    "to_start_of_week": "date_trunc('week', {0})",
    "to_start_of_month": "date_trunc('month', {0})",
    "to_start_of_quarter": "date_trunc('quarter', {0})",
    "to_start_of_year": "date_trunc('year', {0})",
    "to_start_of_five_minutes": "time_bucket(INTERVAL 5 MINUTE, {0})",
    "to_start_of_ten_minutes": "time_bucket(INTERVAL 10 MINUTE, {0})",
    "to_start_of_fifteen_minutes": "time_bucket(INTERVAL 15 MINUTE, {0})",
    "to_start_of_interval": "time_bucket({1}, {0})",
    "to_year": "CAST(year({0}) AS INTEGER)",
    "to_quarter": "CAST(quarter({0}) AS INTEGER)",
    "to_month": "CAST(month({0}) AS INTEGER)",
    "to_day_of_month": "CAST(day({0}) AS INTEGER)",
    "to_day_of_week": "CAST(isodow({0}) AS INTEGER)",
    "to_day_of_year": "CAST(dayofyear({0}) AS INTEGER)",
    "to_hour": "CAST(hour({0}) AS INTEGER)",
    "to_minute": "CAST(minute({0}) AS INTEGER)",
    "to_second": "CAST(second({0}) AS INTEGER)",
    "add_seconds": "({0} + to_seconds({1}))",
    "add_minutes": "({0} + to_minutes({1}))",
    "add_hours": "({0} + to_hours({1}))",
    "add_days": "({0} + to_days({1}))",
    "add_weeks": "({0} + to_weeks({1}))",
    "add_months": "({0} + to_months({1}))",
    "add_years": "({0} + to_years({1}))",
    "subtract_seconds": "({0} - to_seconds({1}))",
    "subtract_minutes": "({0} - to_minutes({1}))",
    "subtract_hours": "({0} - to_hours({1}))",
    "subtract_days": "({0} - to_days({1}))",
    "format_datetime": "strftime({0}, {1})",
    # JSON
    "json_extract_string": _JSON,
    "json_extract_raw": "CAST(json_extract({0}, '$.' || {1}) AS VARCHAR)",
    "json_extract_int": f"CAST({_JSON} AS BIGINT)",
    "json_extract_uint": f"CAST({_JSON} AS UBIGINT)",
    "json_extract_float": f"CAST({_JSON} AS DOUBLE)",
    "json_extract_bool": f"CAST({_JSON} AS BOOLEAN)",
    "json_has": "json_exists({0}, '$.' || {1})",
    "json_value": "json_extract_string({0}, {1})",
    "is_valid_json": "json_valid({0})",
    # arrays, maps, tuples
    "array": "[{*}]",
    "array_element": "{0}[{1}]",
    "array_concat": "list_concat({*})",
    "array_string_concat": "array_to_string({0}, {1})",
    "array_sum": "list_sum({0})",
    "array_min": "list_min({0})",
    "array_max": "list_max({0})",
    "array_avg": "list_avg({0})",
    "array_distinct": "list_distinct({0})",
    "array_sort": "list_sort({0})",
    "array_reverse": "list_reverse({0})",
    "array_slice": "{0}[{1}:{1} + {2} - 1]",
    "has": "list_contains({0}, {1})",
    "index_of": "coalesce(list_position({0}, {1}), 0)",
    "map_keys": "map_keys({0})",
    "map_values": "map_values({0})",
    "tuple_element": "struct_extract({0}, {1})",
    # aggregates
    "uniq_exact": "count(DISTINCT {0})",
    "unique_exact": "count(DISTINCT {0})",
    "count_distinct": "count(DISTINCT {0})",
    "sum_if": "sum({0}) FILTER (WHERE {1})",
    "avg_if": "avg({0}) FILTER (WHERE {1})",
    "min_if": "min({0}) FILTER (WHERE {1})",
    "max_if": "max({0}) FILTER (WHERE {1})",
    "any_if": "min({0}) FILTER (WHERE {1})",
    "uniq_if": "count(DISTINCT {0}) FILTER (WHERE {1})",
    "uniq_exact_if": "count(DISTINCT {0}) FILTER (WHERE {1})",
    "every": "bool_and({0})",
    # hashes
    "md5": "md5({0})",
    "sha256": "sha256({0})",
    "hex": "hex({0})",
}
"""Function name -> DuckDB SQL; ``{0}`` is an argument, ``{*}`` all of them."""

CLOCKS = frozenset(
    {
        "now",
        "now64",
        "today",
        "yesterday",
        "current_timestamp",
        "current_date",
        "localtimestamp",
        "proctime",
        "get_current_timestamp",
    }
)
RANDOM = frozenset(
    {
        "rand",
        "rand32",
        "rand64",
        "random",
        "uuid",
        "generate_uuid",
        "generateuuidv4",
        "gen_random_uuid",
        "generate_uuid_v4",
    }
)
AGGREGATES = frozenset(
    {"group_array", "group_uniq_array", "uniq", "uniq_exact", "arg_max", "arg_min", "top_k", "min_k", "max_k", "latest",
     "earliest", "moving_sum", "count_if", "sum_if", "avg_if", "count_distinct", "p90", "p95", "p99", "string_agg",
     "array_agg", "approx_count_distinct", "unique_exact", "min_if", "max_if", "any_if", "uniq_if", "uniq_exact_if",
     "every", "any_last"}
)  # fmt: skip

WINDOWS = ("tumble", "hop")
"""Functions in FROM that put rows into windows."""


def to_duckdb(expression: exp.Expr, identify: bool = False) -> str:
    """An expression or a query of the dialect as DuckDB SQL; ``identify`` quotes every name."""
    translated = expression.copy().transform(_translated)
    return translated.sql(dialect="duckdb", identify=identify, unsupported_level=sqlglot.ErrorLevel.IGNORE)


def function_name(node: exp.Expr) -> str:
    """The name of a function call, in lower case; '' for what is none."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def is_aggregate(node: exp.Expr) -> bool:
    return (
        isinstance(node, exp.AggFunc | exp.CombinedAggFunc | exp.AnonymousAggFunc) or function_name(node) in AGGREGATES
    )


def refuse_volatile(expression: exp.Expr, where: str) -> None:
    """Refuses what changes from one evaluation to the next: a retraction could not equal its insertion."""
    for node in expression.find_all(exp.Func):
        name = function_name(node)
        if name in CLOCKS:
            raise Unsupported(
                f"{name}() has no fixed value in a streaming query",
                where=where,
                fix="compare with a literal time, use _tp_time, or set seek_to = '-1h' for where to start",
            )
        if name in RANDOM:
            raise Unsupported(
                f"{name}() is random, so a retraction could not equal its insertion",
                where=where,
                fix="compute it in the producer",
            )


def _translated(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string and "." in node.this and "e" not in node.this.lower():
        # ClickHouse reads 1.5 as a float; DuckDB would make it a decimal.
        return exp.Literal.number(f"{node.this}e0")
    special = _SPECIAL.get(type(node))
    if special is not None:
        # What takes a node's place is not looked into again, so its parts come first.
        for part in list(node.iter_expressions()):
            part.replace(part.transform(_translated))
        return special(node)
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return _call(node)
    return node


def _call(node: exp.Expr) -> exp.Expr:
    name = snake_case(str(node.this))
    arguments = [argument.transform(_translated).sql(dialect="duckdb") for argument in node.expressions]
    if name == "multi_if":
        return _parsed(_multi_if(arguments))
    template = TEMPLATES.get(name)
    if template is None:
        return node
    try:
        text = template.replace("{*}", ", ".join(arguments)).format(*arguments)
    except IndexError as fault:
        raise UnknownName(
            f"{name}() takes more than {len(arguments)} arguments", fix=f"it stands for {template}"
        ) from fault
    return _parsed(text)


def snake_case(name: str) -> str:
    """``toInt32``, as ClickHouse writes it, is ``to_int32``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _multi_if(arguments: list[str]) -> str:
    """condition, value, condition, value, .., otherwise"""
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"CASE {branches} ELSE {arguments[-1]} END"


def _parsed(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="duckdb")


def _integer_division(node: exp.Expr) -> exp.Expr:
    # a / b is a float under Timeplus rules and in DuckDB alike; sqlglot would cast for other dialects.
    return exp.Div(this=node.this, expression=node.expression, typed=False, safe=False)


def _length(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="len", expressions=[node.this])


def _distinct_count(node: exp.Expr) -> exp.Expr:
    # An estimate would change with the order of rows.
    return exp.Count(this=exp.Distinct(expressions=[node.this]))


def _least(node: exp.Expr) -> exp.Expr:
    # Of any value it is said which, so that it is the same whatever the order of rows.
    return exp.Min(this=node.this)


def _hex_digest(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="md5", expressions=[node.this])


def _cast(node: exp.Expr) -> exp.Expr:
    """CAST to a type of ours: by its Arrow type, since names differ (``datetime64``, ``int8``)."""
    written = node.args["to"].sql(dialect="clickhouse").lower()
    return exp.Cast(
        this=node.this, to=exp.DataType.build(duckdb_type(arrow(written, Rules.TIMEPLUS)), dialect="duckdb")
    )


def duckdb_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        return f"{duckdb_type(kind.value_type)}[]"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    if kind not in _DUCKDB_TYPES:
        raise Unsupported(f"CAST to {kind} is not supported", fix="CAST to a plain type")
    return _DUCKDB_TYPES[kind]


_DUCKDB_TYPES: Mapping[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE",
    pa.string(): "TEXT",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
}

_SPECIAL: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Div: _integer_division,
    exp.Length: _length,
    exp.ApproxDistinct: _distinct_count,
    exp.AnyValue: _least,
    exp.MD5Digest: _hex_digest,
    exp.Cast: _cast,
}
