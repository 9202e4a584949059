"""WHY NOT: each reason for which a record is behind no row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.conformance.records import Record
from tests.sql.trace.test_why_rows import AT, JOINED, market, shop
from tests.sql.trace.traced_world import reasons, why
from tests.sql.world import World

NEAR = "SELECT c.k AS k FROM clicks c JOIN quotes q ON c.k = q.k AND c.at BETWEEN q.at AND q.at + INTERVAL '2 SECONDS'"
FIRST = "SELECT * FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM clicks) AS t WHERE n <= 1"
Lost = list[tuple[str, int | None, str]]


@pytest.mark.parametrize(
    ("query", "where", "expected"),
    [
        pytest.param(
            JOINED,
            "id = 7",
            [
                ("orders", None, "no record with o.id = 7, of 7 that can be read"),
                ("customers", None, "not looked into: no row of the other side is left"),
            ],
            id="no record",
        ),
        pytest.param(
            JOINED,
            "id = 8",
            [
                ("customers", None, "no record with c.id = 9, of 2 that can be read"),
                ("orders", 3, "no partner: no row of customers has c.id = 9"),
            ],
            id="no partner",
        ),
        pytest.param(
            JOINED,
            "id = 9",
            [
                ("customers", None, "not looked into: no row of the other side is left"),
                ("orders", 4, "NULL key: o.customer is NULL, which matches nothing"),
            ],
            id="NULL key",
        ),
        pytest.param(
            f"{JOINED} WHERE o.amount < 5",
            "id = 5",
            [
                ("customers", None, "not looked into: no row of the other side is left"),
                ("orders", 0, "replaced by orders[0] offset 2"),
                ("orders", 2, "condition o.amount < 5 is false: o.amount = 30"),
            ],
            id="filtered",
        ),
        pytest.param(
            f"{JOINED} AND o.amount < c.id",
            "id = 5",
            [
                ("customers", 1, "condition o.amount < c.id is false: o.amount = 30, c.id = 2"),
                ("orders", 0, "replaced by orders[0] offset 2"),
                ("orders", 2, "condition o.amount < c.id is false: o.amount = 30, c.id = 2"),
            ],
            id="residual",
        ),
        pytest.param(
            JOINED,
            "name = 'BOB '",
            [
                ("customers", None, "no record with c.name = 'BOB ', of 2 that can be read"),
                ("orders", None, "not looked into: no row of the other side is left"),
                ("customers", 1, "c.name is 'Bob', and 'BOB ' is looked for"),
            ],
            id="case",
        ),
        pytest.param(
            JOINED,
            "id = 6",
            [
                ("customers", None, "not looked into: no row of the other side is left"),
                ("orders", 1, "deleted by orders[0] offset 5"),
                ("orders", 5, "deletes its row"),
            ],
            id="deleted",
        ),
        pytest.param(
            "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer HAVING sum(amount) > 30",
            "customer = 2",
            [
                ("orders", 0, "replaced by orders[0] offset 2"),
                ("orders", 1, "deleted by orders[0] offset 5"),
                ("orders", 2, "condition (sum(orders.amount)) > 30 is false: sum(orders.amount) = 30"),
                ("orders", 5, "deletes its row"),
            ],
            id="having",
        ),
        pytest.param(
            "SELECT id FROM orders WHERE NOT EXISTS (SELECT 1 FROM customers AS c WHERE c.id = orders.customer)",
            "id = 5",
            [
                ("customers", 1, "a row of orders matches it, which leaves that row out"),
                ("orders", 0, "replaced by orders[0] offset 2"),
                ("orders", 2, "it matches a row of customers, and must match none"),
            ],
            id="anti",
        ),
        pytest.param(
            f"{JOINED.replace('JOIN', 'LEFT JOIN')}",
            "id = 8 AND name = 'Ada'",
            [
                ("customers", 0, "no partner: no row of orders has o.customer = 1"),
                (
                    "orders",
                    3,
                    "no partner: no row of customers has c.id = 9; asked condition name = 'Ada' is NULL: name = NULL",
                ),
            ],
            id="padded",
        ),
    ],
)
def test_a_reason(query: str, where: str, expected: Lost) -> None:
    world = shop()
    world.insert("orders", {"id": 8, "customer": 9, "amount": 1}, {"id": 9, "customer": None, "amount": 1})
    world.delete("orders", {"id": 6, "customer": 2, "amount": 20})
    world.insert("orders", {"id": 10, "customer": 1, "amount": 1})
    found = why(world, query, where)
    assert found.rows.num_rows == 0
    assert reasons(found.lost) == expected


@pytest.mark.parametrize(
    ("query", "where", "said"),
    [
        (
            NEAR,
            "k = 'a'",
            "is false: c.at = 2024-01-01 00:00:25, q.at = 2024-01-01 00:00:30, 5 s apart",
        ),
        (
            "SELECT c.k AS k FROM clicks c ASOF JOIN quotes q ON c.k = q.k AND c.at >= q.at",
            "k = 'a'",
            "ON c.at >= q.at is false: c.at = 2024-01-01 00:00:25, q.at = 2024-01-01 00:00:30, 5 s apart",
        ),
        (
            FIRST,
            "k = 'a' AND v = 9",
            "row_number 2 of its partition, and 1 to 1 are let through",
        ),
    ],
    ids=["range", "asof", "first rows"],
)
def test_a_distance_or_a_rank_is_told(query: str, where: str, said: str) -> None:
    world = market()
    world.insert("clicks", {"k": "a", "v": 9, "at": f"{AT}25"})
    assert any(reason.endswith(said) for _, _, reason in reasons(why(world, query, where).lost))


def test_what_was_not_counted_is_told_with_the_reason() -> None:
    world = shop()
    orders = world.engine.host.topics["orders"].records  # type: ignore[attr-defined]
    orders.append(Record(None, b'{"id": 11, "customer": "one", "amount": 3}', 0))
    unused = {"orders": {1: "before the start"}}
    assert reasons(why(world, JOINED, "id = 6", unused=unused).lost) == [
        ("customers", None, "not looked into: no row of the other side is left"),
        ("orders", 1, "before the start"),
    ]
    [(_, _, nothing), _, (stream, offset, dead)] = reasons(why(world, JOINED, "id = 11").lost)
    assert nothing == "no record with o.id = 11, of 3 that can be read"
    assert (stream, offset) == ("orders", 3)
    assert dead.startswith("a dead letter: column customer: ")


def test_of_equal_rows_the_last_ones_were_late() -> None:
    world = market()
    world.insert("clicks", {"k": "a", "v": 1, "at": f"{AT}25"})
    clicks = why(world, "SELECT k, v FROM clicks WHERE v > 0", "k = 'a'").rows
    late = pa.table({"k": ["a"], "v": pa.array([1], pa.int32())})
    found = why(world, "SELECT k, v FROM clicks WHERE v > 0", "k = 'a'", late_rows={"clicks": late})
    assert (clicks.num_rows, found.rows.num_rows) == (2, 1)
    assert reasons(found.lost) == [("clicks", 2, "late: it was behind the watermark")]


def test_what_a_dictionary_does_not_have() -> None:
    world = World.of(
        "CREATE STREAM clicks (k string, v int)",
        "CREATE DICTIONARY names (k string, name string) PRIMARY KEY k "
        "SOURCE(SQLITE(PATH '/n.db' TABLE 'n')) LAYOUT(DIRECT())",
    )
    world.insert("clicks", {"k": "a", "v": 1}, {"k": "b", "v": 2})
    query = "SELECT clicks.k AS k, name FROM clicks JOIN names ON clicks.k = names.k SETTINGS join_algorithm = 'direct'"
    held = {"names": [{"k": "a", "name": "Ada"}]}
    assert why(world, query, "k = 'a'", dictionary=held).rows.to_pylist() == [{"k": "a", "name": "Ada"}]
    assert reasons(why(world, query, "k = 'b'", dictionary=held).lost) == [
        ("clicks", 1, "no partner: no row of dictionary \"names\" has names.k = 'b'")
    ]
