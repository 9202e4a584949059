"""WHY: the records behind rows, through each kind of node that is walked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from tests.sql.trace.traced_world import places, why
from tests.sql.world import World

ORDERS = "CREATE TABLE orders (id int, customer int, amount int, PRIMARY KEY (id))"
CUSTOMERS = "CREATE TABLE customers (id int, name varchar, PRIMARY KEY (id))"
CLICKS = "CREATE TABLE clicks (k varchar, v int, at timestamp, WATERMARK FOR at AS at) APPEND ONLY"
QUOTES = (
    "CREATE TABLE quotes (k varchar, w int, at timestamp, PRIMARY KEY (k), "
    "WATERMARK FOR at AS at - INTERVAL '5 SECONDS')"
)
JOINED = "SELECT o.id AS id, o.amount AS amount, c.name AS name FROM orders o JOIN customers c ON o.customer = c.id"
AT = "2024-01-01 00:00:"


def shop() -> World:
    world = World.of(ORDERS, CUSTOMERS)
    world.insert("customers", {"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"})
    world.insert("orders", {"id": 5, "customer": 1, "amount": 10}, {"id": 6, "customer": 2, "amount": 20})
    world.insert("orders", {"id": 5, "customer": 2, "amount": 30})
    return world


def market() -> World:
    world = World.of(CLICKS, QUOTES)
    for at in (10, 20, 30):
        world.insert("quotes", {"k": "a", "w": at, "at": f"{AT}{at}"})
    world.insert("clicks", {"k": "a", "v": 1, "at": f"{AT}25"}, {"k": "b", "v": 2, "at": f"{AT}25"})
    return world


def test_one_side_leads_to_the_other() -> None:
    found = why(shop(), JOINED, "id = 5")
    assert found.rows.to_pylist() == [{"id": 5, "amount": 30, "name": "Bob"}]
    assert places(found.behind) == [("customers", 1, "upsert"), ("orders", 2, "upsert")]


def test_a_line_says_where_and_when_and_what() -> None:
    [line, _] = why(shop(), JOINED, "id = 5").behind.to_pylist()
    assert line.pop("time") is not None
    assert line == {
        "stream": "customers",
        "topic": "customers",
        "partition": 0,
        "offset": 1,
        "op": "upsert",
        "values": '{"id": 2, "name": "Bob"}',
        "reason": None,
    }


def test_a_row_is_found_by_what_it_has_of_its_record() -> None:
    world = World.of(
        f"{ORDERS} INCLUDE offset AS at", "CREATE TABLE taken (id int) INCLUDE partition AS p INCLUDE key AS k"
    )
    for amount in (10, 20, 30):
        world.insert("orders", {"id": 5, "customer": 1, "amount": amount})
    world.insert("taken", {"id": 5}, {"id": 5})
    query = "SELECT o.id AS id, o.at AS at, t.p AS p FROM orders o JOIN taken t ON o.id = t.id"
    found = why(world, query, "at = '2' AND p = '0'")
    assert found.rows.to_pylist() == [{"id": 5, "at": "2", "p": "0"}] * 2
    assert places(found.behind) == [("orders", 2, "upsert"), ("taken", 0, "+1"), ("taken", 1, "+1")]
    assert '"at": "2"' in found.behind.to_pylist()[0]["values"]
    assert ("orders", 1, "upsert") in places(why(world, query, "at = '1'").lost)


@pytest.mark.parametrize("setting", ["join_order = '(o (c n))'", "join_order = '((n c) o)'", "delta_join = 1"])
def test_the_order_of_joins_leads_to_the_same_records(setting: str) -> None:
    world = shop()
    world.engine.create("CREATE TABLE notes (name varchar, note varchar)")
    world.insert("notes", {"name": "Bob", "note": "late"}, {"name": "Ada", "note": "new"})
    query = (
        "SELECT o.id AS id, n.note AS note FROM orders o JOIN customers c ON o.customer = c.id "
        "JOIN notes n ON n.name = c.name"
    )
    found, written = (why(world, text, "id = 5") for text in (f"{query} SETTINGS {setting}", query))
    assert found.rows.to_pylist() == written.rows.to_pylist() == [{"id": 5, "note": "late"}]
    assert places(found.behind) == places(written.behind)
    assert len(places(found.behind)) == 3


def test_from_the_right_side_too_and_by_another_column_than_the_key() -> None:
    found = why(shop(), JOINED, "name = 'Bob'")
    assert [row["id"] for row in found.rows.to_pylist()] == [6, 5]
    assert places(found.behind) == [("customers", 1, "upsert"), ("orders", 1, "upsert"), ("orders", 2, "upsert")]


def test_a_padded_row_is_made_of_its_left_record_alone() -> None:
    world = shop()
    world.insert("orders", {"id": 7, "customer": 9, "amount": 1})
    found = why(world, JOINED.replace("JOIN", "LEFT JOIN"), "id = 7")
    assert found.rows.to_pylist() == [{"id": 7, "amount": 1, "name": None}]
    assert places(found.behind) == [("orders", 3, "upsert")]


def test_a_group_is_made_of_all_its_records() -> None:
    query = (
        "SELECT c.name AS name, sum(o.amount) AS total FROM orders o JOIN customers c ON o.customer = c.id "
        "GROUP BY c.name"
    )
    found = why(shop(), query, "name = 'Bob'")
    assert found.rows.to_pylist() == [{"name": "Bob", "total": 50}]
    assert places(found.behind) == [("customers", 1, "upsert"), ("orders", 1, "upsert"), ("orders", 2, "upsert")]
    assert why(shop(), query, "name = 'Bob' AND total > 50").rows.num_rows == 0


def test_windows_are_groups_like_any_other() -> None:
    query = (
        "SELECT k, window_start AS since, count(*) AS n FROM tumble(clicks, at, INTERVAL '10 SECONDS') "
        "GROUP BY k, window_start"
    )
    world = market()
    world.insert("clicks", {"k": "a", "v": 3, "at": f"{AT}31"})
    assert places(why(world, query, "k = 'a'").behind) == [("clicks", 0, "+1"), ("clicks", 2, "+1")]
    assert places(why(world, query, f"k = 'a' AND since = TIMESTAMP '{AT}30'").behind) == [("clicks", 2, "+1")]


def test_of_many_versions_the_one_that_was_taken() -> None:
    asof = "SELECT c.k AS k, c.v AS v, q.w AS w FROM clicks c ASOF JOIN quotes q ON c.k = q.k AND c.at >= q.at"
    found = why(market(), asof, "k = 'a'")
    assert found.rows.num_rows == 0, "the last version alone stands, and is later"
    temporal = "SELECT c.k AS k, q.w AS w FROM clicks c JOIN quotes FOR SYSTEM_TIME AS OF c.at AS q ON c.k = q.k"
    found = why(market(), temporal, "k = 'a'")
    assert found.rows.to_pylist() == [{"k": "a", "w": 20}]
    assert places(found.behind) == [("clicks", 0, "+1"), ("quotes", 1, "upsert")]


def test_a_stream_that_is_joined_once_meets_what_was_there_then() -> None:
    world = World.of(
        "CREATE STREAM clicks (k string, v int)", "CREATE MUTABLE STREAM users (k string, name string) PRIMARY KEY (k)"
    )
    for number, name in enumerate(("Ada", "Eve"), 1):
        world.insert("users", {"k": "a", "name": name})
        world.insert("clicks", {"k": "a", "v": number})
    later(world)
    query = "SELECT clicks.k AS k, v, name FROM clicks JOIN users ON clicks.k = users.k"
    assert why(world, query, "v = 1").rows.to_pylist() == [{"k": "a", "v": 1, "name": "Ada"}]
    found = why(world, query, "v = 2")
    assert places(found.behind) == [("clicks", 1, "+1"), ("users", 1, "upsert")]
    assert "answered once" in found.notes[0]


def later(world: World) -> None:
    """Each record of every topic two seconds after the one before it."""
    for number, topic in enumerate(("users", "clicks")):
        records = world.engine.host.topics[topic].records  # type: ignore[attr-defined]
        records[:] = [
            replace(record, timestamp_ms=1_700_000_000_000 + 2_000 * place + 1_000 * number)
            for place, record in enumerate(records)
        ]


def test_a_changelog_names_the_insertion_that_remains() -> None:
    world = World.of("CREATE STREAM changes (k string, v int) SETTINGS mode = 'changelog'")
    for row in ({"k": "a", "v": 1}, {"k": "a", "v": 2}):
        world.insert("changes", row)
    world.delete("changes", {"k": "a", "v": 1})
    found = why(world, "SELECT k, v FROM changes WHERE v > 0", "k = 'a'")
    assert found.rows.to_pylist() == [{"k": "a", "v": 2}]
    assert places(found.behind) == [("changes", 1, "+1")]


@pytest.mark.parametrize(
    ("query", "where", "said", "fix"),
    [
        ("SELECT customer, sum(amount) AS total FROM orders GROUP BY customer", "total = 5", "total", "customer"),
        ("SELECT id, amount FROM orders WHERE amount > (SELECT min(id) FROM customers)", "id = 5", "id", "no column"),
        (
            "SELECT id, lag(amount) OVER (PARTITION BY customer ORDER BY id) AS b FROM orders",
            "id = 5",
            "window functions",
            "",
        ),
    ],
)
def test_what_cannot_be_traced_is_refused_with_what_can(query: str, where: str, said: str, fix: str) -> None:
    with pytest.raises(Unsupported) as refused:
        why(shop(), query, where)
    assert said in refused.value.what
    assert fix in refused.value.fix


@pytest.mark.parametrize(
    ("where", "said", "fix"),
    [
        ("id = 'five'", "'five' is not a valid integer, the type of id", "compare with a value of that type"),
        ("id = CAST('five' AS int)", "id is int32, and is compared with NULL", "id = .."),
        ("name = 5", "mix varchar and integer", "::"),
        ("x = 1", "x", "id"),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_type_that_fits(where: str, said: str, fix: str) -> None:
    with pytest.raises(SqlError) as refused:
        why(shop(), JOINED, where)
    assert said in refused.value.what
    assert fix in refused.value.fix
