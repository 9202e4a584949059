"""Columns that are called as words of SQL, wherever columns stand."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import Delete, Insert, Select, Update
from tests.sql.planner import Planner
from tests.sql.world import World

WORDS = ("emit", "at", "date", "value", "order", "group", "key", "settings", "end", "index")
DDL = {
    "timeplus": "CREATE STREAM {name} ({word} int, k int, v int) PRIMARY KEY k",
    "risingwave": "CREATE TABLE {name} ({word} INT, k INT, v INT, PRIMARY KEY (k))",
}
DICTIONARY = (
    "CREATE DICTIONARY d ({word} int, x string) PRIMARY KEY {word} SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' "
    "PASSWORD 'w' DB 'shop' TABLE 'd')) LAYOUT(HASHED()) LIFETIME(300)"
)
QUERIES = (
    "SELECT {word} FROM s",
    "SELECT DISTINCT {word} FROM s",
    "SELECT k, s.{word} FROM s",
    "SELECT {word} + 1 AS x, 2 - {word} AS y, v % {word} AS z FROM s",
    "SELECT k AS {word} FROM s",
    "SELECT coalesce({word}, {word}, 1) AS x FROM s",
    "SELECT CASE WHEN {word} > 1 THEN {word} ELSE {word} END AS x FROM s",
    "SELECT {word}, count(*) AS c FROM s GROUP BY {word}",
    "SELECT k, sum({word}) AS c FROM s GROUP BY k, {word} HAVING max({word}) > 1 AND {word} > 0",
    "SELECT k FROM s WHERE {word} = 1",
    "SELECT k FROM s WHERE NOT {word} = 3 OR 1 < {word} AND {word} IN (1, 2) AND {word} IS NOT NULL",
    "SELECT k FROM s WHERE {word} BETWEEN 0 AND {word} AND v >= {word}",
    "SELECT s.k FROM s JOIN t ON s.{word} = t.{word}",
    "SELECT s.k FROM s JOIN t ON s.k = t.{word} AND t.{word} = s.v WHERE t.{word} > 1",
    "SELECT s.k FROM s JOIN t USING ({word})",
    "SELECT x.{word} FROM (SELECT {word} FROM s) AS x",
    "WITH c AS (SELECT {word} FROM s) SELECT {word} FROM c",
    "SELECT {word} FROM table(s) ORDER BY {word} DESC, k LIMIT 3",
    "SELECT s.k, d.x FROM s JOIN d ON s.{word} = d.{word}",
    "SELECT dict_get('d', 'x', {word}) AS x FROM s",
)
STREAMED = [query for query in QUERIES if "table(" not in query]


@cache
def planner(rules: str, word: str) -> Planner:
    tables = [DDL[rules].format(name=name, word=word) for name in ("s", "t")]
    return Planner.of(*tables, DICTIONARY.format(word=word))


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("rules", DDL)
@pytest.mark.parametrize("query", QUERIES)
def test_it_is_planned_as_a_column_of_any_other_name(rules: str, word: str, query: str) -> None:
    plan = planner(rules, word).plan(query.format(word=word))
    quoted = planner(rules, word).plan(query.format(word=f'"{word}"'))
    assert plan.explain() == quoted.explain()


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("query", STREAMED)
def test_the_clauses_behind_it_are_read(word: str, query: str) -> None:
    statement = parse_one(query.format(word=word) + " EMIT CHANGELOG SETTINGS join_use_nulls = 0")
    assert isinstance(statement, Select)
    assert statement.emit is not None
    assert statement.settings == {"join_use_nulls": 0}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("rules", DDL)
def test_its_values_are_those_of_the_column(rules: str, word: str) -> None:
    world = World.of(*(DDL[rules].format(name=name, word=word) for name in ("s", "t")))
    world.start(f"SELECT s.{word} AS x, 1 + t.{word} AS y FROM s JOIN t ON s.v = t.{word} WHERE s.{word} > 2")
    world.insert("s", {word: 3, "k": 1, "v": 1}, {word: 2, "k": 2, "v": 1})
    world.insert("t", {word: 1, "k": 7, "v": 0})
    world.drain()
    assert world.table() == Counter({(3, 2): 1})


@pytest.mark.parametrize("word", WORDS)
def test_it_is_written_to(word: str) -> None:
    insert = parse_one(f"INSERT INTO s (k, {word}) VALUES (1, 2)")
    assert isinstance(insert, Insert)
    assert insert.columns == ("k", word)
    update = parse_one(f"UPDATE s SET v = 1, {word} = {word} + 1 WHERE {word} = 2")
    assert isinstance(update, Update)
    assert [name for name, _ in update.assignments] == ["v", word]
    assert isinstance(parse_one(f"DELETE FROM s WHERE {word} = 1"), Delete)
