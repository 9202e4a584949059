"""Expressions of a plan as values: what makes two of them one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp

from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.sql.expressions.engine import parsed
from dovetail.sql.expressions.expression import Expr, columns_read
from dovetail.sql.expressions.predicates import conjunction, halves, split
from tests.sql.world import World

ROWS = pa.schema([("s.a", pa.int64()), ("s.b", pa.int64()), ("s.t", pa.string()), ("s.l", pa.list_(pa.int64()))])


def expr(text: str) -> Expr:
    return Expr.over(parsed(text), ROWS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"s.a" + "s.b"', '("s.a"  + (("s.b")))'),
        ('"s.a" + "s.b" * 2', '"s.a" + ("s.b" * 2)'),
        ('UPPER("s.t")', 'upper("s.t")'),
        ("\"s.t\" IN ('a', 'b')", "(\"s.t\") in ('a', ('b'))"),
        ('CAST("s.a" AS VARCHAR)', 'cast("s.a" as text)'),
    ],
)
def test_one_expression_written_in_two_ways(one: str, other: str) -> None:
    assert expr(one) == expr(other)
    assert hash(expr(one)) == hash(expr(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"s.a" + "s.b"', '"s.b" + "s.a"'),
        ('("s.a" + "s.b") * 2', '"s.a" + "s.b" * 2'),
        ("\"s.t\" || 'a b'", "\"s.t\" || 'a  b'"),
        ("\"s.t\" || 'a'", "\"s.t\" || 'A'"),
        ("\"s.t\" LIKE 'a'", "\"s.t\" NOT LIKE 'a'"),
        ('"s.a" BETWEEN 1 AND 2', '"s.a" BETWEEN SYMMETRIC 1 AND 2'),
        ("1", "'1'"),
        ("0", "false"),
        ('CAST("s.a" AS DECIMAL(9, 2))', 'CAST("s.a" AS DECIMAL(9, 3))'),
        ('CAST("s.t" AS BIGINT)', 'TRY_CAST("s.t" AS BIGINT)'),
    ],
)
def test_two_expressions(one: str, other: str) -> None:
    assert expr(one) != expr(other)
    assert expr(one).structure != expr(other).structure


def test_a_tree_that_is_built_equals_the_same_one_read() -> None:
    quotient = exp.Div(this=exp.column("s.a", quoted=True), expression=exp.Literal.number(2))
    assert Expr.over(quotient, ROWS) == expr('"s.a" / 2')
    assert Expr.over(exp.Anonymous(this="abs", expressions=[exp.column("s.a")]), ROWS) == expr('ABS("s.a")')


def test_the_type_is_part_of_the_value() -> None:
    assert Expr.column("s.a", pa.int64()) == expr('"s.a"')
    assert expr('"s.a"').held_as(pa.float64()) != expr('"s.a"')
    assert expr('"s.a"').held_as(pa.float64()).structure == expr('"s.a"').structure


def test_types_are_those_of_the_engine() -> None:
    assert expr('"s.a"').type == pa.int64()
    assert expr("NULL").type == pa.int32()
    assert expr('"s.a" > 1').type == pa.bool_()
    with pytest.raises(UnknownName):
        expr("no_such_function(1)")
    with pytest.raises(SqlError):
        expr('"s.t" + "s.l"')


def test_columns_are_those_of_the_rows() -> None:
    assert expr('"s.b" + "s.a" * "s.b"').columns == ("s.b", "s.a")
    assert (expr('"s.a"').plain, expr('"s.a" + 1').plain) == ("s.a", None)
    body = exp.Add(this=exp.column("x", quoted=True), expression=exp.column("s.a", quoted=True))
    each = exp.Lambda(this=body, expressions=[exp.to_identifier("x")], colon=True)
    mapped = Expr.over(exp.Anonymous(this="LIST_TRANSFORM", expressions=[exp.column("s.l", quoted=True), each]), ROWS)
    assert mapped.columns == ("s.l", "s.a")
    assert columns_read(body) == ("x", "s.a")
    other = mapped.substituted({"x": expr("7"), "s.a": expr('"s.b"')})
    assert other.text == 'LIST_TRANSFORM("s.l", LAMBDA x : "x" + "s.b")'


def test_columns_are_replaced_by_expressions() -> None:
    product = expr('"s.a" * "s.b"')
    assert product.substituted({"s.a": expr('"s.b" + 1')}).text == '("s.b" + 1) * "s.b"'
    assert product.substituted({"s.a": expr("2")}).text == '2 * "s.b"'
    assert product.text == '"s.a" * "s.b"'


def test_conditions_are_cut_and_joined() -> None:
    terms = [expr('"s.a" > 1'), expr('"s.b" > 1 OR "s.a" < 0'), expr("\"s.t\" = 'x'")]
    joined = conjunction(terms)
    assert joined is not None
    assert joined.text == '("s.a" > 1) AND ("s.b" > 1 OR "s.a" < 0) AND ("s.t" = \'x\')'
    assert split(joined) == terms
    assert (conjunction([]), conjunction(terms[:1]), split(None)) == (None, terms[0], [])


def test_what_all_branches_of_or_say_is_a_term_of_its_own() -> None:
    either = expr('("s.a" = 1 AND "s.b" > 2) OR ((("s.a") = 1) AND "s.b" < 0)')
    assert split(either) == [expr('"s.a" = 1'), expr('"s.b" > 2 OR "s.b" < 0')]


def test_between_is_two_inequalities() -> None:
    assert halves(expr('"s.a" BETWEEN 1 AND "s.b"')) == [expr('"s.a" >= 1'), expr('"s.a" <= "s.b"')]


# -- in queries --

DDL = ("CREATE STREAM s (k int, v int, t string)", "CREATE TABLE p (id int primary key, v bigint)")


def test_aggregates_that_differ_by_blanks_in_a_text_are_two() -> None:
    world = World.of(*DDL)
    world.start("SELECT count_if(t = 'a b') AS one, count_if(t = 'a  b') AS two FROM s")
    world.insert("s", {"k": 1, "v": 1, "t": "a b"}, {"k": 2, "v": 1, "t": "a  b"}, {"k": 3, "v": 1, "t": "a  b"})
    world.drain()
    assert dict(world.table()) == {(1, 2): 1}


@pytest.mark.parametrize("written", ["k + v", "(k + v)", "((k) + s.v)"])
def test_a_key_is_known_however_it_is_written(written: str) -> None:
    world = World.of(*DDL)
    plan = world.explain(f"SELECT {written} AS x, ({written}) * 2 AS y FROM s GROUP BY k + v")
    assert plan.count("by=__g0") == 1


def test_an_aggregate_written_twice_is_one() -> None:
    plan = World.of(*DDL).explain("SELECT sum(k + v) AS x, sum((k + (v))) + 1 AS y FROM s")
    assert plan.count("sum(") == 1


def test_a_projection_that_drops_a_key_leaves_none() -> None:
    world = World.of(*DDL)
    kept = "SELECT id, v FROM (SELECT id, v FROM (SELECT id, v + 1 AS v FROM p))"
    dropped = "SELECT v FROM (SELECT v FROM (SELECT id, v + 1 AS v FROM p))"
    swapped = "SELECT id FROM (SELECT v AS id, id AS v FROM p)"
    assert [world.plan(query).stream().schema.primary_key for query in (kept, dropped, swapped)] == [("id",), (), ()]


def test_a_long_sum_and_a_deep_query_are_planned() -> None:
    world = World.of(*DDL)
    total = " + ".join(["k"] * 120)
    assert world.plan(f"SELECT {total} AS total FROM s WHERE {total} > 3 GROUP BY {total}").columns == ("total",)
    query = "SELECT k FROM s"
    for level in range(40):
        query = f"SELECT k + {level} AS k FROM ({query}) WHERE k > {level}"
    assert world.plan(query).columns == ("k",)
