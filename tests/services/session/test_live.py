"""SHOW STATE OF and EXPLAIN ANALYZE, from what a runner has reported: here the host in memory, whose clock stands."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import UnknownName
from dovetail.joins.host.activity import Activity, NodeWork
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.services.session import Rows, Session
from dovetail.services.session.live.analyze import size_text, time_text
from dovetail.services.session.result import Text
from dovetail.services.stack.temporary import temporary_settings
from dovetail.sql.catalog import Worker
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.sql.world import World

STREAMS = ("CREATE STREAM orders (id int, item string)", "CREATE STREAM prices (item string, price int)")
PRICED = (
    "CREATE MATERIALIZED VIEW priced AS SELECT o.id AS id, p.price AS price FROM orders AS o JOIN prices AS p "
    "ON o.item = p.item WHERE o.id + p.price > 10"
)


ACTIVITY = Activity(scans={0: NodeWork((3,), 3, 3, 10)}).document()


@dataclass
class Watched:
    """A world of views in memory, and a session that reads what is reported of them."""

    folder: Path
    world: World = field(default_factory=lambda: World.of(*STREAMS))

    def __post_init__(self) -> None:
        catalog = self.world.engine.catalog
        self.session = Session(temporary_settings(self.folder), catalog, BrokerAddress("nowhere"))

    def view(self, text: str) -> None:
        """Create it, as statements do: with a query in the catalog for each fragment."""
        self.world.engine.create(text)
        view = parse_one(text)
        assert isinstance(view, CreateView)
        *upstream, last = queries_of(plan_query(view.name, view, self.world.engine.catalog), text)
        self.world.engine.catalog.add_query(last, now_ms=0, upstream=upstream)

    def report(self) -> None:
        """Let all queries read their inputs, and say what they have done."""
        self.world.engine.host.settle()
        for query in self.world.engine.catalog.queries():
            running = self.world.engine.host.running[query.name].query  # type: ignore[attr-defined]
            assert isinstance(running, LocalQuery)
            written = len(self.world.engine.host.records(query.topic))
            progress = {"counts": {"rows_out": written}, "activity": running.activity.document()}
            self.world.engine.catalog.report(query.id, now_ms=0, progress=progress)

    def text_of(self, statement: str) -> str:
        [result] = self.session.run(statement)
        assert isinstance(result, Text)
        return result.text

    def state(self, view: str) -> list[tuple[object, ...]]:
        [result] = self.session.run(f"SHOW STATE OF {view}")
        assert isinstance(result, Rows)
        return [tuple(row.values()) for row in result.table.drop_columns(["bytes", "lookups"]).to_pylist()]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def fill(watched: Watched) -> None:
    orders: list[dict[str, object]] = [{"id": number, "item": "pen" if number < 7 else "ink"} for number in range(10)]
    watched.world.insert("orders", *orders)
    watched.world.insert(
        "prices", {"item": "pen", "price": 5}, {"item": "ink", "price": 3}, {"item": "cap", "price": 1}
    )


def test_the_state_of_a_join_by_side(watched: Watched) -> None:
    watched.view(PRICED)
    fill(watched)
    watched.report()

    assert watched.state("priced") == [
        ("priced", "Bidirectional inner  on=o.item=p.item", "left", 10, "2", 7, "pen: 7, ink: 3"),
        ("priced", "Bidirectional inner  on=o.item=p.item", "right", 3, "3", 1, ""),
    ]


def test_an_input_shows_its_watermark_and_the_partition_that_holds_it_back(watched: Watched) -> None:
    watched.world.engine.create("CREATE EXTERNAL STREAM seen (id int, at datetime64(3)) SETTINGS topic = 'readings'")
    watched.view("CREATE MATERIALIZED VIEW copied AS SELECT id FROM seen")
    [query] = watched.world.engine.catalog.queries()
    progress = {"watermarks": {"seen": 1_767_225_600_000}, "held_by": {"seen": 1}}
    watched.world.engine.catalog.report(query.id, now_ms=0, progress=progress | {"activity": ACTIVITY})

    assert "watermark 2026-01-01 00:00:00 (partition 1)" in watched.text_of("EXPLAIN ANALYZE copied")


def test_a_delta_join_shows_each_copy_that_it_keeps(watched: Watched) -> None:
    """Its steps are stages, told of as one: the first takes in, the last makes what leaves."""
    watched.view(
        "CREATE MATERIALIZED VIEW priced AS SELECT a.id AS id, p.price AS price FROM orders AS a JOIN orders AS b "
        "ON a.id = b.id JOIN prices AS p ON b.item = p.item SETTINGS delta_join = '(p a b)'"
    )
    fill(watched)
    watched.report()

    held = {part: rows for _, node, part, rows, *_ in watched.state("priced") if str(node).startswith("Delta")}
    assert {str(part).partition(".")[0] for part in held} == {"step1", "step2"}
    assert sorted(map(int, map(str, held.values()))) == [3, 3, 10, 10, 10]
    lines = [line.lstrip("│ └─├") for line in watched.text_of("EXPLAIN ANALYZE priced").splitlines()]
    figures = lines[1 + next(number for number, line in enumerate(lines) if line.startswith("Delta  inner"))]
    assert figures.startswith("in 10 + 10 + 3  made 10  fan-out 0.43  state 36 rows, ")


def test_a_self_join_shows_its_rows_once(watched: Watched) -> None:
    watched.view(
        "CREATE MATERIALIZED VIEW pairs AS SELECT a.id AS id, b.id AS other FROM orders AS a JOIN orders AS b "
        "ON a.item = b.item AND a.id < b.id SETTINGS max_fan_out = 5"
    )
    fill(watched)
    watched.report()

    assert watched.state("pairs") == [
        ("pairs", "Bidirectional inner  on=a.item=b.item", "left", 10, "2", 7, "pen: 7, ink: 3"),
    ]
    lines = [line.lstrip("│ └─├") for line in watched.text_of("EXPLAIN ANALYZE pairs").splitlines()]
    assert lines[3].startswith("in 10  out 24  fan-out 2.40  state 10 rows, ")
    assert lines[3].endswith(" (left 10)  time 0.0 ms  batches 2")
    assert lines[5] == "in 10  out 10  time 0.0 ms  batches 1"
    assert [line.partition("  ")[0] for line in lines[4::2]] == ["scan orders as a", "scan orders as b"]
    assert lines[6].endswith("  read and kept with a")
    assert len(lines) == 7


def test_groups_that_are_read_twice_show_their_rows_once(watched: Watched) -> None:
    """What leaves them goes to both; which of these rows pass the steps of one reader is not told."""
    watched.view(
        "CREATE MATERIALIZED VIEW counted AS WITH g AS (SELECT item, count(*) AS n FROM orders GROUP BY item) "
        "SELECT a.item AS item, b.n AS next FROM g AS a JOIN g AS b ON a.n = b.n + 4 WHERE b.n < 7"
    )
    fill(watched)
    watched.report()

    state = [(str(node).split()[0], part, rows) for _, node, part, rows, *_ in watched.state("counted")]
    assert state[:2] == [("Bidirectional", "left", 2), ("Bidirectional", "right", 1)]
    assert state[2:] == [("Aggregate", "groups", 2), ("Aggregate", "rows", 0)]
    lines = [line.lstrip("│ └─├") for line in watched.text_of("EXPLAIN ANALYZE counted").splitlines()]
    first, again = (number for number, line in enumerate(lines) if line.startswith("Aggregate"))
    assert lines[first + 1].startswith("in 10  made 2  out 3  fan-out 0.20  state 2 rows, ")
    assert lines[again:] == ["Aggregate  by=orders.item  read and kept with orders"]
    [output] = json.loads(watched.text_of("EXPLAIN ANALYZE counted FORMAT json")).values()
    assert [reader["rows_out"] for reader in output["inputs"][0]["inputs"]] == [None, None]


def test_the_live_plan_as_text(watched: Watched) -> None:
    watched.view(PRICED)
    fill(watched)
    watched.report()

    lines = watched.text_of("EXPLAIN ANALYZE priced").splitlines()

    plan = watched.world.plan(PRICED.partition(" AS ")[2]).explain().splitlines()
    assert len(lines) == 2 * len(plan)
    figures = [line.lstrip("│ └─├") for line in lines[1::2]]
    assert figures[0] == "out 3"
    assert figures[1].startswith("in 10 + 3  out 3  fan-out 0.23  state 13 rows, ")
    assert figures[1].endswith(" (left 10, right 3)  time 0.0 ms  batches 2")
    assert figures[2:] == ["in 10  out 10  time 0.0 ms  batches 1", "in 3  out 3  time 0.0 ms  batches 1"]


def test_the_live_plan_as_json(watched: Watched) -> None:
    watched.view(PRICED)
    fill(watched)
    watched.report()

    [priced] = json.loads(watched.text_of("EXPLAIN ANALYZE priced FORMAT json")).values()
    [join] = priced["inputs"]

    assert priced["rows_out"] == 3
    assert (join["rows_in"], join["changes"], join["batches"], join["busy_ms"]) == ([10, 3], 3, 2, 0.0)
    assert join["state"]["left"]["rows"] == 10
    assert join["state"]["left"]["heaviest_keys"] == [{"key": "pen", "rows": 7}, {"key": "ink", "rows": 3}]
    assert [scan["rows_out"] for scan in join["inputs"]] == [10, 3]


def test_the_live_plan_as_a_picture(watched: Watched) -> None:
    watched.view(PRICED)
    fill(watched)
    watched.report()

    first, *lines = watched.text_of("EXPLAIN ANALYZE priced FORMAT mermaid").splitlines()

    assert first == "flowchart BT"
    assert [line.strip() for line in lines if "-->" in line] == [
        "n1 -->|3| n0",
        "n2 -->|10| n1",
        "n3 -->|3| n1",
    ]
    assert sum('["' in line for line in lines) == 4


def test_rows_are_counted_behind_the_steps_of_a_stage(watched: Watched) -> None:
    """What leaves a filter above a join is what leaves the stage; the join below it says what it made."""
    watched.view(
        "CREATE MATERIALIZED VIEW rising AS SELECT j.id AS id FROM (SELECT o.id AS id, p.price * 2 AS twice "
        "FROM orders AS o LEFT JOIN prices AS p ON o.item = p.item) AS j WHERE j.twice IS NULL"
    )
    fill(watched)
    watched.world.insert("orders", {"id": 100, "item": "map"})
    watched.report()

    output = json.loads(watched.text_of("EXPLAIN ANALYZE rising FORMAT json"))["rising"]
    steps = [output]
    while not steps[-1]["node"].startswith("Bidirectional"):
        [below] = steps[-1]["inputs"]
        steps.append(below)
    written, filtered, *within, join = steps

    assert [step["node"].split()[0] for step in (filtered, *within)] == ["Map", "Map"]
    assert (written["rows_out"], filtered["rows_out"], [step["rows_out"] for step in within]) == (1, 1, [None])
    assert (join["rows_in"], join["changes"], join["rows_out"]) == ([11, 3], 31, None)
    assert "in 11 + 3  made 31  fan-out 2.21  state 14 rows" in watched.text_of("EXPLAIN ANALYZE rising")
    assert "rows_in" not in filtered


def test_groups_above_a_join_have_lines_of_their_own(watched: Watched) -> None:
    watched.view(
        "CREATE MATERIALIZED VIEW sold AS SELECT o.item AS item, count(*) AS n FROM orders AS o "
        "JOIN prices AS p ON o.item = p.item GROUP BY o.item"
    )
    fill(watched)
    watched.report()

    found = {(str(node).split()[0], part): (rows, keys) for _, node, part, rows, keys, *_ in watched.state("sold")}

    assert found[("Bidirectional", "left")] == (10, "2")
    assert found[("Aggregate", "groups")] == (2, "2")


def test_a_view_that_has_not_run_yet_has_a_plan_without_figures(watched: Watched) -> None:
    watched.view(PRICED)

    plan = watched.world.plan(PRICED.partition(" AS ")[2]).explain()
    text = watched.text_of("EXPLAIN ANALYZE priced")
    assert watched.state("priced") == []
    assert text.count("\n") == plan.count("\n")


NAMES = (
    "CREATE DICTIONARY names (item string, name string) PRIMARY KEY item "
    "SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' DB 'shop' TABLE 'names')) LAYOUT(HASHED()) LIFETIME(300)"
)


def test_what_lookup_workers_keep_is_that_of_those_that_live(watched: Watched) -> None:
    """Figures of a dictionary add up over them, and the memos."""
    watched.world.engine.create(NAMES)
    watched.view(
        "CREATE MATERIALIZED VIEW named AS SELECT o.id AS id, n.name AS name FROM changelog(orders, id) AS o "
        "LEFT JOIN names AS n ON o.item = n.item"
    )
    catalog, now_ms = watched.world.engine.catalog, watched.session.context.now_ms
    for worker in ("a", "b"):
        catalog.worker_seen(Worker(worker, "here", 1), now_ms)
    held = {
        "a": {"tables": {"names": [10, 900, 40, 30, 6]}, "memo": [5, 4096]},
        "b": {"tables": {"names": [2, 100, 10, 0, 0]}},
        "gone": {"tables": {"names": [700, 7, 7, 7, 0]}, "memo": [7, 7]},
    }
    [query] = catalog.queries()
    catalog.report(query.id, now_ms=now_ms, progress={"counts": {"rows_out": 3}, "held_by_worker": held})

    [result] = watched.session.run("SHOW STATE OF named")
    assert isinstance(result, Rows)
    assert [(row["part"], row["rows"], row["bytes"], row["lookups"]) for row in result.table.to_pylist()] == [
        ("memo", 5, 4096, None),
        ("cache", 12, 1000, "50 keys: 60 % hot, 12 % cold, 28 % source"),
    ]
    text = watched.text_of("EXPLAIN ANALYZE named")
    assert "out 3  memo 5 rows, 4.1 kB" in text
    assert "cache 12 rows, 1.0 kB  lookups 50 keys: 60 % hot, 12 % cold, 28 % source" in text
    assert '"asked": 50' in watched.text_of("EXPLAIN ANALYZE named FORMAT json")


@pytest.mark.parametrize("statement", ["SHOW STATE OF nothing", "EXPLAIN ANALYZE nothing"])
def test_what_is_no_query_is_refused(watched: Watched, statement: str) -> None:
    with pytest.raises(UnknownName, match='there is no query "nothing"'):
        watched.session.run(statement)


def test_sizes_and_times_are_told_in_their_units() -> None:
    assert [size_text(size) for size in (0, 999, 1_200, 3_400_000, 5e9, 2e12)] == [
        "0 B", "999 B", "1.2 kB", "3.4 MB", "5.0 GB", "2.0 TB",
    ]  # fmt: skip
    assert [time_text(ns) for ns in (0, 400_000, 12_000_000, 34_000_000_000)] == ["0.0 ms", "0.4 ms", "12 ms", "34.0 s"]
