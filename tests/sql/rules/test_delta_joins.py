"""Which chains of joins become delta joins, by what is known of their inputs or by the setting, and by which paths."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.plan.nodes import DeltaJoin
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.state.delta_choice import DeltaSetting, deltas_text, read_delta_setting
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import Select
from tests.sql.planner import Planner

DDL = (
    "CREATE TABLE posts (id INT, author INT, tag INT) APPEND ONLY",
    "CREATE TABLE follows (author INT, reader INT) APPEND ONLY",
    "CREATE TABLE visits (reader INT, page INT) APPEND ONLY",
    "CREATE TABLE pages (id INT PRIMARY KEY, site INT)",
    "CREATE TABLE p (k INT, m INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
)
RECORDS = {"posts": 10_000, "follows": 300_000, "visits": 100_000, "pages": 1_000, "p": 10_000}
FEED = "FROM posts AS p JOIN follows AS f ON p.author = f.author JOIN visits AS v ON f.reader = v.reader"


def planned(query: str, records: Mapping[str, int | None] | None = None) -> Plan:
    statement = parse_one(query)
    assert isinstance(statement, Select)
    sizes = None if records is None else records.get
    return plan_query("q", statement, Planner.of(*DDL).catalog, sizes=sizes)


def only(query: str) -> DeltaJoin:
    [fragment] = planned(f"SELECT 1 AS one {query}").fragments
    [found] = [node for node in walk(fragment.output) if isinstance(node, DeltaJoin)]
    return found


def chosen(query: str, records: Mapping[str, int | None] = RECORDS) -> str:
    return deltas_text(planned(f"SELECT 1 AS one {query}", records).deltas)


MANY = "FROM follows AS a JOIN follows AS b ON a.reader = b.author JOIN follows AS c ON b.reader = c.author"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        # Ten rows of each value on both sides: what is between the joins is ten times the larger of two.
        (MANY, "(a b c)"),
        (f"{MANY} JOIN pages AS p ON c.reader = p.id", "(p a b c)"),
        (f"SELECT 1 AS one {MANY}", ""),
        # Every row meets one: what joins make is no more than their inputs, and copies are.
        ("FROM visits AS v JOIN pages AS p ON v.page = p.id JOIN pages AS s ON p.site = s.id", ""),
        # One key: an n-way join keeps nothing between them.
        ("FROM follows AS a JOIN follows AS b ON a.author = b.author JOIN follows AS c ON b.author = c.author", ""),
        (f"{MANY} SETTINGS delta_join = 0", ""),
        (f"{MANY} SETTINGS join_order = '((a b) c)'", ""),
        (f"{MANY} SETTINGS max_fan_out = 1000", "(a b c)"),
    ],
)  # fmt: skip
def test_a_chain_that_keeps_fewer_rows_so_is_one(query: str, found: str) -> None:
    if query.startswith("SELECT"):
        assert planned(query).deltas == ()
    else:
        assert chosen(query) == found


def test_inputs_of_which_little_is_known_stay_as_they_are() -> None:
    assert chosen(MANY, {"follows": 0}) == ""
    assert chosen(MANY, {"follows": None}) == ""
    assert chosen(MANY, {"follows": 90}) == ""


def test_what_was_chosen_can_be_set_and_is_the_same_plan() -> None:
    """Whatever has become of the inputs since; so a view goes on under it."""
    query = f"SELECT p.id, v.page {FEED}"
    first = planned(query, {"posts": 300_000, "follows": 500_000, "visits": 400_000})
    text = deltas_text(first.deltas)
    assert text == "(p v f)"
    again = planned(f"{query} SETTINGS delta_join = '{text}'")
    assert again.fingerprint == first.fingerprint != planned(query).fingerprint
    assert again.schema == first.schema
    assert f"Delta join {text}  as SETTINGS delta_join has it" in again.explain()
    assert first.explain().startswith(
        "Delta join (p v f)  about 2,000,000 rows kept, by joins of two 4,200,000  estimated rows: p 300,000, "
        "f 500,000, v 400,000\n"
    )


def test_the_fewest_copies_are_kept_and_the_largest_input_the_least() -> None:
    paths = {
        text: [
            [(copy.input, copy.keys) for copy in step.copies]
            for step in only(f"{FEED} SETTINGS delta_join = '{text}'").steps
        ]
        for text in ("(p f v)", "(v f p)")
    }
    first = [(0, ("p.author",)), (1, ("f.author",)), (1, ("f.reader",))]
    last = [(1, ("f.author",)), (1, ("f.reader",)), (2, ("v.reader",))]
    assert paths["(p f v)"] == [first, [(0, ("p.author",)), (2, ("v.reader",))]]
    assert paths["(v f p)"] == [last, [(0, ("p.author",)), (2, ("v.reader",))]]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (("FROM p AS a JOIN p AS b ON a.k = b.k AND a.at BETWEEN b.at AND b.at + INTERVAL '5 seconds' "
         "JOIN pages AS s ON b.m = s.id"), "goes by time"),
        ("FROM posts AS p JOIN follows AS f ON p.author = f.author JOIN visits AS v ON f.reader + p.id = v.reader",
         "computed of several"),
        ("FROM follows AS a" + "".join(f" JOIN follows AS a{n} ON a{n}.author = a.reader" for n in range(6)),
         "more than 6 inputs"),
    ],
)  # fmt: skip
def test_a_chain_that_cannot_be_one_is_refused_with_the_reason(query: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        planned(f"SELECT 1 AS one {query} SETTINGS delta_join = 1")
    assert planned(f"SELECT 1 AS one {query}", RECORDS).deltas == ()


def test_final_rows_and_budgets_are_not_for_it() -> None:
    budget = "max_fan_out = 10, max_fan_out_action = 'dead_letter'"
    with pytest.raises(Unsupported, match="a budget of rows"):
        planned(f"SELECT 1 AS one {FEED} SETTINGS delta_join = '(p f v)', {budget}")


def test_the_setting_is_read() -> None:
    assert read_delta_setting("") == DeltaSetting()
    assert read_delta_setting("0") == DeltaSetting(forbidden=True)
    assert read_delta_setting("True") == DeltaSetting(every=True)
    assert read_delta_setting('(a "b c"), ( d e f )').chains == (("a", "b c"), ("d", "e", "f"))
    for text in ("(a b", "a b c", "()", "((a b) c)", "(a b) c"):
        with pytest.raises(SqlError, match="delta_join cannot be"):
            read_delta_setting(text)
