"""No function of the engine is reached by its name, wherever an expression can stand."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import duckdb
import pytest
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions.aggregate_calls import aggregate_names
from dovetail.sql.functions.dialects import DIALECTS
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Select
from tests.sql.world import World

CALL = "of_the_engine"
PLACES = (
    "SELECT {} FROM {t} AS t",
    "SELECT k, v + {} AS x FROM {t} AS t",
    "SELECT -{} AS x FROM {t} AS t",
    "SELECT NOT ({} = 1) AS x FROM {t} AS t",
    "SELECT CASE WHEN {} = 1 THEN 1 END AS x FROM {t} AS t",
    "SELECT CASE {} WHEN 1 THEN 1 END AS x FROM {t} AS t",
    "SELECT CASE v WHEN 1 THEN {} ELSE 2 END AS x FROM {t} AS t",
    "SELECT CASE v WHEN 1 THEN 1 ELSE {} END AS x FROM {t} AS t",
    "SELECT CAST({} AS int) AS x FROM {t} AS t",
    "SELECT upper({}) AS x FROM {t} AS t",
    "SELECT sum({}) AS x FROM {t} AS t",
    "SELECT sum(v) FILTER (WHERE {} = 1) AS x FROM {t} AS t",
    "SELECT array_agg(v ORDER BY {}) AS x FROM {t} AS t",
    "SELECT count(DISTINCT {}) AS x FROM {t} AS t",
    "SELECT percentile_cont({}) WITHIN GROUP (ORDER BY v) AS x FROM {t} AS t",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY {}) AS x FROM {t} AS t",
    "SELECT sum({}) OVER (ORDER BY v) AS x FROM {t} AS t",
    "SELECT lag(v, {}) OVER (ORDER BY v) AS x FROM {t} AS t",
    "SELECT sum(v) OVER (PARTITION BY {} ORDER BY v) AS x FROM {t} AS t",
    "SELECT sum(v) OVER (ORDER BY {}) AS x FROM {t} AS t",
    "SELECT sum(v) OVER w AS x FROM {t} AS t WINDOW w AS (ORDER BY {})",
    "SELECT sum(v) OVER (ORDER BY v ROWS BETWEEN {} PRECEDING AND CURRENT ROW) AS x FROM {t} AS t",
    "SELECT sum(v) OVER (ORDER BY v RANGE BETWEEN CURRENT ROW AND {} FOLLOWING) AS x FROM {t} AS t",
    "SELECT k LIKE {} AS x FROM {t} AS t",
    "SELECT k LIKE 'a' ESCAPE {} AS x FROM {t} AS t",
    "SELECT v BETWEEN {} AND 2 AS x FROM {t} AS t",
    "SELECT v IN (1, {}) AS x FROM {t} AS t",
    "SELECT {} IN (SELECT v FROM {t} AS u) AS x FROM {t} AS t",
    "SELECT k IS DISTINCT FROM {} AS x FROM {t} AS t",
    "SELECT k || {} AS x FROM {t} AS t",
    "SELECT EXISTS (SELECT {} FROM {t} AS u) AS x FROM {t} AS t",
    "SELECT (SELECT {}) AS x FROM {t} AS t",
    "SELECT * FROM (SELECT {} AS x FROM {t} AS u) AS t",
    "SELECT * FROM (VALUES ({})) AS t(x)",
    "SELECT * FROM {}",
    "SELECT * FROM {} AS t",
    "SELECT * FROM table({}) AS t",
    "SELECT * FROM {t} AS t, {} AS u",
    "SELECT * FROM {t} AS t JOIN {} AS u ON t.v = u.v",
    "SELECT t.v FROM {t} AS t JOIN {t} AS u ON t.v = u.v AND {} = 1",
    "SELECT v FROM {t} AS t WHERE {} = 1",
    "SELECT v FROM {t} AS t WHERE {}",
    "SELECT count(*) AS x FROM {t} AS t GROUP BY {}",
    "SELECT count(*) AS x FROM {t} AS t GROUP BY ROLLUP ({})",
    "SELECT count(*) AS x FROM {t} AS t GROUP BY GROUPING SETS (({}))",
    "SELECT count(*) AS x FROM {t} AS t HAVING {} = 1",
    "SELECT v FROM {t} AS t QUALIFY {} = 1",
    "SELECT DISTINCT ON ({}) v FROM {t} AS t",
    "SELECT v FROM {t} AS t ORDER BY {}",
    "SELECT v FROM {t} AS t LIMIT {}",
    "SELECT v FROM {t} AS t LIMIT (SELECT {})",
    "SELECT v FROM {t} AS t LIMIT 1 OFFSET {}",
    "SELECT v FROM {t} AS t FETCH FIRST {} ROWS ONLY",
    "SELECT v FROM {t} AS t UNION ALL SELECT v FROM {t} AS t ORDER BY {}",
    "SELECT v FROM {t} AS t UNION ALL SELECT v FROM {t} AS t LIMIT {}",
    "SELECT v FROM {t} AS t UNION ALL SELECT {} AS v FROM {t} AS t",
    "(SELECT v FROM {t} AS t) ORDER BY {}",
    "(SELECT v FROM {t} AS t) LIMIT {}",
    "(SELECT v FROM {t} AS t) OFFSET {}",
    "WITH c AS (SELECT {} AS v) SELECT v FROM c",
    "WITH c AS (SELECT v FROM {t} AS t LIMIT {}) SELECT v FROM c",
    "SELECT v FROM {t} TABLESAMPLE ({} PERCENT)",
    "SELECT * REPLACE ({} AS v) FROM {t} AS t",
)
OF_TIMEPLUS = (
    "SELECT now() + INTERVAL ({}) DAY AS x FROM {t} AS t",
    "SELECT array_map(x -> {}, [1]) AS x FROM {t} AS t",
    "SELECT quantile({})(v) AS x FROM {t} AS t",
    "SELECT top_k({})(v) AS x FROM {t} AS t",
    "SELECT v FROM {t} AS t PREWHERE {} = 1",
    "SELECT v FROM {t} AS t LIMIT 1 BY {}",
    "SELECT v FROM {t} AS t LIMIT {} BY v",
    "SELECT v FROM {t} AS t ORDER BY v WITH FILL FROM {}",
    "SELECT x FROM {t} AS t ARRAY JOIN {} AS x",
    "SELECT {} ? 1 : 2 AS x FROM {t} AS t",
    "SELECT t.v FROM {t} AS t ASOF JOIN {t} AS u MATCH_CONDITION ({}) ON t.k = u.k AND t.v >= u.v",
    "SELECT count() AS x FROM tumble({t}, _tp_time, {}) GROUP BY window_start",
    "SELECT count() AS x FROM tumble({}, _tp_time, 1m) GROUP BY window_start",
)
WORST = ("sleep_ms", "write_log", "current_setting", "getvariable", "read_text", "query")
PARTS = 200
RELATIONS = {Rules.TIMEPLUS: ("table(dim)", "dim"), Rules.RISINGWAVE: ("table(plain)", "plain")}


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(
        "CREATE MUTABLE STREAM dim (k string, v int) PRIMARY KEY k", "CREATE TABLE plain (k VARCHAR, v INT)"
    )


@cache
def engine_functions() -> list[str]:
    """Whatever DuckDB lists, of every kind, that can be written as a name."""
    found = duckdb.connect().execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    return sorted(name for (name,) in found if re.fullmatch(r"\w+", name))


@cache
def unknown(rules: Rules) -> list[str]:
    """The functions of the engine that the dialect does not have."""
    registry, known = DIALECTS[rules].registry, {*aggregate_names(), *(name.lower() for name in exp.FUNCTION_BY_NAME)}
    return [name for name in engine_functions() if not registry.knows(name) and name not in known]


def places() -> list[tuple[str, str]]:
    found = []
    for rules, relations in RELATIONS.items():
        forms = (*PLACES, *OF_TIMEPLUS) if rules is Rules.TIMEPLUS else PLACES
        found += [(form, relation) for form in forms for relation in relations]
    return found


@pytest.mark.parametrize(("place", "relation"), places())
def test_a_function_that_no_dialect_has_stands_nowhere(world: World, place: str, relation: str) -> None:
    rules = next(rules for rules, relations in RELATIONS.items() if relation in relations)
    query = place.replace("{t}", relation).replace("{}", f"{CALL}('1')")
    try:
        statement = parse_one(query, rules)
    except SqlError:
        return  # No expression stands there.
    assert isinstance(statement, Select)
    assert statement.readings is not None
    written = statement.readings.of(rules)
    assert any(called(node) for node in written.walk()), "the place has no call"
    for name in sample(unknown(rules), places().index((place, relation))):
        tree = written.copy()
        for node in [node for node in tree.walk() if called(node)]:
            node.set("this", name)
        with pytest.raises(SqlError):
            plan_query("q", replace(statement, query=tree, readings=None, text=""), world.engine.catalog)


def sample(names: list[str], place: int) -> list[str]:
    """A part of the names: each stands in several places, as what is refused is no matter of the name."""
    return [*WORST, *names[place % PARTS :: PARTS]]


def called(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == CALL


@pytest.mark.parametrize("relation", [relation for relations in RELATIONS.values() for relation in relations])
def test_what_the_parser_makes_a_form_of_is_of_the_dialect_too(world: World, relation: str) -> None:
    """Names that are read as something other than a call of this name."""
    rules = next(rules for rules, relations in RELATIONS.items() if relation in relations)
    taken = []
    # ROW(a, b) is a row of the dialect.
    for name in set(unknown(rules)) - ({"row"} if rules is Rules.RISINGWAVE else set()):
        try:
            world.plan(f"SELECT {name}(v) AS x FROM {relation} AS t")
            taken.append(name)
        except SqlError:
            continue
    assert taken == []


def test_the_functions_are_those_of_the_engine() -> None:
    assert {*WORST, "read_csv", "pragma_version"} <= set(engine_functions())
    assert len(unknown(Rules.TIMEPLUS)) > 300
