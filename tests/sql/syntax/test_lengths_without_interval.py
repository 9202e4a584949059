"""A number and a unit without INTERVAL: the unit is no name of the sum, and the fix that is told can be planned."""

from __future__ import annotations

import re

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.intervals import UNIT_WORDS
from tests.sql.planner import Planner

PLACES = (
    "SELECT at + {} FROM {}",
    "SELECT v, at - {} FROM {}",
    "SELECT (at + {}) AS x FROM {}",
    "SELECT v FROM {1} WHERE at > (at - {0})",
    "SELECT v FROM {1} WHERE at > at - {0}",
    "SELECT v FROM {1} WHERE at BETWEEN at - {0} AND at",
    "SELECT count(*) AS n FROM {1} GROUP BY at + {0}",
)


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner.of("CREATE STREAM s (v int, at datetime64(3))", "CREATE TABLE t (v INT, at TIMESTAMP)")


def refused(planner: Planner, query: str) -> str:
    with pytest.raises(SqlError) as fault:
        planner.plan(query)
    return fault.value.fix


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("relation", ["s", "table(s)", "t"])
@pytest.mark.parametrize("unit", sorted(UNIT_WORDS))
def test_a_number_and_a_unit_are_an_interval(planner: Planner, place: str, relation: str, unit: str) -> None:
    fix = refused(planner, place.format(f"1 {unit.lower()}", relation))
    assert fix.startswith("INTERVAL '1'")
    if relation != "t" or not unit.startswith("NANO"):
        planner.plan(place.format(f"INTERVAL '1' {unit}", relation))


def test_a_text_and_a_column_are_no_length_either(planner: Planner) -> None:
    assert refused(planner, "SELECT at + '1' MINUTE FROM s").startswith("INTERVAL '1' MINUTE")
    fix = refused(planner, "SELECT at + v MINUTE FROM s")
    ours, theirs = (found for found in re.split(", over tables |; or, as a name, ", fix)[:2])
    planner.plan(f"SELECT at + {ours} FROM s")
    planner.plan(f"SELECT at + {theirs} FROM t")


@pytest.mark.parametrize(
    "query", ["SELECT v minute FROM s", "SELECT v + 1 AS minute FROM s", 'SELECT v + 1 "day" FROM t']
)
def test_a_name_that_is_meant_as_one_stays_one(planner: Planner, query: str) -> None:
    assert set(planner.plan(query).columns) <= {"minute", "day"}


@pytest.mark.parametrize("relation", ["table(s)", "t"])
def test_between_has_two_bounds_and_and(planner: Planner, relation: str) -> None:
    assert refused(planner, f"SELECT v FROM {relation} WHERE v BETWEEN 1 5") == "put AND before 5"
    planner.plan(f"SELECT v FROM {relation} WHERE v BETWEEN 1 AND 5")
