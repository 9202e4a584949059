"""What WHY names is enough, and WHY NOT is right: the query over the named records alone gives the rows asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.sql.compile.snapshot import Snapshot
from dovetail.sql.planner import recompute
from tests.conformance.memory import MemoryHost
from tests.conformance.records import Record
from tests.conformance.topics import Topic
from tests.sql.trace.traced_world import Question, places
from tests.sql.world import Row, World, select, values
from tests.tries import tries

TABLES = (
    "CREATE TABLE l (id int, k int, x int, PRIMARY KEY (id))",
    "CREATE TABLE r (id int, k int, y int, PRIMARY KEY (id))",
    "CREATE TABLE e (k int, x int) APPEND ONLY",
)
GROUPS = "SELECT l.k AS k, count(*) AS n, sum(r.y) AS y FROM l JOIN r ON l.k = r.k GROUP BY l.k HAVING count(*) > 1"
FIRST = "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY x) AS n FROM l) AS t WHERE n <= 2"
QUERIES = {
    "inner": ("SELECT l.id AS id, l.x AS x, r.y AS y FROM l JOIN r ON l.k = r.k", "id"),
    "residual": ("SELECT l.id AS id, l.k AS k, r.y AS y FROM l JOIN r ON l.k = r.k AND l.x < r.y WHERE r.y > 0", "k"),
    "left": ("SELECT l.id AS id, l.k AS k, r.y AS y FROM l LEFT JOIN r ON l.k = r.k AND l.x < r.y", "k"),
    "full": ("SELECT k, l.x AS x, r.y AS y FROM l FULL JOIN r USING (k)", "k"),
    "right": ("SELECT l.id AS id, r.id AS other, r.k AS k FROM l RIGHT JOIN r ON l.k = r.k", "other"),
    "semi": ("SELECT id, x FROM l WHERE k IN (SELECT k FROM r WHERE y > 1)", "id"),
    "anti": ("SELECT id, x, k FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.y > l.x)", "k"),
    "groups": (
        "SELECT l.k AS k, count(*) AS n, sum(r.y) AS y FROM l JOIN r ON l.k = r.k GROUP BY l.k HAVING count(*) > 1",
        "k",
    ),
    "union": ("SELECT k, x FROM l WHERE x > 1 UNION ALL SELECT k, y AS x FROM r", "k"),
    "first": (
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY x) AS n FROM l) AS t WHERE n <= 2",
        "k",
    ),
    "append": ("SELECT e.k AS k, e.x AS x, l.id AS id FROM e JOIN l ON e.x = l.id", "k"),
    "expression": ("SELECT l.id + 1 AS next, r.y AS y FROM l JOIN r ON l.k + 1 = r.k", "next"),
    "chain": ("SELECT l.id AS id, r.y AS y, e.x AS x FROM l JOIN r ON l.k = r.id LEFT JOIN e ON r.k = e.k", "id"),
}
small = st.integers(0, 3)
number = st.one_of(st.none(), small)
records = st.lists(
    st.one_of(
        st.tuples(st.just("l"), st.fixed_dictionaries({"id": small, "k": number, "x": number})),
        st.tuples(st.just("r"), st.fixed_dictionaries({"id": small, "k": number, "y": number})),
        st.tuples(st.just("e"), st.fixed_dictionaries({"k": number, "x": number})),
        st.tuples(st.sampled_from(["-l", "-r"]), st.fixed_dictionaries({"id": small})),
    ),
    max_size=14,
)


@dataclass(frozen=True)
class Case:
    """A query planned once, as a trace reads it and as a batch."""

    question: Question
    batch: Snapshot
    place: int

    @staticmethod
    @cache
    def of(name: str) -> Case:
        query, column = QUERIES[name]
        world = World.of(*TABLES)
        batch = recompute("q", select(query), world.engine.catalog)
        return Case(Question.of(world, query), batch, list(batch.columns).index(column))

    def hold(self, records: Mapping[str, Sequence[Record]]) -> None:
        for topic, found in self.topics.items():
            found.records[:] = records.get(topic, [])

    @property
    def topics(self) -> Mapping[str, Topic]:
        host = self.question.world.engine.host
        assert isinstance(host, MemoryHost)
        return host.topics

    def rows(self, value: int) -> Counter[tuple[object, ...]]:
        """The rows of the batch that are asked for."""
        rows = (values(row) for row in self.question.world.engine._answered(self.batch))  # noqa: SLF001
        return Counter(row for row in rows if row[self.place] == value)


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=tries(3))
@given(written=records, value=small)
def test_the_named_records_are_enough(name: str, written: list[tuple[str, Row]], value: int) -> None:
    case = Case.of(name)
    case.hold({})
    for table, row in written:
        if table.startswith("-"):
            case.question.world.delete(table[1:], row)
        else:
            case.question.world.insert(table, row)
    whole = {topic: list(found.records) for topic, found in case.topics.items()}
    expected = case.rows(value)

    found = case.question.answered(f"{QUERIES[name][1]} = {value}")
    assert Counter(values(row) for row in found.rows.to_pylist()) == expected
    named = {(stream, offset) for stream, offset, _ in places(found.behind)}
    assert bool(named) == bool(expected)
    case.hold({topic: [one for at, one in enumerate(every) if (topic, at) in named] for topic, every in whole.items()})
    assert case.rows(value) == expected
