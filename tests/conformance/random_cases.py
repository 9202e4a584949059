"""Random joins over random tables, with DuckDB as the judge of what the view must hold after every step.

A seed gives the same case in every run. The tables are small and their values few, so that keys meet, rows repeat,
NULLs occur and updates move rows between keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import duckdb

from tests.conformance.case import Case, Check, Delete, Expectation, Insert, Mode, Restart, Row, Start, Step, Update

COLUMNS = {"a": "int", "b": "string", "c": "int", "d": "double"}
DOMAINS: dict[str, Sequence[object]] = {"a": [1, 2, 3], "b": "xyz", "c": [1, 2, 3, 4], "d": [0.5, 1.5, 2.0]}
DECLARATIONS = {
    "mutable": "CREATE MUTABLE STREAM {name} ({columns}) PRIMARY KEY ({key})",
    "versioned_kv": "CREATE STREAM {name} ({columns}) PRIMARY KEY ({key}) SETTINGS mode = 'versioned_kv'",
    "changelog_kv": "CREATE STREAM {name} ({columns}) PRIMARY KEY ({key}) SETTINGS mode = 'changelog_kv'",
    "changelog": "CREATE STREAM {name} ({columns}) SETTINGS mode = 'changelog'",
    "append": "CREATE STREAM {name} ({columns})",
    "table_by_key": "CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))",
    "table": "CREATE TABLE {name} ({columns})",
    "append_only": "CREATE TABLE {name} ({columns}) APPEND ONLY",
}
TIMEPLUS = ("mutable", "versioned_kv", "changelog_kv", "changelog")
RISINGWAVE = ("table_by_key", "table", "append_only")
KEYED = ("mutable", "versioned_kv", "changelog_kv", "table_by_key")
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
RESIDUALS = ("{0}.d < {1}.d", "{0}.c <> {1}.c", "{1}.d > 1", "{0}.d > 1", "{0}.c + {1}.c > 4")
AGGREGATES = ("count(*)", "count({0})", "count(DISTINCT {0})", "min({0})", "max({0})", "sum(l.d)", "avg(r.c)")
HAVINGS = ("count(*) > 1", "sum(l.c) < 6", "max(r.d) > 1 OR max(r.d) IS NULL")
FILTERS = ("l.d > 1", "r.c IS NULL", "l.c < 3 OR r.c > 2", "r.d < 2", "l.a = 2", "coalesce(r.c, 9) > 2")


@dataclass
class Table:
    """A table and the rows that it holds by now."""

    name: str
    kind: str
    random: Random
    primary_key: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.kind in KEYED:
            self.primary_key = self.random.choice([("a",), ("b",), ("a", "b")])

    @property
    def ddl(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        return DECLARATIONS[self.kind].format(name=self.name, columns=columns, key=", ".join(self.primary_key))

    def step(self) -> Step:
        """A random change of the rows, applied to them."""
        drawn = self.random.random()
        if not self.rows or drawn < 0.55 or self.kind in ("append", "append_only"):
            return self._insert()
        chosen = self.random.sample(self.rows, min(len(self.rows), self.random.randint(1, 3)))
        if drawn < 0.75:
            for row in chosen:
                self.rows.remove(row)
            return Delete(self.name, tuple(chosen))
        return Update(self.name, tuple(self._updated(row) for row in chosen))

    def _insert(self) -> Insert:
        written: list[Row] = []
        for _ in range(self.random.randint(1, 3)):
            row = self._row()
            for old in [old for old in self.rows if self.primary_key and self._key(old) == self._key(row)]:
                self.rows.remove(old)
                # The retraction of the row that an insertion replaces may be sent, and may be left out.
                if self.kind == "changelog_kv" and self.random.random() < 0.7:
                    written.append({**old, "_tp_delta": -1})
            self.rows.append(row)
            written.append(row)
        return Insert(self.name, tuple(written))

    def _updated(self, old: Row) -> tuple[Row, Row]:
        """The old row and a new one, whose key is free."""
        self.rows.remove(old)
        new = self._row()
        if self.primary_key and any(self._key(row) == self._key(new) for row in self.rows):
            new |= {name: old[name] for name in self.primary_key}
        self.rows.append(new)
        return old, new

    def _row(self) -> dict[str, object]:
        nullable = {name for name in COLUMNS if name not in self.primary_key and self.random.random() < 0.12}
        return {name: None if name in nullable else self.random.choice(DOMAINS[name]) for name in COLUMNS}

    def _key(self, row: Row) -> tuple[object, ...]:
        return tuple(row[name] for name in self.primary_key)


def random_case(seed: int) -> Case:
    """Two or three tables, a join of them, some steps, and the view after each of these."""
    random = Random(seed)
    tables = _tables(random)
    columns, query = _query(random, [table.name for table in tables])
    may_start_late = tables[0].kind != "append"
    start = random.randint(1, 4) if may_start_late and random.random() < 0.3 else 0
    steps: list[Step] = []
    checks: list[Check] = []
    for number in range(random.randint(5, 9)):
        steps.append(_step(random, tables, number, start))
        if number >= start:
            checks.append(Check(len(steps), _view(query, columns, tables)))
    emit = " EMIT CHANGELOG" if tables[0].kind in TIMEPLUS and random.random() < 0.5 else ""
    expected = Expectation(Mode.TABLE, columns, checks[-1].rows)
    ddl = tuple(table.ddl for table in tables)
    return Case(f"random-{seed}", "random", 2, ddl, {}, tuple(steps), query + emit, expected, checks=tuple(checks))


def _tables(random: Random) -> list[Table]:
    names = ["l", "r", "s"][: random.choice([2, 2, 3])]
    if random.random() < 0.15:
        return [Table(name, "append", random) for name in ("l", "r")]
    kinds = random.choice([TIMEPLUS, RISINGWAVE])
    return [Table(name, random.choice(kinds), random) for name in names]


def _step(random: Random, tables: Sequence[Table], number: int, start: int) -> Step:
    if start and number == start:
        return Start()
    if number > start and random.random() < 0.1:
        return Restart()
    return random.choice(tables).step()


def _query(random: Random, names: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The names of the output columns, and the SELECT."""
    source = f"l {random.choice(JOINS)} r ON {_condition(random, 'l', 'r')}"
    if len(names) == 3:
        source += f" {random.choice(JOINS)} s ON {_condition(random, random.choice(['l', 'r']), 's')}"
    selected = {
        f"{name}{column}": f"{name}.{column}"
        for name in names
        for column in random.sample(list(COLUMNS), random.randint(1, 4))
    }
    if random.random() < 0.2:
        selected["computed"] = "l.c * 2 + coalesce(r.c, 0)"
    where = f" WHERE {random.choice(FILTERS)}" if random.random() < 0.35 else ""
    groups = ""
    if random.random() < 0.3:
        selected, groups = _grouped(random, names)
    items = ", ".join(f"{expression} AS {name}" for name, expression in selected.items())
    return tuple(selected), f"SELECT {items} FROM {source}{where}{groups}"


def _grouped(random: Random, names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Groups by at least one column, and some aggregates of them."""
    columns = [f"{name}.{column}" for name in names for column in COLUMNS]
    keys = random.sample(columns, random.randint(1, 2))
    aggregates = [random.choice(AGGREGATES).format(random.choice(columns)) for _ in range(random.randint(1, 3))]
    having = f" HAVING {random.choice(HAVINGS)}" if random.random() < 0.3 else ""
    selected = {f"x{number}": expression for number, expression in enumerate([*keys, *aggregates])}
    return selected, f" GROUP BY {', '.join(keys)}{having}"


def _condition(random: Random, left: str, right: str) -> str:
    terms = []
    for column in random.sample(["a", "b", "c"], random.choice([1, 1, 2])):
        other = column if random.random() < 0.7 else {"a": "c", "b": "b", "c": "a"}[column]
        operator = random.choice(["=", "=", "=", "IS NOT DISTINCT FROM"])
        terms.append(f"{left}.{column} {operator} {right}.{other}")
    if random.random() < 0.25:
        terms.append(random.choice(RESIDUALS).format(left, right))
    return " AND ".join(terms)


def _view(query: str, columns: Sequence[str], tables: Sequence[Table]) -> tuple[Row, ...]:
    """What the query gives over the rows that the tables hold."""
    with duckdb.connect() as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table.name} (a INT, b VARCHAR, c INT, d DOUBLE)")
            for row in table.rows:
                connection.execute(f"INSERT INTO {table.name} VALUES (?, ?, ?, ?)", [row[name] for name in COLUMNS])
        return tuple(dict(zip(columns, row, strict=True)) for row in connection.execute(query).fetchall())
