"""Which order the joins of a chain get, by what is known of their inputs, and which stay as they are written."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dovetail.sql.fragments import Fragment
from dovetail.sql.plan.join_order import orders_text
from dovetail.sql.plan.nodes import Join, MultiwayJoin
from dovetail.sql.plan.properties import walk
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView, Select
from tests.sql.planner import Planner

DDL = (
    "CREATE TABLE orders (id INT, customer INT, day INT, total DOUBLE, PRIMARY KEY (id))",
    "CREATE TABLE lines (id INT, order_id INT, part INT, PRIMARY KEY (id))",
    "CREATE TABLE customers (id INT, nation INT, name VARCHAR, PRIMARY KEY (id))",
    "CREATE TABLE nations (id INT, region INT, name VARCHAR, PRIMARY KEY (id))",
    "CREATE TABLE regions (id INT, name VARCHAR, PRIMARY KEY (id))",
    "CREATE TABLE log (customer INT, part INT, at TIMESTAMP)",
    "CREATE TABLE p (k INT, m INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE STREAM clicks (customer int, part int)",
    "CREATE MUTABLE STREAM held (customer int, part int) PRIMARY KEY customer",
)
RECORDS = {
    "orders": 1_000_000,
    "lines": 4_000_000,
    "customers": 100_000,
    "nations": 25,
    "regions": 5,
    "log": 50_000,
    "p": 10_000,
    "clicks": 1_000_000,
    "held": 1_000,
}
CHAIN = "FROM lines AS l JOIN orders AS o ON l.order_id = o.id JOIN customers AS c ON o.customer = c.id"


def planned(query: str, records: Mapping[str, int | None] = RECORDS) -> Plan:
    statement = parse_one(query)
    assert isinstance(statement, Select | CreateView)
    return plan_query("q", statement, Planner.of(*DDL).catalog, sizes=records.get)


def order(query: str, records: Mapping[str, int | None] = RECORDS) -> str:
    """The orders that are not those of the text."""
    return orders_text(tuple(one.tree for one in planned(f"SELECT 1 AS one {query}", records).orders))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        # What a condition leaves few rows of goes first, and the largest input last.
        (f"{CHAIN} WHERE c.id = 7", "(l (o c))"),
        (f"{CHAIN} WHERE c.name = 'ann'", "(l (o c))"),
        # Two dimensions are one small side of the join with what is large.
        (f"{CHAIN} JOIN nations AS n ON c.nation = n.id WHERE n.name = 'PERU'", "(l (o (c n)))"),
        (f"{CHAIN} JOIN nations AS n ON c.nation = n.id JOIN regions AS r ON n.region = r.id", "(l (o (c (n r))))"),
        # Equalities of WHERE, whatever the order of FROM.
        ("FROM lines AS l, orders AS o, customers AS c WHERE l.order_id = o.id AND o.customer = c.id AND c.id = 7",
         "(l (o c))"),
        # Under a FULL join, and over one, which is an input as any other and stays.
        (f"{CHAIN} FULL JOIN nations AS n ON c.nation = n.id", "(l (o c))"),
        (("FROM lines AS l FULL JOIN orders AS o ON l.order_id = o.id JOIN clicks AS k ON k.part = l.part "
         "JOIN customers AS c ON c.id = k.customer AND c.id = 7"), "(l (k c))"),
        # A subquery is an input, and may hold a chain of its own.
        ((f"FROM (SELECT l.id, c.nation {CHAIN} WHERE c.id = 7) AS s JOIN nations AS n ON s.nation = n.id "
         "JOIN regions AS r ON n.region = r.id"), "(l (o c))"),
        (("FROM log AS g JOIN lines AS l ON g.part = l.part JOIN (SELECT customer, count(*) AS n FROM orders GROUP BY "
         "customer) AS o ON o.customer = g.customer"), "((g o) l)"),
        # Nothing is gained by another order: one already keeps the fewest.
        ("FROM customers AS c JOIN nations AS n ON c.nation = n.id JOIN regions AS r ON n.region = r.id", "(c (n r))"),
        ("FROM regions AS r JOIN nations AS n ON n.region = r.id JOIN customers AS c ON c.nation = n.id", ""),
        # One key: an n-way join keeps nothing between them.
        ("FROM log AS g JOIN orders AS o ON g.customer = o.customer JOIN clicks AS k ON o.customer = k.customer", ""),
        # Two inputs have one order.
        ("FROM lines AS l JOIN orders AS o ON l.order_id = o.id WHERE o.id = 7", ""),
        # What answers a row once, or goes by time, stays.
        ("FROM clicks AS k JOIN held AS h ON k.customer = h.customer JOIN held AS i ON h.part = i.customer", ""),
        (("FROM p AS a JOIN p AS b ON a.k = b.k AND a.at BETWEEN b.at AND b.at + INTERVAL '5 seconds' "
         "JOIN regions AS r ON b.m = r.id"), ""),
        # What takes the row that came last is told by the order in which they come.
        (
            ("FROM (SELECT b.customer AS id FROM clicks AS a JOIN clicks AS b ON a.part = b.part "
            "JOIN clicks AS c ON b.customer = c.customer WHERE c.part = 7) AS s"),
            "(a (b c))",
        ),
        (
            ("FROM clicks AS k LATEST JOIN (SELECT b.customer AS id FROM clicks AS a JOIN clicks AS b "
            "ON a.part = b.part JOIN clicks AS c ON b.customer = c.customer WHERE c.part = 7) AS s "
            "ON k.customer = s.id"),
            "",
        ),
        # Not all inputs of an outer join are free.
        (("FROM lines AS l LEFT JOIN orders AS o ON l.order_id = o.id LEFT JOIN customers AS c ON o.customer = c.id "
         "WHERE l.id > 7"), ""),
        ("FROM lines AS l FULL JOIN orders AS o ON l.order_id = o.id JOIN customers AS c ON o.customer = c.id", ""),
    ],
)  # fmt: skip
def test_the_fewest_rows_are_kept_between_joins(query: str, found: str) -> None:
    assert order(query) == found


LINES = "FROM lines AS l LEFT JOIN orders AS o ON l.order_id = o.id"
FACTS = "FROM lines AS l LEFT JOIN orders AS o ON l.part = o.day"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        # An INNER join that leaves few rows goes below a LEFT one, and a LEFT join where rows are few.
        (f"{LINES} JOIN nations AS n ON l.part = n.id WHERE n.name = 'PERU'", "((l n) o)"),
        (f"{LINES} JOIN clicks AS k ON k.part = l.part JOIN customers AS c ON c.id = k.customer AND c.id = 7",
         "((l (k c)) o)"),
        (f"{CHAIN} LEFT JOIN nations AS n ON c.nation = n.id WHERE c.id = 7", "(l (o (c n)))"),
        # Conditions over the columns that are padded: above all joins they hold nothing, in ON they are of their join.
        ((f"{LINES} JOIN nations AS n ON l.part = n.id AND n.name = 'PERU' LEFT JOIN regions AS r ON r.id = n.region "
         "WHERE o.id IS NULL OR r.name = 'AMERICA'"), "((l (n r)) o)"),
        (f"{LINES} AND o.day > 7 AND l.part < o.day JOIN nations AS n ON l.part = n.id WHERE n.name = 'PERU'",
         "((l n) o)"),
        # What is compared with a padded column is joined after it.
        ((f"{LINES} LEFT JOIN customers AS c ON o.customer = c.id JOIN nations AS n ON l.part = n.id "
         "WHERE n.name = 'PERU'"), "(((l n) o) c)"),
        (f"{LINES} LEFT JOIN customers AS c ON o.customer = c.id", ""),
        # What an INNER join, or WHERE below one, reads of padded columns keeps the LEFT join where it is.
        (f"{LINES} JOIN nations AS n ON l.part = n.id AND n.region = o.day WHERE n.name = 'PERU'", ""),
        (f"{LINES} JOIN nations AS n ON l.part = n.id WHERE n.name = 'PERU' AND o.id IS NULL", ""),
        (f"{LINES} JOIN clicks AS k ON k.part = o.day JOIN customers AS c ON c.id = k.customer AND c.id = 7",
         "(l (k c))"),
        # The right side of a LEFT join stays whole, and may hold a chain.
        ((f"FROM nations AS n LEFT JOIN (SELECT c.nation {CHAIN} WHERE c.id = 7) AS s ON n.id = s.nation "
         "JOIN regions AS r ON n.region = r.id"), "(l (o c))"),
        # Of more inputs than all orders are tried of.
        ((f"{LINES} {''.join(f'LEFT JOIN regions AS r{n} ON l.part = r{n}.id ' for n in range(8))} "
         "JOIN nations AS n ON l.part = n.id AND n.name = 'PERU'"),
         "((((((((((l n) o) r0) r1) r2) r3) r4) r5) r6) r7)"),
    ],
)  # fmt: skip
def test_left_joins_take_part(query: str, found: str) -> None:
    assert order(query) == found


def test_left_joins_by_one_key_come_together() -> None:
    """As one n-way join, which keeps nothing between them."""
    query = f"{FACTS} LEFT JOIN customers AS c ON l.order_id = c.id LEFT JOIN log AS g ON l.part = g.part"
    plan = planned(f"SELECT l.id, o.total, c.name, g.at {query}")
    assert orders_text(tuple(one.tree for one in plan.orders)) == "(((l c) g) o)"
    [found] = [node for node in walk(last(plan).output) if isinstance(node, MultiwayJoin)]
    assert found.joins == 2


@pytest.mark.parametrize("tree", ["(l (o c))", "((l (o c)) n)", "(l ((o c) n))"])
def test_a_view_keeps_the_order_of_its_inner_joins_or_of_all(tree: str) -> None:
    """An order of INNER joins alone is what a view has that was made before LEFT joins took part."""
    query = f"SELECT l.id, n.name {CHAIN} LEFT JOIN nations AS n ON c.nation = n.id"
    plan = planned(f"{query} SETTINGS join_order = '{tree}'")
    assert orders_text(tuple(one.tree for one in plan.orders)) == tree
    assert plan.schema == planned(f"{query} SETTINGS join_reorder = 0").schema


def test_without_the_key_of_a_chain_every_join_counts() -> None:
    query = "FROM lines AS l JOIN orders AS o ON l.part = o.day JOIN regions AS r ON o.day = r.id"
    assert order(query) == ""
    assert order(f"{query} SETTINGS multiway_join = 0") == "(l (o r))"


@pytest.mark.parametrize("unknown", [None, 0])
@pytest.mark.parametrize("topic", ["lines", "orders", "customers"])
def test_of_an_input_that_nothing_is_known_of_the_text_says_the_order(topic: str, unknown: int | None) -> None:
    query = f"{CHAIN} WHERE c.id = 7"
    assert order(query) != ""
    assert order(query, {**RECORDS, topic: unknown}) == ""


def test_inputs_that_have_only_begun_tell_little() -> None:
    assert order(f"{CHAIN} WHERE c.id = 7", {"lines": 400, "orders": 100, "customers": 10}) == ""


def test_the_setting_leaves_the_order_of_the_text() -> None:
    query = f"SELECT l.id, c.name {CHAIN} WHERE c.id = 7 SETTINGS join_reorder = 0"
    plan = planned(query)
    assert plan.orders == ()
    assert plan.fingerprint == Planner.of(*DDL).plan(query).fingerprint


def test_nobody_to_ask_leaves_the_order_of_the_text() -> None:
    assert Planner.of(*DDL).plan(f"SELECT l.id {CHAIN} WHERE c.id = 7").orders == ()


def test_the_order_that_is_set_is_the_one_that_was_chosen() -> None:
    """Whatever has become of the inputs since."""
    joined = f"{CHAIN} JOIN nations AS n ON c.nation = n.id WHERE c.name <> 'ann' AND n.name = 'PERU'"
    query = f"SELECT l.id, o.day, c.name {joined}"
    chosen = planned(query)
    text = orders_text(tuple(one.tree for one in chosen.orders))
    assert text
    again = planned(f"{query} SETTINGS join_order = '{text}'", dict.fromkeys(RECORDS, 1_000_000))
    assert again.fingerprint == chosen.fingerprint
    assert again.schema == chosen.schema
    assert f"Join order {text}  as SETTINGS join_order has it" in again.explain()


def test_columns_stand_as_they_are_selected_and_keys_tell_rows_apart_as_before() -> None:
    query = f"SELECT * {CHAIN} WHERE c.name = 'ann'"
    ordered, written = planned(query), planned(f"{query} SETTINGS join_reorder = 0")
    assert ordered.orders != ()
    assert ordered.schema == written.schema
    facts = [(one.output.key_names, one.output.unique, one.output.updating) for one in map(last, (ordered, written))]
    assert facts[0] == facts[1]


def test_explain_says_why() -> None:
    text = planned(f"SELECT l.id {CHAIN} WHERE c.id = 7").explain()
    assert text.startswith(
        "Join order (l (o c))  about 10 rows kept between joins, as written 4,000,000  estimated rows: l 4,000,000, "
        "o 1,000,000, c 1\n"
    )


def test_no_order_has_a_join_without_an_equality() -> None:
    """Regions and nations are few, and nothing compares them: their product is never a way."""
    few = "FROM orders AS o JOIN nations AS n ON o.day = n.id JOIN regions AS r ON o.customer = r.id"
    fragment = last(planned(f"SELECT l.id {few} JOIN lines AS l ON l.order_id = o.id"))
    assert all(node.keys for node in walk(fragment.output) if isinstance(node, Join | MultiwayJoin))


def test_many_inputs_are_joined_two_by_two() -> None:
    inputs = "".join(f" JOIN customers AS c{n} ON c{n - 1}.nation = c{n}.id" for n in range(1, 14))
    query = f"FROM customers AS c0{inputs} WHERE c13.name = 'ann' AND c12.name = 'bob'"
    found = order(query)
    assert "(c12 c13)" in found


def last(plan: Plan) -> Fragment:
    return plan.fragments[-1]
