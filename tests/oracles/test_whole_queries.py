"""Random whole queries beside PostgreSQL, and that the comparison sees what is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

from tests.oracles.fuzz_queries import Case, difference, run, smaller
from tests.oracles.postgres import postgres
from tests.oracles.whole_queries import created
from tests.sqllogictest.memory import MemorySession
from tests.tries import tries

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def connection() -> Iterator[psycopg.Connection]:
    with postgres(created(), "a", "k") as oracle:
        yield oracle.connection


def test_random_queries_have_the_answers_of_postgresql() -> None:
    report = run(20261128, tries(40))
    assert not report.differences, str(report)
    assert report.refused.total() <= report.asked // 20, str(report)


def test_a_query_that_is_wrong_is_seen_and_made_smaller(
    connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that loses rows of NULL: of what is left, all is needed to see that."""
    execute = MemorySession.execute
    monkeypatch.setattr(
        MemorySession, "execute", lambda session, text: execute(session, text.replace("IS NULL", "IS NULL AND false"))
    )
    source = "a AS x LEFT JOIN b AS y ON x.k = y.k"
    query = f"SELECT x.k AS c0, x.s AS c1 FROM {source} WHERE y.k IS NULL ORDER BY c0, c1 LIMIT 9"
    steps = (("INSERT INTO a VALUES (1, 2, 'a', 1)",), ("INSERT INTO b VALUES (2, 'b', NULL, NULL)",))
    found = difference(Case(query, ("INSERT INTO c VALUES (1, 2, 3)",), steps), connection)
    assert found is not None
    left = smaller(found, connection).case
    assert (left.before, left.steps) == ((), (("INSERT INTO a VALUES (1, 2, 'a', 1)",),))
    assert "IS NULL" in left.query
    assert "LIMIT" not in left.query
    assert len(left.query) < len(query)


def test_a_case_is_the_same_for_the_same_numbers() -> None:
    assert Case.of(random.Random("1-2")) == Case.of(random.Random("1-2"))
