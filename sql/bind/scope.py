"""The names that an expression may use: the columns of the FROM items, as they are seen from a clause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.schema import SEQUENCE, TIME
from dovetail.changelog.suggest import suggestion
from dovetail.sql.functions.dialects import TIMEPLUS
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.syntax.faults import SCRIPT, place
from dovetail.sql.syntax.record_columns import DECLARATIONS

_NO_COLUMNS = "name what has it, SELECT .. FROM s; a call has brackets, now(); a text has single quotes"
"""For a query that reads nothing."""

HIDDEN_TABLE = "#"
"""What the aliases begin with of tables that the query does not name: dict_get looks them up."""


@dataclass(frozen=True)
class Visible:
    """A column that can be named.

    table     the alias of its FROM item; '' for a column that USING merged
    internal  its name in the plan
    type      of its values
    starred   part of ``*``
    bare      found without its table's name (a USING column is found by its merged form instead)
    spent     the join that let none of its values leave; empty where they do
    form      of its texts, one of ``changelog.formats.text_forms``; empty where they have none
    """

    table: str
    name: str
    internal: str
    type: pa.DataType
    starred: bool = True
    bare: bool = True
    spent: str = ""
    form: str = ""


@dataclass(frozen=True)
class Scope:
    """The columns of a FROM clause, in the order of ``*``.

    dialect  what expressions over them are written in
    outer    of a correlated subquery: the columns around it
    """

    columns: tuple[Visible, ...]
    dialect: Dialect = TIMEPLUS
    outer: Scope | None = None

    def __add__(self, other: Scope) -> Scope:
        return replace(self, columns=self.columns + other.columns)

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        """The type of each column, by its internal name."""
        around = {} if self.outer is None else self.outer.types
        return {**around, **{column.internal: column.type for column in self.columns}}

    @cached_property
    def forms(self) -> Mapping[str, str]:
        """The form of each column whose texts have one, by its internal name."""
        around = {} if self.outer is None else self.outer.forms
        return {**around, **{column.internal: column.form for column in self.columns if column.form}}

    @property
    def around(self) -> list[pa.Field]:
        """The columns around a subquery, by their internal names."""
        return [] if self.outer is None else [pa.field(name, kind) for name, kind in self.outer.types.items()]

    def seen_with(self, rows: pa.Schema) -> pa.Schema:
        """All columns that an expression may read: those of ``rows``, and those around a subquery."""
        return pa.schema([*rows, *self.around])

    @property
    def tables(self) -> tuple[str, ...]:
        """The aliases that the user knows."""
        named = (column.table for column in self.columns if not column.table.startswith(HIDDEN_TABLE))
        return tuple(dict.fromkeys(table for table in named if table))

    def find(self, column: exp.Column, clause: str) -> Visible:
        """The column that is meant. Raises UnknownName if there is none, or more than one."""
        named = self._named(column.name, column.table)
        found = [candidate for candidate in named if not candidate.spent] or named[:1]
        where = place_of(column, clause)
        if found and found[0].spent:
            raise Unsupported(
                f'"{column.name}" is a column of "{found[0].table}", and a {found[0].spent} gives those of the other '
                "side alone",
                where=where,
                fix="leave it out, or JOIN for the columns of both sides",
            )
        if len(found) == 1:
            return found[0]
        if not found and self.outer is not None and self.outer.knows(column):
            return self.outer.find(column, clause)
        if found:
            # Of one that USING merged, its halves can be named.
            halves = (one for one in self.columns if one.table in self.tables and _same(one.name, column.name))
            choices = ", ".join(dict.fromkeys(f"{one.table}.{one.name}" for one in halves if not one.spent))
            raise UnknownName(f'column "{column.name}" is ambiguous', where=where, fix=f"write one of: {choices}")
        if column.table and not any(_same(column.table, table) for table in self.tables):
            fix = suggestion(column.table, self.tables, nothing=f"FROM {column.table}")
            raise UnknownName(f'there is no "{column.table}" in FROM', where=where, fix=fix)
        known = [
            candidate.name
            for candidate in self.columns
            if (_same(candidate.table, column.table) if column.table else candidate.bare)
        ]
        what = (
            f'there is no column "{column.name}"'
            if not column.table
            else f'"{column.table}" has no column "{column.name}"'
        )
        declared = DECLARATIONS.get(column.name)
        of_record = f"declare it: ALTER STREAM .. ADD COLUMN {column.name} {declared}"
        fix = of_record if declared else suggestion(column.name, set(known), nothing=_NO_COLUMNS)
        if not column.table and (
            column.this.args.get("quoted") or (_is_compared_with(column) and not fix.startswith("did you mean"))
        ):
            fix = f"{fix}; a text is written in single quotes: {exp.Literal.string(column.name).sql()}"
        raise UnknownName(what, where=where, fix=fix)

    def _named(self, name: str, table: str) -> list[Visible]:
        candidates = [
            column
            for column in self.columns
            if (_same(column.table, table) if table else column.bare) and _same(column.name, name)
        ]
        exact = [column for column in candidates if column.name == name]
        return exact or candidates

    def named_by(self, column: exp.Column) -> str:
        """The table that a column is of; '' where it is of none, or of several."""
        found = {one.table for one in self._named(column.name, column.table) if not one.spent}
        return found.pop() if len(found) == 1 else ""

    def has(self, name: str) -> bool:
        return bool(self._named(name, ""))

    def knows(self, column: exp.Column) -> bool:
        """Whether the column is one of these, or of those around."""
        return bool(self._named(column.name, column.table)) or (self.outer is not None and self.outer.knows(column))

    def common(self, right: Scope) -> list[str]:
        """The columns that a NATURAL join equates: those that both sides have, reserved ones apart."""
        bare = [column.name for column in self.columns if column.bare and not column.spent]
        return [name for name in dict.fromkeys(bare) if right.has(name) and name not in (TIME, SEQUENCE)]

    def halves(self, right: Scope, names: Sequence[str]) -> list[tuple[str, str]]:
        """The internal names, left and right, of the columns that USING equates."""
        columns = [exp.column(name) for name in names]
        return [(self.find(one, "USING").internal, right.find(one, "USING").internal) for one in columns]

    def refuse_aliases_of(self, right: Scope, place: str) -> None:
        """Raises UnknownName for an alias that both sides of a join have."""
        known = {table.casefold() for table in self.tables}
        twice = [table for table in right.tables if table.casefold() in known]
        if twice:
            fix = "give each its own alias: FROM a AS x JOIN a AS y"
            raise UnknownName(f'"{min(twice)}" stands twice in FROM', where=place, fix=fix)

    def is_table(self, name: str) -> bool:
        return any(_same(name, table) for table in self.tables) or (
            self.outer is not None and self.outer.is_table(name)
        )

    def spent(self, by: str) -> Scope:
        """The columns of the side of a join (``by``) whose values do not leave it."""
        return replace(self, columns=tuple(replace(column, starred=False, spent=by) for column in self.columns))

    def of(self, table: str) -> list[Visible]:
        return [column for column in self.columns if _same(column.table, table)]

    def merged(self, name: str, left: str, right: str, internal: str, place: int | None) -> Scope:
        """USING: one column, found without a table; its two halves only with theirs.

        ``place``: its place in the list of USING, which leads ``*``, as the standard and RisingWave have it; None: it
        stays where its left half is, as under Timeplus rules.
        """
        half = next(column for column in self.columns if column.internal in (left, right))
        merged = Visible("", name, internal, half.type, form=half.form)
        rest: list[Visible] = []
        for column in self.columns:
            if not column.table and _same(column.name, name):
                continue
            is_half = column.internal in (left, right) and _same(column.name, name)
            if is_half and column.internal == left and place is None:
                rest.append(merged)
            rest.append(replace(column, starred=False, bare=False) if is_half else column)
        if merged not in rest:
            rest.insert(place or 0, merged)
        return replace(self, columns=tuple(rest))


def _same(first: str, second: str) -> bool:
    return first.casefold() == second.casefold()


def place_of(node: exp.Expr, clause: str) -> str:
    """``line 1, column 8, in SELECT``, with the line quoted: where the first name in ``node`` is written."""
    for name in node.find_all(exp.Identifier, bfs=False):
        if SCRIPT in name.meta and "start" in name.meta:
            return place(name.meta[SCRIPT], name.meta["start"], clause)
    return f"in {clause}"


def _is_compared_with(column: exp.Column) -> bool:
    """Whether it is what a value is compared with, where a text without quotes may be meant."""
    compared = isinstance(column.parent, (exp.EQ, exp.NEQ, exp.Like, exp.ILike, exp.In))
    return compared and column.arg_key in ("expression", "expressions")
