"""The search for an order of joins, held against all orders there are."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.schema import Column, Kind, StreamSchema
from dovetail.sql.expressions.expression import Expr, equality
from dovetail.sql.plan.nodes import Scan
from dovetail.sql.rules.join_order.estimates import Estimate
from dovetail.sql.rules.join_order.join_graph import Inputs, JoinGraph, JoinSizes, places
from dovetail.sql.rules.join_order.search import MOST_TRIED, Ordered, Search
from dovetail.sql.syntax.rules import Rules
from tests.sql.rules.test_join_order import planned
from tests.tries import tries

NAMES = ("id", "x", "y")


def scan(place: int) -> Scan:
    """A table of three columns, of which the first is the primary key."""
    schema = StreamSchema("t", tuple(Column(name, pa.int64()) for name in NAMES), Kind.UPSERT, ("id",))
    return Scan(f"a{place}", schema, "t", Rules.RISINGWAVE, tuple((f"a{place}.{name}", name) for name in NAMES))


def equal(first: str, second: str) -> Expr:
    return Expr.condition(equality(Expr.column(first, pa.int64()), Expr.column(second, pa.int64())))


@st.composite
def searches(draw: st.DrawFn, least: int, most: int) -> Search:
    """Inputs each of which is compared with one before it, and some pairs besides."""
    count = draw(st.integers(least, most))
    inputs = [scan(place) for place in range(count)]
    columns = st.sampled_from(NAMES)
    pairs = [(draw(st.integers(0, place - 1)), place) for place in range(1, count)]
    pairs += draw(st.lists(st.tuples(st.integers(0, count - 2), st.just(count - 1)), max_size=2))
    terms = [equal(f"a{first}.{draw(columns)}", f"a{second}.{draw(columns)}") for first, second in pairs]
    sizes = st.integers(0, 6).map(lambda power: 10.0**power)
    estimates = []
    for _ in inputs:
        rows = draw(sizes)
        estimates.append(Estimate(rows, rows * draw(st.sampled_from([1, 10]))))
    return Search(JoinSizes(JoinGraph.of(inputs, terms), tuple(estimates)), merges=draw(st.booleans()))


def every(search: Search, inputs: Inputs) -> Iterator[Ordered]:
    """Every order of ``inputs``, each pair of sides in both places, without joins that have no equality."""
    if len(list(places(inputs))) == 1:
        yield Ordered(inputs)
        return
    for left in range(1, inputs):
        right = inputs ^ left
        if left & ~inputs or not search.sizes.graph.connects(left, right):
            continue
        for one in every(search, left):
            for other in every(search, right):
                yield search.joined(one, other)


@settings(max_examples=tries(30), deadline=None)
@given(searches(3, 4))
def test_no_order_keeps_fewer_rows_or_is_lower(search: Search) -> None:
    best = search.best()
    assert best is not None
    assert best.rank == min(one.rank for one in every(search, search.sizes.graph.all))


@settings(max_examples=tries(10), deadline=None)
@given(searches(MOST_TRIED, MOST_TRIED + 4))
def test_every_join_of_many_has_an_equality(search: Search) -> None:
    best = search.best()
    assert best is not None

    def joins(one: Ordered) -> Iterator[Ordered]:
        if one.left is not None and one.right is not None:
            yield one
            yield from joins(one.left)
            yield from joins(one.right)

    found = list(joins(best))
    assert len(found) == len(search.sizes.graph.inputs) - 1
    connects = search.sizes.graph.connects
    assert all(one.left and one.right and connects(one.left.inputs, one.right.inputs) for one in found)
    assert best.inputs == search.sizes.graph.all


CHAIN = "FROM lines AS l JOIN orders AS o ON l.order_id = o.id JOIN {} AS c ON o.customer = c.id"


@pytest.mark.parametrize(
    ("customers", "condition", "rows"),
    [
        ("customers", "c.id = 7", 1),
        ("customers", "c.name = 'ann'", 10_000),
        ("customers", "c.name = 'ann' AND c.nation = 7", 1_000),
        ("customers", "c.name LIKE 'a%' AND c.nation > 7", 100_000 / 9),
        ("(SELECT DISTINCT nation AS id FROM customers)", "c.id < 7", 10_000 / 3),
        ("(SELECT max(id) AS id FROM customers)", "c.id > 0", 1 / 3),
        ("(SELECT id FROM customers UNION ALL SELECT id FROM nations)", "c.id = 7", 2),
        ("(SELECT c.id FROM customers AS c LEFT JOIN nations AS n ON c.nation = n.id)", "c.id = 7", 1),
        ("(SELECT c.id FROM customers AS c JOIN nations AS n ON c.nation = n.id AND n.id = 7)", "true", 4_000),
        ("(SELECT id FROM customers ORDER BY name LIMIT 20)", "true", 20),
    ],
)
def test_what_is_estimated_of_an_input(customers: str, condition: str, rows: float) -> None:
    [found] = planned(f"SELECT l.id {CHAIN.format(customers)} WHERE {condition}").orders
    assert found.rows is not None
    assert found.rows["c"] == pytest.approx(rows)
