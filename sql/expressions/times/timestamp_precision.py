"""How fine a time is: with no digits of seconds, three or six, as the unit of its type says.

The engine has every instant in microseconds. What an expression makes of columns of seconds or milliseconds is no
finer where it only picks (``coalesce``, ``CASE``, ``max``) or moves by whole units; where a function of Timeplus has
digits of its own (``to_datetime``, ``to_start_of_hour``), it notes them on its tree.

    at datetime64(3)      at + INTERVAL 1 MINUTE    3 digits
                          to_start_of_hour(at)      none
                          at + INTERVAL 5 MICROSECOND, to_timestamp(x)      6 digits
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from sqlglot import exp

UNITS = ("s", "ms", "us")
"""From coarse to fine."""
_PRECISION_KEY = "digits"
"""The key in the metadata of a tree under which a function notes its unit."""

_PICKS = {
    **dict.fromkeys(("coalesce", "ifnull", "greatest", "least"), slice(None)),
    **dict.fromkeys(("nullif", "try", "any_value", "arg_max", "arg_min"), slice(1)),
    **dict.fromkeys(("first_value", "last_value", "nth_value"), slice(1)),
    **dict.fromkeys(("lag", "lead"), slice(0, 3, 2)),
    "timezone": slice(1, 2),
}
"""Calls whose value is that of one of their arguments, and of which."""
_PICKED = (
    *(exp.Max, exp.Min, exp.AnyValue, exp.First, exp.Last, exp.ArgMax, exp.ArgMin, exp.FirstValue, exp.LastValue),
    *(exp.NthValue, exp.Lag, exp.Lead, exp.Paren, exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls),
)
"""Nodes whose value is that of their first part, or a default."""
_STEPS = {
    **dict.fromkeys(("minutes", "hours", "days", "weeks", "months", "quarters", "years"), "s"),
    "milliseconds": "ms",
}


def marked(tree: exp.Expr, unit: str) -> exp.Expr:
    """``tree`` with the note that it is so fine."""
    noted = exp.Paren(this=tree.copy()) if isinstance(tree, exp.Column) else tree.copy()
    noted.meta[_PRECISION_KEY] = unit
    return noted


def finer(units: Iterable[str]) -> str:
    return max(units, key=UNITS.index)


def with_precision(kind: pa.DataType, tree: exp.Expr, schema: pa.Schema) -> pa.DataType:
    """``kind``, that of the engine for ``tree`` over rows of ``schema``, at the unit that the tree has."""
    if kind != pa.timestamp("us", "UTC"):
        return kind
    unit = _unit(tree, schema)
    return kind if unit is None else pa.timestamp(unit, "UTC")


def _unit(tree: exp.Expr, schema: pa.Schema) -> str | None:
    """None where only literals and NULL say it: then the engine does."""
    noted = tree.meta.get(_PRECISION_KEY)
    if isinstance(noted, str):
        return noted
    match tree:
        case exp.Column():
            return _of_column(tree.name, schema)
        case exp.Null():
            return None
        case exp.Cast() if isinstance(tree.this, exp.Null) or _is_whole_time(tree.this):
            return None
        case exp.Add() | exp.Sub():
            return _moved(tree, schema)
    picked = _picked(tree)
    return _finest(picked, schema) if picked else "us"


def _picked(tree: exp.Expr) -> list[exp.Expr]:
    """The parts of a tree one of which is its value; none where it computes another."""
    found: list[exp.Expr | None] = []
    if isinstance(tree, exp.Case):
        found = [*(branch.args["true"] for branch in tree.args["ifs"]), tree.args.get("default")]
    elif isinstance(tree, exp.Anonymous):
        found = list(tree.expressions[_PICKS.get(tree.name.lower(), slice(0))])
    elif isinstance(tree, _PICKED):
        found = [tree.this, tree.args.get("default")]
    return [part for part in found if part is not None]


def _is_whole_time(value: exp.Expr) -> bool:
    """Whether it is a time that is written out, without digits of seconds."""
    return isinstance(value, exp.Literal) and value.is_string and "." not in str(value.this)


def _of_column(name: str, schema: pa.Schema) -> str:
    position = schema.get_field_index(name)
    kind = schema.field(position).type if position >= 0 else None
    return str(kind.unit) if kind is not None and pa.types.is_timestamp(kind) else "us"


def _finest(parts: Sequence[exp.Expr], schema: pa.Schema) -> str | None:
    units = [unit for unit in (_unit(part, schema) for part in parts) if unit is not None]
    return finer(units) if units else None


def _moved(tree: exp.Binary, schema: pa.Schema) -> str | None:
    """A time and a length: as fine as the finer of both."""
    time, length = tree.left, tree.right.unnest()
    name = length.name.lower() if isinstance(length, exp.Anonymous) else ""
    if not name.startswith("to_"):
        return "us"
    step = "s" if name == "to_seconds" and _is_whole(length.expressions[0], schema) else _STEPS.get(name[3:], "us")
    moved = _unit(time, schema)
    return None if moved is None else finer((moved, step))


def _is_whole(count: exp.Expr, schema: pa.Schema) -> bool:
    """Whether a count of seconds has no fraction."""
    count = count.this.unnest() if isinstance(count, exp.Cast) else count.unnest()
    if isinstance(count, exp.Column):
        position = schema.get_field_index(count.name)
        return position >= 0 and bool(pa.types.is_integer(schema.field(position).type))
    return isinstance(count, exp.Literal) and not count.is_string and str(count.this).isdecimal()
