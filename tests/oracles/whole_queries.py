"""Whole queries over tables, at random, in the words that PostgreSQL and the dialect of tables share.

A query joins up to four inputs (tables, subqueries, groups, functions of several rows), filters, groups, combines with
others, and takes first rows; each of its columns has a name and a type, so that what is put together fits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The types of columns."""

    INT = "int"
    BIG = "bigint"
    TEXT = "varchar"
    NUMERIC = "numeric(10, 2)"
    BOOL = "boolean"
    TIME = "timestamp"


VALUES = {
    Kind.INT: ("0", "1", "2", "3", "-1"),
    Kind.BIG: ("0", "1", "2", "3", "-1"),
    Kind.TEXT: ("'a'", "'b'", "'ab'", "''", "'B'"),
    Kind.NUMERIC: ("0", "1.50", "2", "-1", "0.01"),
    Kind.BOOL: ("true", "false"),
    Kind.TIME: (
        "timestamp '2026-01-01 00:00:00'",
        "timestamp '2026-01-01 00:00:01'",
        "timestamp '2026-01-02 10:00:00'",
    ),
}
NULLS = 0.2
"""Of how many values are NULL."""


@dataclass(frozen=True)
class Column:
    """A column as others name it: ``x1.n``, or ``n`` alone."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Input:
    """What stands in FROM, with its columns."""

    text: str
    columns: tuple[Column, ...]


TABLES = {
    "a": (Column("k", Kind.INT), Column("n", Kind.INT), Column("s", Kind.TEXT), Column("v", Kind.NUMERIC)),
    "b": (Column("k", Kind.INT), Column("s", Kind.TEXT), Column("f", Kind.BOOL), Column("at", Kind.TIME)),
    "c": (Column("k", Kind.INT), Column("n", Kind.INT), Column("v", Kind.NUMERIC)),
    "d": (Column("s", Kind.TEXT), Column("n", Kind.INT), Column("g", Kind.BIG)),
}
KEYS = {"a": "k", "b": "k"}
"""Those with a primary key; a row of the others may stand several times."""


def created() -> list[str]:
    def listed(name: str) -> str:
        columns = (
            f"{one.name} {one.kind}{' PRIMARY KEY' if KEYS.get(name) == one.name else ''}" for one in TABLES[name]
        )
        return ", ".join(columns)

    return [f"CREATE TABLE {name} ({listed(name)})" for name in TABLES]


def value(chance: random.Random, kind: Kind) -> str:
    return "NULL" if chance.random() < NULLS else chance.choice(VALUES[kind])


def change(chance: random.Random, keys: dict[str, set[str]]) -> str:
    """INSERT, UPDATE or DELETE. ``keys``: the primary keys that are there, of each table, kept up to date."""
    name = chance.choice(list(TABLES))
    key = KEYS.get(name)
    columns = TABLES[name]
    if chance.random() < 0.15:
        where = f"{columns[-1].name} IS NULL" if chance.random() < 0.3 else _equal(chance, chance.choice(columns), "")
        changed = chance.choice([one for one in columns if one.name != key])
        return f"UPDATE {name} SET {changed.name} = {value(chance, changed.kind)} WHERE {where}"
    if chance.random() < 0.2:
        one = columns[0] if key else chance.choice(columns)
        chosen = chance.choice(VALUES[one.kind])
        keys[name].discard(chosen)
        return f"DELETE FROM {name} WHERE {one.name} = {chosen}"
    row = [value(chance, one.kind) for one in columns]
    if key:
        free = [one for one in (*VALUES[Kind.INT], *map(str, range(4, 12))) if one not in keys[name]]
        if not free:
            keys[name].clear()
            return f"DELETE FROM {name}"
        row[0] = chance.choice(free)
        keys[name].add(row[0])
    return f"INSERT INTO {name} VALUES ({', '.join(row)})"


def _equal(chance: random.Random, column: Column, before: str) -> str:
    return f"{before}{column.name} = {chance.choice(VALUES[column.kind])}"


class Queries:
    """Queries of one ``chance``; ``depth`` is how deep subqueries stand within one another."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._names = 0

    def query(self, depth: int = 2) -> Input:
        """A query that stands alone; its columns are ``c0``, ``c1``, .."""
        form: Callable[[int], Input] = self._choice(
            [self._select] * 4 + [self._grouped] * 4 + [self._combined, self._first]
        )
        return form(depth)

    def _choice(self, among: Sequence[Callable[[int], Input]]) -> Callable[[int], Input]:
        return self._chance.choice(among)

    def _maybe(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _name(self) -> str:
        self._names += 1
        return f"x{self._names}"

    # -- FROM --

    def _input(self, depth: int) -> Input:
        name = self._name()
        if depth > 0 and self._maybe(0.3):
            inner = self.query(depth - 1)
            return Input(
                f"({inner.text}) AS {name}", tuple(Column(f"{name}.{one.name}", one.kind) for one in inner.columns)
            )
        table = self._chance.choice(list(TABLES))
        return Input(f"{table} AS {name}", tuple(Column(f"{name}.{one.name}", one.kind) for one in TABLES[table]))

    def _from(self, depth: int) -> Input:
        found = self._input(depth)
        for _ in range(self._chance.choice([0, 0, 1, 1, 1, 2, 3])):
            other = self._input(depth)
            pairs = [(one, two) for one in found.columns for two in other.columns if one.kind == two.kind]
            if not pairs:
                continue
            on = " AND ".join(
                f"{one.name} = {two.name}"
                for one, two in self._chance.sample(pairs, min(len(pairs), self._chance.choice([1, 1, 2])))
            )
            side = self._chance.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            if side in ("JOIN", "LEFT JOIN") and self._maybe(0.2):
                on += f" AND {self._condition((*found.columns, *other.columns), 0)}"
            found = Input(f"{found.text} {side} {other.text} ON {on}", (*found.columns, *other.columns))
        return found

    # -- conditions and values --

    def _condition(self, columns: Sequence[Column], depth: int) -> str:
        column = self._chance.choice(columns)
        sign, no = self._chance.choice(["=", "<>", "<", "<=", ">", ">="]), self._chance.choice(["", "NOT "])
        forms = [
            lambda: f"{column.name} {sign} {self._operand(columns, column.kind)}",
            lambda: f"{column.name} IS {no}NULL",
            lambda: f"{column.name} {no}IN ({', '.join(self._chance.sample(VALUES[column.kind], 2))})",
            lambda: f"NOT ({self._condition(columns, 0)})",
            lambda: (
                f"({self._condition(columns, 0)} {self._chance.choice(['AND', 'OR'])} {self._condition(columns, 0)})"
            ),
        ]
        if depth > 0:
            forms += [lambda: self._subquery(column)] * 2
        return self._chance.choice(forms)()

    def _operand(self, columns: Sequence[Column], kind: Kind) -> str:
        same = [one.name for one in columns if one.kind == kind]
        return self._chance.choice(same) if self._maybe(0.4) else self._chance.choice(VALUES[kind])

    def _subquery(self, column: Column) -> str:
        """EXISTS, or IN, of a table, told by the row around."""
        name = self._name()
        fitting = [(table, one) for table, columns in TABLES.items() for one in columns if one.kind == column.kind]
        if not fitting:
            return f"{column.name} IS NOT NULL"
        table, one = self._chance.choice(fitting)
        where = self._condition([Column(f"{name}.{other.name}", other.kind) for other in TABLES[table]], 0)
        no = self._chance.choice(["", "NOT "])
        if self._maybe(0.5):
            return f"{no}EXISTS (SELECT 1 FROM {table} AS {name} WHERE {name}.{one.name} = {column.name} AND {where})"
        return f"{column.name} {no}IN (SELECT {name}.{one.name} FROM {table} AS {name} WHERE {where})"

    def _value(self, columns: Sequence[Column]) -> Column:
        column = self._chance.choice(columns)
        if self._maybe(0.6):
            return column
        match column.kind:
            case Kind.INT | Kind.BIG | Kind.NUMERIC:
                return Column(f"{column.name} + {self._chance.choice(['1', '0'])}", column.kind)
            case Kind.TEXT:
                return Column(f"{self._chance.choice(['upper', 'lower'])}({column.name})", Kind.TEXT)
            case _:
                fallback = self._chance.choice(VALUES[column.kind])
                return Column(f"coalesce({column.name}, {fallback})", column.kind)

    # -- forms --

    def _where(self, columns: Sequence[Column], depth: int) -> str:
        return f" WHERE {self._condition(columns, depth)}" if self._maybe(0.5) else ""

    def _named(self, values: Sequence[Column]) -> tuple[str, tuple[Column, ...]]:
        listed = ", ".join(f"{one.name} AS c{place}" for place, one in enumerate(values))
        return listed, tuple(Column(f"c{place}", one.kind) for place, one in enumerate(values))

    def _select(self, depth: int) -> Input:
        source = self._from(depth)
        listed, columns = self._named([self._value(source.columns) for _ in range(self._chance.choice([1, 2, 3]))])
        distinct = "DISTINCT " if self._maybe(0.15) else ""
        return Input(f"SELECT {distinct}{listed} FROM {source.text}{self._where(source.columns, depth)}", columns)

    def _aggregate(self, columns: Sequence[Column]) -> Column:
        column = self._chance.choice(columns)
        name, distinct = column.name, self._chance.choice(["", "DISTINCT "])
        common = [Column("count(*)", Kind.BIG), Column(f"count({distinct}{name})", Kind.BIG)]
        match column.kind:
            case Kind.INT:
                common += [Column(f"sum({distinct}{name})", Kind.BIG), Column(f"max({name})", Kind.INT)]
            case Kind.TEXT:
                common += [
                    Column(f"string_agg({distinct}{name}, '|' ORDER BY {name})", Kind.TEXT),
                    Column(f"min({name})", Kind.TEXT),
                ]
            case Kind.BOOL:
                common += [Column(f"bool_and({name})", Kind.BOOL), Column(f"bool_or({name})", Kind.BOOL)]
            case _:
                common += [Column(f"min({name})", column.kind), Column(f"max({name})", column.kind)]
        return self._chance.choice(common)

    def _grouped(self, depth: int) -> Input:
        source = self._from(depth)
        keys = self._chance.sample(source.columns, min(len(source.columns), self._chance.choice([0, 1, 1, 2])))
        aggregates = [self._aggregate(source.columns) for _ in range(self._chance.choice([1, 2]))]
        listed, columns = self._named([*keys, *aggregates])
        group = f" GROUP BY {', '.join(key.name for key in keys)}" if keys else ""
        having = f" HAVING {self._aggregate(source.columns).name} IS NOT NULL" if keys and self._maybe(0.1) else ""
        having = f" HAVING count(*) > {self._chance.choice([0, 1])}" if keys and self._maybe(0.2) else having
        return Input(f"SELECT {listed} FROM {source.text}{self._where(source.columns, depth)}{group}{having}", columns)

    def _combined(self, depth: int) -> Input:
        """UNION, INTERSECT or EXCEPT of two queries with the same types."""
        one = self._select(0)
        for _ in range(20):
            other = self._select(0)
            if [column.kind for column in other.columns] == [column.kind for column in one.columns]:
                word = self._chance.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"])
                return Input(f"{one.text} {word} {other.text}", one.columns)
        return one

    def _first(self, depth: int) -> Input:
        """The first rows by all columns, so that there is one answer."""
        inner, name = self._grouped(max(depth - 1, 0)), self._name()
        order = ", ".join(f"{name}.{one.name}{self._chance.choice(['', ' DESC'])}" for one in inner.columns)
        listed = ", ".join(f"{name}.{one.name}" for one in inner.columns)
        limit = f"LIMIT {self._chance.choice([1, 2, 3])}" + (" OFFSET 1" if self._maybe(0.2) else "")
        return Input(f"SELECT {listed} FROM ({inner.text}) AS {name} ORDER BY {order} {limit}", inner.columns)
