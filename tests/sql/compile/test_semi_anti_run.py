"""SEMI and ANTI joins of inputs that change, run in memory, against the batch result."""

from __future__ import annotations

import random

import pytest

from tests.sql.world import Row, World

TABLES = (
    "CREATE TABLE held (id INT, k INT, v DOUBLE, PRIMARY KEY (id))",
    "CREATE TABLE seen (id INT, k INT, w DOUBLE, PRIMARY KEY (id))",
    "CREATE TABLE marks (k INT, w DOUBLE)",
)
JOINS = [
    ("held AS l", "seen AS r", "l.k = r.k"),
    ("held AS l", "marks AS r", "l.k = r.k"),
    ("marks AS l", "held AS r", "l.k = r.k AND l.w < r.v"),
    ("held AS l", "seen AS r", "l.id = r.id AND l.v <> r.w AND r.w > 0"),
    ("held AS l", "marks AS r", "l.k IS NOT DISTINCT FROM r.k AND l.v > 0"),
    ("(SELECT k, count(*) AS n FROM marks GROUP BY k) AS l", "held AS r", "l.k = r.k AND l.n > r.v"),
]


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
@pytest.mark.parametrize(("left", "right", "on"), JOINS)
def test_they_add_up_to_the_batch_result(kind: str, left: str, right: str, on: str) -> None:
    world, changing = World.of(*TABLES), Changing.of(f"{kind} {on}")
    world.start(f"SELECT l.* FROM {left} LEFT {kind} JOIN {right} ON {on}")
    batch = f"SELECT l.* FROM {left} WHERE {'NOT ' if kind == 'ANTI' else ''}EXISTS (SELECT 1 FROM {right} WHERE {on})"
    for _ in range(8):
        changing.change(world)
        world.drain()
        assert min(world.net.values(), default=0) >= 0
        assert world.table() == world.recomputed(batch)


class Changing:
    """Random insertions, updates and deletions of TABLES; equal rows, NULL and -0.0 among them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.standing: dict[str, list[Row]] = {"held": [], "seen": [], "marks": []}

    @staticmethod
    def of(seed: str) -> Changing:
        return Changing(random.Random(seed))

    def change(self, world: World) -> None:
        for _ in range(self.chance.randrange(1, 8)):
            table = self.chance.choice(list(self.standing))
            rows = self.standing[table]
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
