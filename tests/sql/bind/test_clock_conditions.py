"""Conditions on the clock: what a view holds at a time is what the condition says of that time, written out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.errors import DovetailError
from dovetail.sql.catalog import Catalog
from dovetail.sql.clock_table import CLOCK
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateStream, Select
from tests.sqllogictest.memory import MemorySession
from tests.tries import tries

WrittenStep = tuple[list[tuple[int, datetime | None]], int, list[int]]
"""Rows that come, the minutes that pass then, and the rows that are deleted before, where that can be."""
NOTHING: WrittenStep = ([], 1, [])
LATE = datetime(2026, 1, 1, 23, 40, tzinfo=UTC)
"""Not long before another day."""
CONDITIONS = [
    "at > now() - INTERVAL '10 minutes'",
    "at >= now() - INTERVAL '10 minutes'",
    "at < now() - INTERVAL '10 minutes'",
    "at <= now()",
    "now() - INTERVAL '10 minutes' < at",
    "now() - at < INTERVAL '10 minutes'",
    "INTERVAL '10 minutes' >= now() - at",
    "at + INTERVAL '10 minutes' > now()",
    "at BETWEEN now() - INTERVAL '20 minutes' AND now() - INTERVAL '5 minutes'",
    "(at > now() - INTERVAL '20 minutes') AND at <= now() + INTERVAL '5 minutes' AND n % 2 = 0",
    "at > current_timestamp - INTERVAL '10 minutes' AND at IN (SELECT at FROM s WHERE n > 1)",
    "local > now() - INTERVAL '10 minutes'",
    "at > now() - INTERVAL '10 minutes' AND (n > 2 OR local IS NULL)",
    "date_trunc('hour', at) = date_trunc('hour', now())",
    "at::date >= current_date",
    "at::date < current_date - 0 AND n > 1",
]


@contextmanager
def session() -> Iterator[MemorySession]:
    """With a clock that stands still but for the test, which writes it."""
    made = MemorySession(Rules.RISINGWAVE)
    made.execute(f"CREATE TABLE {CLOCK} (id int, now timestamptz, PRIMARY KEY (id))")
    yield made
    made.close()


def text_of(at: datetime | None) -> str:
    return "NULL" if at is None else f"'{at:%Y-%m-%d %H:%M:%S}+00:00'"


times = st.one_of(st.none(), st.integers(-40, 40).map(lambda minutes: LATE + timedelta(minutes=minutes)))
rows = st.lists(st.tuples(st.integers(0, 5), times), max_size=4)
steps = st.lists(st.tuples(rows, st.integers(0, 25), st.lists(st.integers(0, 5), max_size=1)), min_size=1, max_size=5)


@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=tries(4), deadline=None)
@given(steps=steps, keyed=st.booleans())
def test_a_view_holds_what_the_condition_says_of_the_time(
    condition: str, keyed: bool, steps: list[WrittenStep]
) -> None:
    with session() as made:
        kind = "" if keyed else "APPEND ONLY"
        made.execute(f"CREATE TABLE s (n int, at timestamptz, local timestamp) {kind}")
        made.execute(f"CREATE MATERIALIZED VIEW v AS SELECT n, at FROM s WHERE {condition}")
        made.execute(
            "CREATE MATERIALIZED VIEW counted AS "
            f"SELECT n, count(*) AS c, max(at) AS m FROM s WHERE {condition} GROUP BY n"
        )
        now = LATE
        for added, minutes, deleted in steps:
            for n, at in added:
                local = "NULL" if at is None else f"'{at:%Y-%m-%d %H:%M:%S}'"
                made.execute(f"INSERT INTO s VALUES ({n}, {text_of(at)}, {local})")
            for n in deleted if keyed else ():
                made.execute(f"DELETE FROM s WHERE n = {n}")
            now += timedelta(minutes=minutes)
            made.execute(f"INSERT INTO {CLOCK} VALUES (0, {text_of(now)})")
            then = condition.replace("now()", f"TIMESTAMPTZ {text_of(now)}")
            then = then.replace("current_timestamp", f"TIMESTAMPTZ {text_of(now)}")
            then = then.replace("current_date", f"DATE '{now:%Y-%m-%d}'")
            assert held(made, "SELECT n, at FROM v") == held(made, f"SELECT n, at FROM s WHERE {then}")
            grouped = f"SELECT n, count(*) AS c, max(at) AS m FROM s WHERE {then} GROUP BY n"
            assert held(made, "SELECT n, c, m FROM counted") == held(made, grouped)


def held(made: MemorySession, query: str) -> list[str]:
    table = made.execute(query)
    assert table is not None
    return sorted(map(repr, table.to_pylist()))


def test_groups_leave_as_time_passes() -> None:
    with session() as made:
        made.execute("CREATE TABLE s (n int, at timestamptz) APPEND ONLY")
        made.execute(
            "CREATE MATERIALIZED VIEW v AS SELECT n, max(at) AS m FROM s GROUP BY n "
            "HAVING max(at) > now() - INTERVAL '10 minutes' AND max(at) <= now()"
        )
        made.execute(f"INSERT INTO s VALUES (1, {text_of(LATE)}), (2, {text_of(LATE + timedelta(minutes=5))})")
        for minutes, expected in ((0, [1]), (5, [1, 2]), (10, [2]), (15, [])):
            made.execute(f"INSERT INTO {CLOCK} VALUES (0, {text_of(LATE + timedelta(minutes=minutes))})")
            found = made.execute("SELECT n FROM v")
            assert found is not None
            assert sorted(found["n"].to_pylist()) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM s WHERE at > now() OR n > 1",
        "SELECT n FROM s WHERE at > now() - INTERVAL '1 minute' * n",
        "SELECT n, now() FROM s",
        "SELECT n FROM s WHERE NOT (at > now())",
        "SELECT n FROM s WHERE now() > now() - INTERVAL '1 minute'",
    ],
)
def test_other_questions_of_the_time_are_refused(query: str) -> None:
    with session() as made:
        made.execute("CREATE TABLE s (n int, at timestamptz)")
        with pytest.raises(DovetailError) as raised:
            made.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        assert "at > now() - INTERVAL '1 hour'" in str(raised.value)


def test_a_column_called_as_ours_is_the_users() -> None:
    with session() as made:
        made.execute('CREATE TABLE s (n int, now timestamptz, clock int, "bound" int)')
        made.execute(
            "CREATE MATERIALIZED VIEW v AS SELECT clock, bound FROM s WHERE s.now > now() - INTERVAL '1 minute'"
        )
        made.execute(f"INSERT INTO s VALUES (1, {text_of(LATE)}, 2, 3)")
        made.execute(f"INSERT INTO {CLOCK} VALUES (0, {text_of(LATE)})")
        found = made.execute("SELECT clock, bound FROM v")
        assert found is not None
        assert found.to_pylist() == [{"clock": 2, "bound": 3}]


JOINS = [
    "a JOIN c ON a.n = c.n WHERE a.at > now() - INTERVAL '10 minutes' AND c.at > now() - INTERVAL '20 minutes'",
    "a JOIN c ON a.n = c.n WHERE a.local > now() - INTERVAL '10 minutes' AND c.local <= now()",
    "a LEFT JOIN c ON a.n = c.n WHERE a.at > now() - INTERVAL '10 minutes'",
    "a LEFT JOIN c ON a.n = c.n WHERE c.at > now() - INTERVAL '10 minutes'",
    "a FULL JOIN c ON a.n = c.n WHERE coalesce(a.at, c.at) > now() - INTERVAL '10 minutes'",
    "a JOIN c ON a.n = c.n JOIN a AS d ON d.n = c.n WHERE d.at > now() - INTERVAL '10 minutes'",
    "a JOIN c ON a.n = c.n WHERE a.at > now() - INTERVAL '10 minutes' AND c.n IN (SELECT n FROM a)",
]


@pytest.mark.parametrize("query", JOINS)
@settings(max_examples=tries(4), deadline=None)
@given(steps=steps, others=steps, keyed=st.booleans())
def test_below_joins_too(
    query: str,
    keyed: bool,
    steps: list[WrittenStep],
    others: list[WrittenStep],
) -> None:
    select = "SELECT a.n AS n, a.at AS at, c.n AS cn, c.at AS cat FROM"
    with session() as made:
        for name in "ac":
            made.execute(
                f"CREATE TABLE {name} (n int, at timestamptz, local timestamp) {'' if keyed else 'APPEND ONLY'}"
            )
        made.execute(f"CREATE MATERIALIZED VIEW v AS {select} {query}")
        now = LATE
        for left, right in itertools.zip_longest(steps, others, fillvalue=NOTHING):
            for name, (added, _, deleted) in (("a", left), ("c", right)):
                for n, at in added:
                    local = "NULL" if at is None else f"'{at:%Y-%m-%d %H:%M:%S}'"
                    made.execute(f"INSERT INTO {name} VALUES ({n}, {text_of(at)}, {local})")
                for n in deleted if keyed else ():
                    made.execute(f"DELETE FROM {name} WHERE n = {n}")
            now += timedelta(minutes=left[1])
            made.execute(f"INSERT INTO {CLOCK} VALUES (0, {text_of(now)})")
            then = query.replace("now()", f"TIMESTAMPTZ {text_of(now)}")
            assert held(made, "SELECT n, at, cn, cat FROM v") == held(made, f"{select} {then}")


def test_the_state_of_a_join_is_bounded_by_the_clock() -> None:
    catalog = Catalog.open("sqlite://")
    for name in "ac":
        made = parse_one(f"CREATE TABLE {name} (n int, at timestamptz, local timestamp) APPEND ONLY")
        assert isinstance(made, CreateStream)
        catalog.create(made, now_ms=0)
    for query, bounded in ((JOINS[0], 2), (JOINS[1], 1), (JOINS[2], 1)):
        statement = parse_one(f"SELECT a.n FROM {query}")
        assert isinstance(statement, Select)
        [join] = [
            line for line in plan_query("v", statement, catalog).explain().splitlines() if "Bidirectional" in line
        ]
        assert (join.count("the current rows"), join.count("unbounded")) == (bounded, 2 - bounded)
    catalog.close()
