"""How many rows the queries of TPC-H hold, and how many if each operator has its input for itself: docs/state.md."""

from __future__ import annotations

import pytest

from dovetail.joins.host.in_memory import LocalQuery
from tests.conformance.memory import MemoryHost
from tests.conformance.sql_engine import SqlEngine
from tests.tpch.contents import SCHEMA, Contents, query
from tests.tpch.test_queries import FIRST, send

APART = "SETTINGS share_state = 0"
HELD = {
    "q05": (491, 491),
    "q09": (1_275, 1_275),
    "q11": (392, 735),
    "q15": (120, 188),
    "q17": (635, 924),
    "q21": (1_231, 1_563),
}


def rows_held(name: str, settings: str = "") -> int:
    """After so many changes as the test of the queries begins with."""
    engine = SqlEngine(MemoryHost())
    for statement in SCHEMA:
        engine.create(statement)
    engine.create(f"CREATE MATERIALIZED VIEW {name} AS {query(name).rstrip(';')} {settings}")
    contents = Contents.of(FIRST + int(name[1:]))
    send(engine, [*contents.fixed(), *contents.changes(1400, deletes=0.05)])
    running = engine.host.running[name].query  # type: ignore[attr-defined]
    assert isinstance(running, LocalQuery)
    return sum(held.rows for buckets in running.activity.held.values() for held in buckets.values())


@pytest.mark.parametrize("name", HELD)
def test_what_reads_a_stream_several_times_holds_less(name: str) -> None:
    assert (rows_held(name), rows_held(name, APART)) == HELD[name]
