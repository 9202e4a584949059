"""Three tables that change at random, and what must hold of every query over them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.conformance.memory import MemoryHost
from tests.conformance.sql_engine import SqlEngine
from tests.sql.world import Row, World

TABLES = (
    "CREATE TABLE held (id INT, k INT, v DOUBLE, PRIMARY KEY (id))",
    "CREATE TABLE seen (id INT, k INT, w DOUBLE, PRIMARY KEY (id))",
    "CREATE TABLE marks (k INT, w DOUBLE)",
)


def assert_adds_up(query: str, batch: str | None = None, made: Sequence[str] = (), rounds: int = 8) -> None:
    """After each of some random changes the changelog of ``query`` adds up to what DuckDB makes of ``batch``, the same
    query unless that must be said in another way, and of its plan; no row stands less often than never.

    made   what is created besides the tables
    """
    world, changing = World.of(*TABLES, *made), Changing.of(query)
    world.start(query)
    for _ in range(rounds):
        changing.change(world)
        world.drain()
        assert min(world.net.values(), default=0) >= 0
        assert world.table() == world.over_content(batch or query)
        assert batch is not None or world.table() == world.recomputed(query)


class Changing:
    """Random insertions, updates and deletions of TABLES; equal rows, NULL and -0.0 among them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.present: dict[str, list[Row]] = {"held": [], "seen": [], "marks": []}

    @staticmethod
    def of(seed: str) -> Changing:
        return Changing(random.Random(seed))

    def change(self, world: World) -> None:
        for _ in range(self.chance.randrange(1, 8)):
            table = self.chance.choice(list(self.present))
            rows = self.present[table]
            if rows and self.chance.random() < 0.4:
                world.delete(table, rows.pop(self.chance.randrange(len(rows))))
            else:
                self._insert(world, table, rows)

    def _insert(self, world: World, table: str, rows: list[Row]) -> None:
        number = self.chance.choice([None, 0.0, -0.0, 1.5, 2.0])
        row: Row = {"k": self.chance.choice([None, 1, 1, 2])}
        if table == "marks":
            # One time for all: a retraction of a row without a key has to equal its insertion.
            row |= {"w": number, "_tp_time": "2026-01-01 00:00:00"}
        else:
            row |= {"id": self.chance.randrange(5), "v" if table == "held" else "w": number}
            rows[:] = [old for old in rows if old["id"] != row["id"]]
        rows.append(row)
        world.insert(table, row)


def assert_alike(query: str, seed: int, limit: int | None, rounds: int, **chosen: bool) -> None:
    """After every batch ``query`` has changed what it changes with the settings ``chosen``, however its records are cut
    into batches, with restarts, and with the state cut into other buckets.
    """
    worlds = [World(SqlEngine(MemoryHost(limit, rescaled=(3, 2)))) for _ in range(2)]
    changers = [Changing.of(f"{seed}") for _ in worlds]
    for world, settings in zip(worlds, ({}, chosen), strict=True):
        for statement in TABLES:
            world.engine.create(statement)
        world.start(query, **settings)
    for number in range(rounds):
        for world, changer in zip(worlds, changers, strict=True):
            changer.change(world)
            world.drain()
            if number % 2:
                world.engine.restart()
        assert worlds[0].table() == worlds[1].table()
        assert min(worlds[0].net.values(), default=0) >= 0
