"""Every query over some thousand events, in batches that chance has cut: never below zero, and what DuckDB says."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from benchmarks.nexmark import Nexmark
from dovetail.sql.syntax.rules import Rules
from tests.conformance.memory import MemoryHost
from tests.conformance.records import Record
from tests.conformance.sql_engine import SqlEngine
from tests.nexmark.inputs import EVENTS, INPUTS, STREAM, STREAMS, records
from tests.nexmark.queries import (
    ANSWERED_ONCE,
    QUERIES,
    TABLES,
    TIMEPLUS,
    TIMEPLUS_TABLES,
    WINDOWED,
    once,
)
from tests.oracles.batch import Row, answer, near
from tests.sql.world import statements

BATCHES = 12
MOVING = Nexmark(rate=100, moved_share=0.5, left_share=0.3)
PERSONS = (
    "CREATE TABLE person (id BIGINT, name VARCHAR, email_address VARCHAR, credit_card VARCHAR, city VARCHAR,"
    " state VARCHAR, date_time TIMESTAMP, extra VARCHAR, PRIMARY KEY (id))"
)
"""The table as one whose rows are replaced and deleted."""


# The events make fewer auctions than the thousand of q105.
CASES = QUERIES | {"q105 of ten": QUERIES["q105"].replace("LIMIT 1000", "LIMIT 10")}


@pytest.mark.parametrize("name", CASES)
def test_it_adds_up_to_the_batch_result(name: str) -> None:
    found = ran(CASES[name], STREAMS, random.Random(name))
    expected = answer(INPUTS, CASES[name])
    assert expected
    assert near(found.counts.elements()) == near(expected.elements())


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in ANSWERED_ONCE])
def test_streams_add_up_to_the_batch_result(name: str) -> None:
    found = ran(TIMEPLUS[name], STREAMS, random.Random(name), TIMEPLUS_TABLES)
    assert near(found.counts.elements()) == near(answer(INPUTS, QUERIES[name], Rules.TIMEPLUS).elements())


@pytest.mark.parametrize("name", WINDOWED)
def test_each_row_leaves_once_when_its_window_is_closed(name: str) -> None:
    closing = STREAM.closing(EVENTS)
    closed = {table: pa.concat_tables([rows, closing[table]]) for table, rows in STREAMS.items()}
    found = ran(once(name), closed, random.Random(name))
    assert found.retractions == 0
    assert +found.counts == answer(INPUTS, QUERIES[name])


@pytest.mark.parametrize("name", ["q3", "q23"])
def test_persons_move_and_leave(name: str) -> None:
    chance, world = random.Random(name), World.of(QUERIES[name], PERSONS)
    held: dict[object, dict[str, object]] = {}
    for first, last in itertools.pairwise(cut(EVENTS, chance)):
        events = MOVING.events(first, last)
        events["person"] = pa.concat_tables([events["person"], MOVING.moved(first, last)])
        departed = MOVING.departed(first, last)
        for table, rows in events.items():
            world.send(table, rows, key="id" if table == "person" else None)
        world.engine.delete("person", departed.to_pylist())
        held |= {row["id"]: row for row in events["person"].to_pylist()}
        held = {key: row for key, row in held.items() if key not in departed["id"].to_pylist()}
        world.drain()
    events = MOVING.events(0, EVENTS)
    left = pa.Table.from_pylist(list(held.values()), schema=events["person"].schema)
    assert 0 < left.num_rows < events["person"].num_rows
    assert +world.counts == answer(events | {"person": left}, QUERIES[name])


@dataclass
class World:
    """A query in memory over the tables of Nexmark, and what its changes add up to."""

    engine: SqlEngine
    counts: Counter[Row] = field(default_factory=Counter)
    retractions: int = 0

    @staticmethod
    def of(query: str, *tables: str) -> World:
        """``tables``: statements for tables that are declared otherwise."""
        world = World(SqlEngine(MemoryHost()))
        declared = {statement.name: statement.text for text in (TABLES, *tables) for statement in statements(text)}
        for statement in declared.values():
            world.engine.create(statement)
        world.send("side_input", INPUTS["side_input"], key="key")
        world.engine.start(query, {})
        return world

    def send(self, table: str, rows: pa.Table, key: str | None = None) -> None:
        self.engine.host.send(table, [Record(*record, STREAM.base_ms) for record in records(rows, key)])

    def drain(self) -> None:
        for change in self.engine.drain():
            row = tuple(change.row.values())
            self.counts[row] += change.delta
            self.retractions += change.delta < 0
            assert self.counts[row] >= 0, f"{row} is taken back before it is there"


def ran(query: str, rows: Mapping[str, pa.Table], chance: random.Random, *tables: str) -> World:
    """A query at its end, its streams read in batches that chance has cut."""
    world = World.of(query, *tables)
    cuts = {name: cut(table.num_rows, chance) for name, table in rows.items()}
    for batch in range(BATCHES):
        for name, table in rows.items():
            first, last = cuts[name][batch : batch + 2]
            world.send(name, table.slice(first, last - first))
        world.drain()
    world.engine.close()
    return world


def cut(rows: int, chance: random.Random) -> Sequence[int]:
    """Some batches are empty, some are large."""
    return [0, *sorted(chance.randint(0, rows) for _ in range(BATCHES - 1)), rows]
