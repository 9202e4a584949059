"""docs/state.md: its statements run on a real stack, which shows what the page shows."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator

import pytest

from services.cli.show import Screen
from services.session import Rows, Session
from services.session.input_progress import await_caught_up
from services.session.result import Text
from services.stack.temporary import temporary_stack
from sql.planner import plan_query
from sql.syntax.parse import parse_one
from sql.syntax.statements import CreateView
from tests.docs.pages import Page
from tests.services.conftest import leave_nothing

PAGE = Page.of("docs/state.md")
[SETUP] = PAGE.blocks("sql")[:1]
_VIEW = SETUP[SETUP.index("CREATE MATERIALIZED") :].strip().rstrip(";")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """After the statements of the page, when the view has read all."""
    folder = tmp_path_factory.mktemp("state")
    with (
        temporary_stack(folder, ("kafka", "spark"), start_timeout_s=240.0, stop_timeout_s=60.0) as stack,
        Session.open(stack.connected_settings()) as opened,
    ):
        opened.run(SETUP)
        view = parse_one(_VIEW)
        assert isinstance(view, CreateView)
        await_caught_up(opened.context, plan_query("priced", view, opened.context.catalog))
        yield opened
        leave_nothing(opened)


def shown(session: Session, statement: str) -> str:
    [result] = session.run(statement)
    if isinstance(result, Text):
        return result.text + "\n"
    assert isinstance(result, Rows)
    output = io.StringIO()
    Screen(output=output).plain(result.table)
    return output.getvalue()


def without_times(text: str) -> str:
    return re.sub(r"time [\d.]+ m?s", "time ..", text)


@pytest.mark.services
@pytest.mark.parametrize("statement", ["SHOW STATE OF priced", "EXPLAIN ANALYZE priced"])
def test_the_page_shows_what_a_stack_shows(session: Session, statement: str) -> None:
    assert f"    {statement};\n\n```text\n{without_times(shown(session, statement))}```" in without_times(PAGE.text)


@pytest.mark.services
def test_the_log_has_the_warning_of_the_page(session: Session) -> None:
    lines = (session.context.settings.query_logs / "priced.log").read_text().splitlines()
    [warning] = [line for line in lines if "skewed key" in line]
    [told] = [code for code in PAGE.code if code.startswith("skewed key")]

    assert f"{told}, and each row of the other side" in warning


@pytest.mark.services
def test_every_node_was_at_work_for_some_time(session: Session) -> None:
    [priced] = json.loads(shown(session, "EXPLAIN ANALYZE priced FORMAT json")).values()
    [join] = priced["inputs"]

    assert [scan["busy_ms"] > 0 for scan in join["inputs"]] == [True, True]
    assert 0 < join["busy_ms"] < 60_000
    assert (join["rows_in"], join["batches"]) == ([5, 3], 1)
