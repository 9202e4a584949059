"""docs/state.md: its statements run on a real stack, which shows what the page shows."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator

import pytest

from dovetail.services.cli.show import Screen
from dovetail.services.session import Rows, Session
from dovetail.services.session.input_progress import await_caught_up
from dovetail.services.session.result import Text
from dovetail.services.session.verification.verify import verify
from dovetail.services.stack import Stack
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.docs.pages import Page
from tests.services.conftest import leave_nothing

PAGE = Page.of("docs/state.md")
SETUP, SEVERAL, DASHBOARDS, BUDGET = PAGE.blocks("sql")
_VIEW = SETUP[SETUP.index("CREATE MATERIALIZED") :].strip().rstrip(";")


@pytest.fixture(scope="module")
def session(shared_stack: Stack) -> Iterator[Session]:
    """After the statements of the page, when the view has read all."""
    with Session.open(shared_stack.connected_settings()) as opened:
        opened.run(SETUP)
        catch_up(opened, _VIEW)
        yield opened
        leave_nothing(opened)


def catch_up(session: Session, created: str) -> None:
    """Wait until the view that the statement has created has read all."""
    view = parse_one(created)
    assert isinstance(view, CreateView)
    await_caught_up(session.context, plan_query(view.name, view, session.context.catalog))


def rows(session: Session, statement: str) -> list[tuple[object, ...]]:
    [result] = session.run(statement)
    assert isinstance(result, Rows)
    return [tuple(row.values()) for row in result.table.to_pylist()]


def shown(session: Session, statement: str) -> str:
    [result] = session.run(statement)
    if isinstance(result, Text):
        return result.text + "\n"
    assert isinstance(result, Rows)
    output = io.StringIO()
    Screen(output=output).plain(result.table)
    return output.getvalue()


def without_bytes(table: str) -> list[list[str]]:
    """The cells of a table of SHOW STATE: of equal rows, those that came in several batches take some bytes more."""
    titles, rule, *lines = table.splitlines()
    spans = [found.span() for found in re.finditer("-+", rule)]
    kept = [(start, end) for start, end in spans if titles[start:end].strip() != "bytes"]
    assert len(kept) == len(spans) - 1
    return [[line[start:end].strip() for start, end in kept] for line in (titles, *lines)]


def without_times(text: str) -> str:
    return re.sub(r"time [\d.]+ m?s", "time ..", text)


@pytest.mark.services
@pytest.mark.parametrize("statement", ["SHOW STATE OF priced", "EXPLAIN ANALYZE priced"])
def test_the_page_shows_what_a_stack_shows(session: Session, statement: str) -> None:
    assert f"    {statement};\n\n```text\n{without_times(shown(session, statement))}```" in without_times(PAGE.text)


@pytest.mark.services
def test_the_page_shows_what_views_hold_apart_and_over_a_view(session: Session) -> None:
    held: dict[str, int] = {}
    made = [one.strip() for one in (SEVERAL + DASHBOARDS).split(";") if one.strip()]
    for statement in made:
        session.run(statement)
    for created in (one for one in made if "MATERIALIZED" in one):
        catch_up(session, created)
        name = created.split()[3]
        [result] = session.run(f"SHOW STATE OF {name}")
        assert isinstance(result, Rows)
        held[name] = sum(result.table["rows"].to_pylist())
    for name in ("by_name", "purchases_customers", "name_of_them"):
        statement = f"SHOW STATE OF {name}"
        [on_page] = re.findall(rf"^    {statement};\n\n```text\n(.*?)```", PAGE.text, re.MULTILINE | re.DOTALL)
        assert without_bytes(shown(session, statement)) == without_bytes(on_page)
    figures = [held[name] for name in ("purchases_customers", "city_of_them", "name_of_them", "mean_of_them")]
    for counts in ([held[name] for name in ("by_city", "by_name", "mean_of_each")], figures):
        assert f"| {' + '.join(map(str, counts))} = {sum(counts)} |" in PAGE.text


@pytest.mark.services
def test_the_log_has_the_warning_of_the_page(session: Session) -> None:
    lines = (session.context.settings.query_logs / "priced.log").read_text().splitlines()
    [warning] = [line for line in lines if "skewed key" in line]
    [expected] = [code for code in PAGE.code if code.startswith("skewed key")]

    assert f"{expected}, and each row of the other side" in warning


@pytest.mark.services
def test_records_beyond_the_budget_are_dead_letters_that_can_be_put_back(session: Session) -> None:
    """And the view is that of its inputs without them."""
    *made, dead_letters = (one.strip() for one in BUDGET.split(";") if one.strip())
    for statement in made:
        session.run(statement)
    [view] = [statement for statement in made if "MATERIALIZED" in statement]
    catch_up(session, view)

    assert f"```text\n{shown(session, dead_letters)}```" in PAGE.text
    assert rows(session, "SELECT id, shelf FROM table(stocked) ORDER BY id, shelf") == [
        *[(number, shelf) for number in (1, 2) for shelf in (1, 2)],
        (4, 4),
    ]
    verified = verify(session.context, "stocked")
    assert (verified.holds, verified.dead_letters, verified.doubts) == (True, 3, ())
    log = (session.context.settings.query_logs / "stocked.log").read_text()
    assert "further records of such a key go to the dead letters" in log

    session.run("INSERT INTO stock (item, shelf, _tp_delta) VALUES ('pen', 1, -1), ('ink', 5, 1)")
    catch_up(session, view)
    assert rows(session, "REPLAY stocked.dead_letter LIKE 'max_fan_out%'") == [
        ("sold", "put back", 1),
        ("stock", "put back", 2),
    ]
    catch_up(session, view)
    # The shelf 3 came and went; a third order of pens still finds no place.
    assert rows(session, "SELECT id, shelf FROM table(stocked) ORDER BY id, shelf") == [(1, 2), (2, 2), (4, 4), (4, 5)]
    assert [count for _, _, count in rows(session, "REPLAY stocked.dead_letter DRY RUN")] == [1, 1, 2]


@pytest.mark.services
def test_every_node_was_at_work_for_some_time(session: Session) -> None:
    [priced] = json.loads(shown(session, "EXPLAIN ANALYZE priced FORMAT json")).values()
    [join] = priced["inputs"]

    assert [scan["busy_ms"] > 0 for scan in join["inputs"]] == [True, True]
    assert 0 < join["busy_ms"] < 60_000
    assert (join["rows_in"], join["batches"]) == ([5, 3], 1)
