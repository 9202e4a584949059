"""No word of a query is taken and ignored: every form of the parser, and every part of each, is read or refused."""

from __future__ import annotations

import pytest
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.bind.written.unread import READ, unread_in
from dovetail.sql.functions.dialects import DIALECTS
from dovetail.sql.functions.translate import OPERATORS
from tests.sql.world import World

FORMS = [form for form in vars(exp).values() if isinstance(form, type) and issubclass(form, exp.Expression)]
IGNORED = (
    "SELECT k FROM {} SAMPLE 0.5",
    "SELECT k FROM {} TABLESAMPLE (10 PERCENT)",
    "SELECT k FROM {} PIVOT (sum(v) FOR k IN ('a'))",
    "SELECT k INTO x FROM {}",
    "SELECT k FROM {} FOR UPDATE",
    "SELECT k FROM {} FOR SHARE",
    "SELECT k FROM {} UNION ALL BY NAME SELECT k FROM {}",
    "WITH RECURSIVE a AS (SELECT k FROM {}) SELECT k FROM a",
    "WITH a AS MATERIALIZED (SELECT k FROM {}) SELECT k FROM a",
    "SELECT k FROM {} ORDER BY v WITH FILL",
    "SELECT k FROM {} ORDER BY k FETCH FIRST 10 PERCENT ROWS ONLY",
    "SELECT max(v) IGNORE NULLS OVER (ORDER BY v) AS x FROM {}",
    "SELECT k FROM {} LATERAL VIEW explode(k) t AS x",
    "SELECT * FROM (SELECT k FROM {}) AS t TABLESAMPLE (10 PERCENT)",
    "SELECT k FROM ONLY (SELECT k FROM {}) AS t",
    "SELECT k FROM {} OPTION (RECOMPILE)",
)
UNREAD_CALLS = (
    "min_k(v, 2, k)",
    "top_k(v, 2, true)",
    "top_k(2, 3)(v)",
    "quantile(v, 0.5, 3)",
    "quantile(0.5, 3)(v)",
    "group_array(v, 2, 3)",
    "min_k(v, 2) OVER (ORDER BY v)",
    "lag(v ORDER BY k) OVER (ORDER BY v)",
    "lag(DISTINCT v) OVER (ORDER BY v)",
)
SIGNS = (
    ("k LIKE 'a#_' ESCAPE '#'", "k NOT LIKE 'a#_' ESCAPE '#'"),
    ("k LIKE 'a'", "k NOT LIKE 'a'"),
    ("k ILIKE 'a' ESCAPE '#'", "k NOT ILIKE 'a' ESCAPE '#'"),
    ("v BETWEEN 3 AND 1", "v BETWEEN SYMMETRIC 3 AND 1"),
    ("v BETWEEN 3 AND 1", "v NOT BETWEEN 3 AND 1"),
    ("v IN (1, 2)", "v NOT IN (1, 2)"),
    ("k IS NULL", "k IS NOT NULL"),
    ("v IS DISTINCT FROM 1", "v IS NOT DISTINCT FROM 1"),
    ("mode() WITHIN GROUP (ORDER BY v)", "mode() WITHIN GROUP (ORDER BY v DESC)"),
    ("percentile_cont(0.4) WITHIN GROUP (ORDER BY v)", "percentile_cont(0.4) WITHIN GROUP (ORDER BY v DESC)"),
    ("array_agg(v) OVER (ORDER BY k)", "array_agg(v ORDER BY k DESC) OVER (ORDER BY k)"),
    ("first_value(v) OVER (ORDER BY k)", "first_value(v ORDER BY k DESC) OVER (ORDER BY k)"),
    ("first_value(v)", "first_value(v ORDER BY k DESC)"),
    ("count(v)", "count(DISTINCT v)"),
    ("sum(v) OVER (ORDER BY v)", "sum(v) OVER (ORDER BY v ROWS BETWEEN CURRENT ROW AND CURRENT ROW)"),
    ("trim('x' FROM k)", "trim(LEADING 'x' FROM k)"),
)


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(
        "CREATE MUTABLE STREAM dim (k string, v int) PRIMARY KEY k",
        "CREATE STREAM flow (k string, v int)",
        "CREATE TABLE plain (k VARCHAR, v INT)",
    )


@pytest.mark.parametrize("relation", ["table(dim)", "dim", "flow", "table(plain)", "plain"])
@pytest.mark.parametrize("query", IGNORED)
def test_what_is_not_read_is_refused(world: World, query: str, relation: str) -> None:
    with pytest.raises(SqlError):
        world.plan(query.replace("{}", relation))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_each_part_of_each_form_is_read_or_refused(form: type[exp.Expression]) -> None:
    read = set(READ.get(form, "").split())
    assert read <= set(form.arg_types), "the table names a part that the form has not"
    for part in form.arg_types:
        assert (unread_in(form(**{part: exp.Null()})) is None) == (form in READ and part in read)


def test_what_is_translated_is_read() -> None:
    translated = {form for dialect in DIALECTS.values() for form in dialect.visits} | set(OPERATORS)
    assert translated <= set(READ)


@pytest.mark.parametrize("relation", ["table(dim)", "dim", "flow"])
@pytest.mark.parametrize("call", UNREAD_CALLS)
def test_arguments_that_are_not_read_are_refused(world: World, call: str, relation: str) -> None:
    with pytest.raises(SqlError):
        world.plan(f"SELECT {call} AS x FROM {relation}")


def test_the_error_that_an_estimate_may_have_is_read(world: World) -> None:
    query = "SELECT approx_percentile({}) WITHIN GROUP (ORDER BY w) AS x FROM (SELECT v AS w FROM table(plain))"
    exact, bounded = (world.plan(query.format(given)).snapshot for given in ("0.5", "0.5, 0.01"))
    assert exact is not None
    assert bounded is not None
    assert bounded.sql == exact.sql


def test_an_argument_that_is_not_read_is_named(world: World) -> None:
    with pytest.raises(SqlError, match=r"dim.k is not read in min_k"):
        world.plan("SELECT min_k(v, 2, k) AS x FROM table(dim)")


@pytest.mark.parametrize("relation", ["table(dim)", "table(plain)"])
@pytest.mark.parametrize(("plain", "with_word"), SIGNS)
def test_a_word_that_is_taken_is_read(world: World, plain: str, with_word: str, relation: str) -> None:
    said = [world.plan(f"SELECT {text} AS x FROM {relation}").snapshot for text in (plain, with_word)]
    assert said[0] is not None
    assert said[1] is not None
    assert said[0].sql != said[1].sql


@pytest.mark.parametrize(
    "emit", ["EMIT CHANGES", "EMIT STREAM", "EMIT PERIODIC 5s", "EMIT ON UPDATE", "EMIT CHANGELOG"]
)
@pytest.mark.parametrize("relation", ["dim", "plain"])
def test_what_is_answered_once_emits_nothing(world: World, emit: str, relation: str) -> None:
    query = f"SELECT k, count(*) AS n FROM table({relation}) GROUP BY k"
    with pytest.raises(SqlError) as fault:
        world.plan(f"{query} {emit}")
    assert fault.value.fix.startswith("leave EMIT out")
    world.plan(query)
    world.plan(f"SELECT k, count(*) AS n FROM {relation} GROUP BY k {emit}")


@pytest.mark.parametrize("length", ["1500us", "INTERVAL '1500' MICROSECOND", "INTERVAL '1500 microseconds'"])
def test_a_length_is_not_cut_off(world: World, length: str) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(f"SELECT k, count() AS n FROM dim GROUP BY k EMIT PERIODIC {length}")
    world.plan(f"SELECT k, count() AS n FROM dim GROUP BY k EMIT PERIODIC {fault.value.fix.removeprefix('write ')}")
