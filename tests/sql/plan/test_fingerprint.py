"""The canonical form of plans: the same from release to release, and another one with whatever state depends on."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest

from dovetail.sql.plan.fingerprint import FORM_VERSION, fingerprint, readable_form
from dovetail.sql.plan.nodes import Node, Output
from dovetail.sql.planner import Plan
from tests.sql import lookup_world
from tests.sql.plan import test_explain, test_lookup_explain
from tests.sql.plan.variants import Variant, variants_of
from tests.sql.planner import Planner
from tests.sql.world import World

NOT_OF_THE_STATE = {
    "Scan.stated": "the watermark that the query goes by is there",
    "Scan.records<StreamSchema>.columns": "they are those of the stream",
    "Scan.records<StreamSchema>.included": "they are those of the stream",
    "Join.max_buffered_bytes": "a limit: what was kept under another one stays as it is",
    "Join.max_rows_per_key<int>": "a limit: that there is one counts",
    "Output.unique": "the key itself is there",
    "LookupTable.cover": "of the binder, which refuses by it",
    "LookupTable.declared[].nullable": "of the table's own rows",
    "LookupTable.declared[].default": "of the table's own rows",
    "LookupTable.declared[].record_time": "of the table's own rows",
    "LookupTable.declared[].former": "of the table's own rows",
    "LookupTable.indexes": "the one that serves is that of the join",
    "LookupTable.index": "the one that serves is that of the join",
    "LookupTable.kept": "a word of EXPLAIN",
    "Output.period_ms": "how often it leaves, not what",
    **{
        f"Output.hybrid{member}": "how much of it is in memory, not what it is"
        for member in ("", ".memory.bytes", ".memory.keys", ".joins", ".groups")
    },
    "Output.clock": "what is told of the rows, not what they are",
    "Scan.told": "the watermark that the query goes by is there",
    "Static.single": "what its SQL says",
    **{f"{kind.__name__}.place": "where it is written, for errors" for kind in (*get_args(Node), Output)},
}
STATEFUL = (
    "keyed_inner",
    "enrichment",
    "asof",
    "range_left_once",
    "window_tumble",
    "static",
    "three_way",
    "multiway",
    "delta_join",
    "subplans",
    "array_join",
    "grows_window",
    "top_n",
    "over",
    "except_all",
    "union_of_watermarks",
)
LOOKUPS = ("lookup_dictionary", "lookup_direct_index", "temporal_updating", "mixed")


@pytest.mark.parametrize("name", STATEFUL)
def test_the_form_of(name: str, golden: Callable[[str, str], None]) -> None:
    held(name, World.of(*test_explain.DDL).plan(test_explain.QUERIES[name]), golden)


@pytest.mark.parametrize("name", LOOKUPS)
def test_the_form_of_a_lookup(name: str, golden: Callable[[str, str], None]) -> None:
    held(name, Planner.of(*lookup_world.DDL).plan(test_lookup_explain.QUERIES[name]), golden)


def held(name: str, plan: Plan, golden: Callable[[str, str], None]) -> None:
    """Where a line of these files changes, checkpoints of the release before no longer fit."""
    lines = [f"{fingerprint(one.output)}\n{readable_form(one.output)}\n" for one in plan.fragments]
    golden(f"fingerprint/{name}.txt", "\n".join(lines))


def test_it_begins_with_the_version_of_the_form() -> None:
    made = World.of("CREATE STREAM s (n int)").plan("SELECT n FROM s").fragments[0].output
    assert fingerprint(made).startswith(f"{FORM_VERSION}:")


@pytest.mark.parametrize(
    "variant",
    [pytest.param(one, id=one.path) for kind in (*get_args(Node), Output) for one in variants_of(kind)],
)
def test_every_part_of_every_node_counts(variant: Variant) -> None:
    path, one, other = variant
    assert one != other
    left_out = any(path == name or path.startswith((f"{name}.", f"{name}[", f"{name}<")) for name in NOT_OF_THE_STATE)
    assert (one.canonical == other.canonical) == left_out


def test_a_column_that_the_query_does_not_read_does_not_count() -> None:
    narrow = Planner.of("CREATE STREAM s (n int)").plan("SELECT n FROM s")
    wide = Planner.of("CREATE STREAM s (n int, m string DEFAULT 'x')").plan("SELECT n FROM s")
    assert narrow.fingerprint == wide.fingerprint
