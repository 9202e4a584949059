"""The processor time of reading a statement, or of refusing it, grows with its length and no faster."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from dovetail.changelog.errors import Interrupted, SqlError, SyntaxFault
from dovetail.changelog.work.interruption import Interruption
from dovetail.sql.syntax.faults import place
from dovetail.sql.syntax.grammar.hints.trial import tried
from dovetail.sql.syntax.parse import parse
from tests.processor_time import least_spent
from tests.sql.planner import Planner

WINDOW = "sum(v) OVER (PARTITION BY k ORDER BY v) AS a"
REPEATED = {
    "WITHIN": ("SELECT 1 AS a FROM s ", "WITHIN ", ""),
    "PARTITION BY": ("SELECT a FROM s ", "PARTITION BY ", ""),
    "PARTITION BY without FROM": ("SELECT ", "PARTITION BY ", ""),
    "SHUFFLE BY": ("SELECT ", "SHUFFLE BY ", ""),
    "EMIT PERIODIC": ("SELECT 1 ", "EMIT PERIODIC ", ""),
    "EMIT LAST": ("SELECT 1 ", "EMIT LAST 1h ", ""),
    "OVER": ("SELECT ", f"{WINDOW}, ", f"{WINDOW} FROM s"),
    "script": ("", "SELECT 1;", ""),
    "commas": ("SELECT ", "a,", ""),
    "brackets": ("SELECT ", "(", ""),
    "CASE": ("SELECT ", "CASE WHEN ", ""),
    "JOIN": ("SELECT a.k FROM a ", "JOIN b ON a.k = b.k ", ""),
    "UNION": ("SELECT 1 ", "UNION ALL SELECT 1 ", ""),
    "OR": ("SELECT a FROM s WHERE a = 0 ", "OR a = 1 ", ""),
    "sum": ("SELECT 1", "+1", ""),
    "concatenation": ("SELECT x", "||x", " FROM s"),
    "TUMBLE as a key": ("SELECT 1 FROM s GROUP BY ", "TUMBLE(t, INTERVAL '1' HOUR), ", ""),
    "members": ("SELECT ", "a->", "b FROM s PARTITION BY k"),
}
SHORT = 8_000


def read(text: str) -> None:
    with suppress(SqlError):
        parse(text)


@pytest.mark.parametrize("name", REPEATED)
def test_four_times_the_text_takes_no_more_than_eight_times_as_long(name: str) -> None:
    before, repeated, after = REPEATED[name]
    short, long = (before + repeated * (size // len(repeated)) + after for size in (SHORT, 4 * SHORT))
    most_s = 8 * max(least_spent(partial(read, short)), 0.05)
    assert least_spent(partial(read, long), most_s) < most_s


def test_looking_for_what_only_others_have_ends_when_it_is_told_to() -> None:
    interruption = Interruption()
    interruption.ask()
    with interruption.of_this_thread(), pytest.raises(Interrupted):
        parse("SELECT 1 FROM s WITHIN")


@pytest.mark.parametrize(("repeats", "most"), [(150, 100), (5_000, 0)])
def test_a_slip_is_mended_in_few_tries_and_short_texts_alone(repeats: int, most: int) -> None:
    tries = []

    def read(text: str) -> None:
        tries.append(text)
        raise SyntaxFault("unreadable")

    text = "SELECT 1 FROM " + "(a, " * repeats
    tried(text, SyntaxFault("unexpected word", where=place(text, 10)), read)
    assert len(tries) == most


@pytest.mark.parametrize("branch", ["CASE WHEN a = 1 THEN 2", "CASE a WHEN 1 THEN 2"])
def test_planning_four_times_the_branches_takes_no_more_than_eight_times_as_long(branch: str) -> None:
    planner = Planner.of("CREATE STREAM s (a int)")
    more = branch[branch.index(" WHEN") :]

    def planned_s(branches: int, enough_s: float = 0.0) -> float:
        return least_spent(lambda: planner.plan(f"SELECT {branch}{more * branches} END AS z FROM s"), enough_s)

    most_s = 8 * max(planned_s(100), 0.05)
    assert planned_s(400, most_s) < most_s


@pytest.mark.parametrize(
    ("item", "few"),
    [
        ("v + {0} AS c{0}", 100),
        ("sum(v + {0}) AS c{0}", 50),
        ("sum(v + {0}) OVER (PARTITION BY v + {0} ORDER BY k) AS c{0}", 15),
        ("'password' || v AS c{0}", 50),
    ],
)
def test_planning_four_times_the_select_list_takes_no_more_than_eight_times_as_long(item: str, few: int) -> None:
    planner = Planner.of("CREATE TABLE s (k int PRIMARY KEY, v int, c0 int)")

    def planned_s(items: int, enough_s: float = 0.0) -> float:
        listed = ", ".join(item.format(number, number + 1) for number in range(items))
        return least_spent(lambda: planner.plan(f"SELECT {listed} FROM s"), enough_s)

    most_s = 8 * max(planned_s(few), 0.05)
    assert planned_s(4 * few, most_s) < most_s
