"""How much of its input a view has read, from what its runner told and where the topics end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.broker.address import BrokerAddress
from dovetail.services.session import Rows, Session
from dovetail.services.session.live.backlog import Backlog, duration_text
from dovetail.services.session.live.view_backlogs import NO_BACKLOG
from dovetail.services.stack.temporary import temporary_settings
from dovetail.sql.catalog import Actual, Catalog, Query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView

OFFSETS = st.dictionaries(st.integers(0, 3), st.integers(0, 2**40), max_size=4)
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT a FROM s"


@given(OFFSETS, OFFSETS, OFFSETS, st.integers(0, 2**40))
def test_what_is_read_and_what_is_left_is_all(
    starts: dict[int, int], reached: dict[int, int], ends: dict[int, int], more: int
) -> None:
    """Also of a topic that was made anew, whose offsets lie below those that were reached."""
    one = Backlog.of_topic(starts, reached, ends)
    assert 0 <= one.read <= one.total
    assert one.read + one.left == one.total
    assert (one.percent == 100) == (one.left == 0)
    further = Backlog.of_topic(starts, {partition: offset + more for partition, offset in reached.items()}, ends)
    assert further.read >= one.read
    assert Backlog.of_topic(starts, ends, ends).left == 0


def query_at(name: str, starts: dict[str, dict[str, int]], offsets: dict[str, dict[str, int]]) -> Query:
    return Query(name, "", "", "", name, view="v", progress={"starts": starts, "offsets": offsets})


def test_a_view_is_behind_by_what_all_its_fragments_have_left() -> None:
    first = query_at("v_1", {"s": {"0": 5, "1": 0}}, {"s": {"0": 15}})
    last = query_at("v", {"v_1": {"0": 0}}, {"v_1": {"0": 3}})
    assert Backlog.of([first, last], {"s": {0: 25, 1: 10}, "v_1": {0: 4}}) == Backlog(13, 34)
    assert Backlog.of([first, last], {"s": {0: 25, 1: 10}}) is None
    assert Backlog.of([query_at("v_1", {}, {}), last], {"s": {0: 25}, "v_1": {0: 4}}) is None


def test_time_that_is_left() -> None:
    assert Backlog(10, 40).seconds_left(2.0) == 6.0
    assert Backlog(0, 40).seconds_left(2.0) is None
    assert Backlog(10, 40).seconds_left(0.0) is None
    assert [duration_text(seconds) for seconds in (0.1, 60, 61, 3_601, 100_000)] == [
        "1 s",
        "60 s",
        "2 min",
        "2 h",
        "2 d",
    ]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session whose broker is nowhere, with a view that is running."""
    settings = temporary_settings(tmp_path).model_copy(update={"broker_timeout_s": 0.5})
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    stream, view = parse_one("CREATE STREAM s (a int)"), parse_one(VIEW)
    assert isinstance(stream, CreateStream)
    assert isinstance(view, CreateView)
    catalog.create(stream, now_ms=0)
    catalog.create(view, now_ms=0, query=Query("v", VIEW, "", "", "v", view="v"))
    return Session(settings, catalog, BrokerAddress("127.0.0.1:1"))


def listed(session: Session) -> tuple[dict[str, Any], str]:
    [result] = session.run("SHOW VIEWS")
    assert isinstance(result, Rows)
    [row] = result.table.to_pylist()
    return {name: row[name] for name in NO_BACKLOG}, result.note


def test_a_view_that_has_not_begun_asks_no_broker(session: Session) -> None:
    assert listed(session) == (NO_BACKLOG, "")


def test_a_broker_that_is_silent_is_no_backlog_of_nothing(session: Session) -> None:
    [query] = session.context.catalog.queries()
    progress = {"starts": {"s": {"0": 0}}, "offsets": {}}
    session.context.catalog.report(query.id, now_ms=0, actual=Actual.RUNNING, progress=progress)
    assert listed(session) == (NO_BACKLOG, "how far views are behind is not known: the broker does not answer")
