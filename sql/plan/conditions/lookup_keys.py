"""Equalities of a lookup join become the key that is asked by; the rest is its residual condition.

Which columns may be asked by, the table's ``cover`` says. Of several ways the one that covers most is taken, the
primary key first. The left side of an equality is computed in exactly the type of the column that it is compared with:
a value that this type cannot hold becomes NULL, which matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.wording import type_words
from dovetail.sql.expressions.comparison import comparison
from dovetail.sql.expressions.engine import type_name
from dovetail.sql.expressions.evaluate import common_type
from dovetail.sql.expressions.expression import Expr, columns_read
from dovetail.sql.expressions.predicates import conjunction
from dovetail.sql.plan.conditions.join_side import JoinSide
from dovetail.sql.plan.nodes import Cover, LookupJoin, LookupTable

PRIMARY_KEY = "primary key"
PREFIX = "primary key prefix"
EQUALITY = "equality"
"""What serves where any columns may be asked by."""

Way = tuple[tuple[str, ...], str]
"""Columns to ask by, in order, and what serves."""


def lookup_keys(join: LookupJoin, numbers: Iterator[int]) -> LookupJoin:
    left = JoinSide.of(join.input)
    equal, rest = _equalities(join)
    way = _way(join.table, equal)
    if way is None:
        raise _uncovered(join, equal)
    by, index = way
    keys = tuple((_left_key(join, left, equal[name][0], name, numbers), name) for name in by)
    residual = conjunction([*rest, *(term for name, (_, term) in equal.items() if name not in by)])
    return replace(join, input=left.with_hidden(), on=(), keys=keys, index=index, residual=residual)


def _equalities(join: LookupJoin) -> tuple[dict[str, tuple[Expr, Expr]], list[Expr]]:
    """Column of the table -> what it equals, and the term that says so; the other terms."""
    equal: dict[str, tuple[Expr, Expr]] = {}
    rest: list[Expr] = []
    for term in join.on:
        found = _equality(term, join)
        if found is None or found[0] in equal:
            rest.append(term)
        else:
            equal[found[0]] = (found[1], term)
    return equal, rest


def _equality(term: Expr, join: LookupJoin) -> tuple[str, Expr] | None:
    """The column of the table, and the expression of the left (or the constant) that it equals."""
    declared = dict(join.table.columns)
    found = comparison(term, join.input.schema, join.table.schema)
    if found is not None:
        column = found.right.plain
        return (declared[column], found.left) if found.operator == "=" and column is not None else None
    tree = term.tree.unnest()
    if not isinstance(tree, exp.EQ):
        return None
    for side, other in ((tree.left.unnest(), tree.right.unnest()), (tree.right.unnest(), tree.left.unnest())):
        if isinstance(side, exp.Column) and side.name in declared and not columns_read(other):
            return declared[side.name], Expr.over(other, join.input.schema)
    return None


def _left_key(join: LookupJoin, left: JoinSide, key: Expr, name: str, numbers: Iterator[int]) -> str:
    """The column of the left that holds the key in the type of the column ``name``."""
    wanted = join.table.type_of(name)
    shown = f"{key.readable} = {join.table.internal(name)}"
    if pa.types.is_nested(wanted):
        raise SqlError(
            f"{name} is {type_words(wanted)}, and rows are looked up by plain values",
            where=join.place,
            fix="join by a number, a text or a time",
        )
    exact = common_type(key.type, wanted, shown, join.place) == wanted
    return left.column(key if exact else _exactly(key, wanted), wanted, numbers)


_PERIODS = {"s": "second", "ms": "millisecond"}


def _exactly(key: Expr, wanted: pa.DataType) -> Expr:
    """The key as another type, NULL where that cannot hold it."""
    kind = exp.DataType.build(type_name(wanted), dialect="duckdb")
    cast: exp.Expr = exp.TryCast(this=key.tree.copy(), to=kind)
    if pa.types.is_timestamp(wanted) and wanted.unit in _PERIODS:
        # The engine's own instants are finer than the column.
        cast = exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(_PERIODS[wanted.unit]), cast])
    same = exp.EQ(this=exp.Paren(this=key.tree.copy()), expression=cast)
    return Expr(exp.Case().when(same, cast), wanted)


# -- ways --


def _way(table: LookupTable, equal: Mapping[str, object]) -> Way | None:
    """The way to ask that covers most of the equalities; None if there is none."""
    if table.cover == Cover.ANY:
        by = tuple(column.name for column in table.declared if column.name in equal)
        whole = bool(by) and set(by) == set(table.primary_key)
        return (table.primary_key, PRIMARY_KEY) if whole else (by, EQUALITY) if by else None
    if table.primary_key and not table.index and set(table.primary_key) <= set(equal):
        return table.primary_key, PRIMARY_KEY
    ways = [way for way in _prefixes(table, equal) if way[0]]
    return max(ways, key=lambda way: len(way[0])) if ways else None


def _prefixes(table: LookupTable, equal: Mapping[str, object]) -> Iterator[Way]:
    if table.cover == Cover.PREFIX and not table.index:
        yield _prefix(table.primary_key, equal), PREFIX
    if table.cover != Cover.KEY:
        for index in table.indexes:
            if table.index in ("", index.name):
                yield _prefix(index.columns, equal), index.name


def _prefix(columns: tuple[str, ...], equal: Mapping[str, object]) -> tuple[str, ...]:
    missing = next((place for place, name in enumerate(columns) if name not in equal), len(columns))
    return columns[:missing]


# -- refusals --


def _uncovered(join: LookupJoin, equal: Mapping[str, object]) -> Unsupported:
    table = join.table
    by = f"the join asks by {', '.join(equal)}" if equal else "the join has no equality with a column"
    what = f'{by} of "{table.name}", which is looked up by {_ways_of(table)}'
    return Unsupported(what, where=join.place, fix=", or ".join(_fixes(join, list(equal))))


def _ways_of(table: LookupTable) -> str:
    if table.cover == Cover.ANY:
        return "equality of any columns"
    key = f"its primary key ({', '.join(table.primary_key)})" if table.primary_key else ""
    if table.cover == Cover.KEY:
        return key
    if table.cover == Cover.PREFIX and len(table.primary_key) > 1:
        key += ", a prefix of it"
    served = [index for index in table.indexes if table.index in ("", index.name)]
    indexes = [f"{index.name} ({', '.join(index.columns)})" for index in served]
    ways = [key] if key and not table.index else []
    return " or ".join([*ways, f"an index, from its first column on: {', '.join(indexes) or 'it has none'}"])


def _fixes(join: LookupJoin, equal: Sequence[str]) -> list[str]:
    table = join.table
    fixes = []
    if join.kind.is_existence and table.primary_key and not equal:
        # Whether a table that is asked by key has any row at all is not known.
        by = " AND ".join(f"{name} = l.{name}" for name in table.primary_key)
        return [
            f"say which row is asked for, EXISTS (SELECT 1 FROM {table.name} WHERE {by} AND ..)",
            "leave NULL out of what NOT IN looks for: x IS NOT NULL AND x NOT IN (..)",
        ]
    if equal and table.cover in (Cover.PREFIX, Cover.INDEXED):
        wanted = [name for name in equal if name not in table.primary_key] or list(equal)
        fixes.append(f"CREATE INDEX {table.name}_by_{wanted[0]} ON {table.name} ({', '.join(wanted)})")
    if table.primary_key and table.cover != Cover.ANY:
        fixes.append(f"join by {' and '.join(table.internal(name) for name in table.primary_key)}")
    return fixes or ["add an equality: ON l.key = r.key"]
