"""Sessions over a stack with both runners."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from dovetail.services.session import Rows, Session
from dovetail.services.session.input_progress import await_caught_up
from dovetail.services.stack import Stack, temporary_stack
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.statements import CreateView
from tests.services.conftest import leave_nothing

COMPONENTS = ("kafka", "redis", "registry", "spark", "worker")
_PATIENCE_S = 60.0
_PATIENCE: dict[str, object] = {"start_timeout_s": 240.0, "stop_timeout_s": 60.0, "schema_registry_timeout_s": 2.0}


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with both runners, one for all files of this folder: Spark takes seconds to start."""
    with temporary_stack(tmp_path_factory.mktemp("sessions"), COMPONENTS, **_PATIENCE) as stack:
        yield stack


@pytest.fixture
def session_of_runners(running: Stack) -> Iterator[Session]:
    """What the test creates is dropped after it."""
    with Session.open(running.settings) as opened:
        yield opened
        leave_nothing(opened)


def settle(session: Session, view: str) -> None:
    """Wait until the view has answered all its input."""
    definition = session.context.catalog.get(view).definition
    assert isinstance(definition, CreateView)
    await_caught_up(session.context, plan_query(view, definition, session.context.catalog))


def asked(session: Session, statement: str) -> list[tuple[object, ...]]:
    """The rows of a bounded query or a listing."""
    [result] = session.run(statement)
    assert isinstance(result, Rows)
    return [tuple(row.values()) for row in result.table.to_pylist()]


def until(holds: Callable[[], bool]) -> None:
    """Wait for what nobody tells."""
    end_s = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.1)
