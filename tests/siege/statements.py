"""Statements that a reader has no good reason to send: other tables' places, engine functions, texts cut and mixed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import duckdb

from tests.siege.loot import FILES

TABLES = ("numbers", "texts", "times")
_PLACES = (
    "SELECT {} AS a FROM table(numbers)",
    "SELECT a FROM table(numbers) WHERE {} = 1",
    "SELECT a FROM table(numbers) ORDER BY {}",
    "SELECT a FROM table(numbers) LIMIT {}",
    "SELECT a FROM table(numbers) LIMIT 1 OFFSET {}",
    "SELECT count(*) FROM table(numbers) GROUP BY {}",
    "SELECT a FROM table(numbers) GROUP BY a HAVING {} = 1",
    "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN {} PRECEDING AND CURRENT ROW) FROM table(numbers)",
    "SELECT now() + INTERVAL ({}) DAY",
    "SELECT a FROM table(numbers) UNION ALL SELECT a FROM table(numbers) ORDER BY {}",
    "SELECT CASE WHEN a = 1 THEN {} END FROM table(numbers)",
    "SELECT x.a FROM table(numbers) AS x JOIN table(texts) AS y ON x.a = y.a AND {} = 1",
    "SELECT * FROM {}",
    "SELECT * FROM table({})",
    "SELECT a FROM numbers WHERE {} = 1 LIMIT 0",
    "EXPLAIN SELECT {} FROM numbers",
    "WHY v WHERE a = {}",
    "SHOW VIEWS LIKE {}",
    "WITH q AS (SELECT {} AS a) SELECT a FROM q",
    "SELECT 'x' LIKE 'y' ESCAPE {}",
    "SELECT a FROM table(numbers) WHERE a IN ({}, 1)",
)
_ARGUMENTS = ("", "1", "'x'", "a", "NULL", "1, 2", "'x', 1", "a, a, a", "[1]", "'{}'", "1e308", "-1", "*", "x -> x")
_WORDS = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "(",
        ")",
        ",",
        "'",
        '"',
        "`",
        "--",
        "/*",
        "$$",
        ";",
        "::",
        "NULL",
        "LATERAL",
        "PIVOT",
        "SAMPLE",
    ),
    *(
        "WITH",
        "RECURSIVE",
        "UNION",
        "INTO",
        "FOR",
        "UPDATE",
        "OVER",
        "QUALIFY",
        "-1",
        "1e999",
        "\0",
        "\u202e",
        "INTERVAL",
        "CAST",
        "AS",
    ),
)
_VALID = (
    "SELECT a, count(*) AS n FROM table(numbers) WHERE a > 1 GROUP BY a HAVING count(*) > 0 ORDER BY n DESC LIMIT 5",
    "SELECT x.a, y.b FROM table(numbers) AS x LEFT JOIN table(texts) AS y ON x.a = y.a WHERE y.b LIKE '%x%' ESCAPE '!'",
    "WITH q AS (SELECT a, rank() OVER (PARTITION BY a ORDER BY a) AS n FROM table(texts)) SELECT a FROM q WHERE n = 1",
    "EXPLAIN SELECT window_start, count(*) FROM tumble(times, t, 10s) GROUP BY window_start",
    "SELECT CASE WHEN a IS NULL THEN '-' ELSE to_string(a) END AS s, a::float FROM table(numbers) LIMIT 3 OFFSET 1",
    "SHOW DEAD LETTERS FROM v LIKE '%x%'",
)
_SECONDS_ALONE = (
    "repeat('x', 1000000000)",
    "+".join(["1"] * 5000),
    "(" * 400 + "1" + ")" * 400,
    "tuple(" * 40 + "1" + ")" * 40,
)


@cache
def engine_functions() -> Sequence[str]:
    """Every name that DuckDB itself would call."""
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT DISTINCT function_name FROM duckdb_functions() ORDER BY 1").fetchall()
    return [name for (name,) in rows if name.isidentifier()]


def engine_call(chance: random.Random, _outside: Path) -> str:
    call = f"{chance.choice(engine_functions())}({chance.choice(_ARGUMENTS)})"
    return chance.choice(_PLACES).format(call)


def file_by_name(chance: random.Random, outside: Path) -> str:
    """A table that is called as a file is; also behind a CTE of its last name."""
    file = outside / chance.choice(FILES)
    stem, suffix = str(file.with_suffix("")), file.suffix.removeprefix(".")
    named = chance.choice(
        [f'"{file}"', f'"{stem}".{suffix}', f"'{file}'", f"`{file}`", f'"{outside}/*".{suffix}', f'"file://{file}"']
    )
    return chance.choice(
        [
            f"SELECT * FROM {named}",
            f"WITH {suffix} AS (SELECT '' AS secret) SELECT t.secret FROM {named} AS t",
            f"SELECT * FROM table({named})",
            f"SELECT * FROM numbers JOIN {named} AS f ON true LIMIT 1",
            f"EXPLAIN WITH {suffix} AS (SELECT '' AS secret) SELECT secret FROM {named}",
            f"SELECT (SELECT count(*) FROM {named}) FROM table(numbers)",
        ]
    )


def file_by_function(chance: random.Random, outside: Path) -> str:
    file = outside / chance.choice(FILES)
    function = chance.choice(
        [
            "read_csv",
            "read_csv_auto",
            "read_text",
            "read_blob",
            "read_json",
            "read_parquet",
            "glob",
            "file",
            "url",
            "getenv",
            "parquet_scan",
            "sniff_csv",
        ]
    )
    return chance.choice(_PLACES).format(f"{function}('{file}')")


def order(chance: random.Random, outside: Path) -> str:
    """What changes or opens something, which a reader may not."""
    file = outside / chance.choice(FILES)
    return chance.choice(
        [
            f"COPY (SELECT 1) TO '{file}'",
            f"ATTACH '{file}' AS x",
            "INSTALL httpfs",
            "LOAD sqlite",
            "SET enable_external_access = true",
            "PRAGMA database_list",
            f"EXPORT DATABASE '{outside}'",
            f"SELECT 1 INTO OUTFILE '{file}'",
            f"CREATE DICTIONARY d (id int, v string) PRIMARY KEY id SOURCE(FILE(PATH '{file}')) LAYOUT(FLAT())",
            "CREATE FUNCTION f(x int) RETURNS int LANGUAGE python AS $$ return x $$",
            f"BACKUP VIEW v TO '{outside}'",
            f"RESTORE VIEW v FROM '{outside}'",
            "CALL pragma_version()",
            "VACUUM",
        ]
    )


def mixed(chance: random.Random, _outside: Path) -> str:
    """A valid text with words put in, taken out, said twice and exchanged."""
    words = chance.choice(_VALID).split()
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(words))
        words[place : place + chance.randint(0, 2)] = chance.choices([*_WORDS, *words], k=chance.randint(0, 2))
        words = words or ["SELECT"]
    return " ".join(words)


def heavy(chance: random.Random, _outside: Path) -> str:
    return chance.choice(_PLACES).format(chance.choice(_SECONDS_ALONE))


KINDS: tuple[Callable[[random.Random, Path], str], ...] = (
    *(engine_call, file_by_name, mixed, engine_call, file_by_function, mixed, order, engine_call),
)
"""Without ``heavy``, whose statements take the time that they may: it comes once in a hundred."""


def statement(chance: random.Random, outside: Path) -> str:
    make = heavy if chance.random() < 0.01 else chance.choice(KINDS)
    return make(chance, outside)
