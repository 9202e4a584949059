"""Every folder of examples/ with a README: its rows give the changelog that it prints, its events what DuckDB says."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from dovetail.services.cli.main import app
from dovetail.services.session import Session
from dovetail.services.session.input_progress import await_caught_up, await_upstream
from dovetail.services.stack import Stack
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.statements import CreateStream, CreateView, Select, Statement
from tests.docs.pages import Page
from tests.docs.test_examples import USE_CASES
from tests.oracles.batch import Batch, near
from tests.spark.changelog import summed
from tests.spark.kafka import messages

FOLDERS = [file.parent for file in USE_CASES]
EVENTS = 1_000


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_its_page_shows_the_query_that_runs(folder: Path) -> None:
    page = Page(folder / "README.md")
    shown = page.blocks("sql")
    assert shown
    assert [block for block in shown if block not in (folder / "example.sql").read_text()] == []


@pytest.mark.services
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_prints_its_changelog_and_holds_the_batch_result(
    folder: Path, whole_stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = parse((folder / "example.sql").read_text())
    rules = next(statement.rules for statement in statements if isinstance(statement, CreateStream))
    with Session.open(whole_stack.connected_settings()) as session, Batch.of(rules) as batch:
        views = [statement.name for statement in statements if isinstance(statement, CreateView)]
        for statement in statements:
            if not isinstance(statement, Select):
                session.execute(statement)
                take(batch, statement)
                settle(session, views)
        assert printed(folder) == [written(session, view) for view in views]
        further = list(events(folder))
        monkeypatch.setenv("DOVETAIL_DATA_DIR", str(whole_stack.settings.data_dir))
        piped = CliRunner().invoke(app, ["sql"], input=";\n".join(further))
        assert piped.exit_code == 0, piped.stderr
        for text in further:
            batch.run(text)
        settle(session, views)
        brokers = session.context.brokers.servers
        for view in views:
            held = batch.answer(f"SELECT * FROM {view}")
            assert held
            assert near(summed(brokers, view).elements()) == near(held.elements())


def take(batch: Batch, statement: Statement) -> None:
    match statement:
        case CreateStream():
            schema = Stream.declared(statement).schema
            columns = [(column.name, column.type) for column in schema.columns]
            batch.create(statement.name, pa.schema(columns).empty_table())
        case _:
            batch.run(statement.text)


def settle(session: Session, views: list[str]) -> None:
    """Each statement has been answered before the next one: a changelog tells what came in one batch as one change."""
    for view in views:
        if session.context.catalog.find(view) is not None:
            plan = planned(session, view)
            await_upstream(session.context, plan)
            await_caught_up(session.context, plan)


def planned(session: Session, view: str) -> Plan:
    definition = session.context.catalog.get(view).materialized_view
    assert definition is not None
    return plan_query(view, definition, session.context.catalog)


def printed(folder: Path) -> list[Counter[str]]:
    """The records that the page gives for each view."""
    return [Counter(block.splitlines()) for block in Page(folder / "README.md").blocks("json")]


def written(session: Session, view: str) -> Counter[str]:
    found = messages(session.context.brokers.servers, view)
    # A view whose windows close tells its watermark in records without a value.
    return Counter(value.decode() for message in found if (value := message.value()) is not None)


def events(folder: Path) -> Iterator[str]:
    specification = importlib.util.spec_from_file_location(folder.name, folder / "events.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    yield from module.statements(EVENTS)
