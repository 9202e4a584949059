"""Flow, memo and rows store together against their reference, on random streams in random batches, with restarts."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.schema import Kind
from dovetail.enrichment.reference import ReferenceFlow, ReferenceLookup, ReferenceRows
from dovetail.joins.dataflow.ports import EXISTENCE_JOINS, Ingest, JoinKind
from dovetail.joins.reference.rows import Record, Row
from dovetail.sql.syntax.statements import Index
from tests.enrichment.flows import COLUMNS, PADDING, Host, VBelowW, flow, net, stage, v_below_w
from tests.tries import tries

KEYED = (Ingest.UPSERT, Ingest.CHANGELOG_KV)
RIGHT_KINDS = (Kind.APPEND, Kind.UPSERT, Kind.CHANGELOG_KV, Kind.CHANGELOG)
INDEXES = (Index("by_v", ("v",), ("k",)), Index("by_id", ("id", "v")))
BY = (("k",), ("k", "id"), ("id",), ("v",), ("id", "v"))
nullable_int = st.sampled_from([0, 1, 2, None])


def records(keyed: bool, append: bool) -> st.SearchStrategy[list[Record]]:
    """Few keys and values, so that rows meet, repeat and are retracted, sometimes without having been there."""
    key = st.integers(0, 1) if keyed else nullable_int
    row = st.tuples(key, st.sampled_from(["a", 'a "long" text']), nullable_int)
    delta = st.just(1) if append else st.sampled_from([1, 1, 1, -1])
    return st.lists(st.tuples(row, delta), max_size=8)


@settings(max_examples=tries(25))
@given(data=st.data())
@pytest.mark.parametrize("ingest", [Ingest.APPEND, Ingest.UPSERT, Ingest.CHANGELOG_KV, Ingest.CHANGELOG])
def test_a_flow_agrees_with_its_reference(ingest: Ingest, data: st.DataObject) -> None:
    kinds = data.draw(
        st.lists(st.sampled_from([JoinKind.INNER, JoinKind.LEFT, *EXISTENCE_JOINS]), min_size=1, max_size=2)
    )
    residual = data.draw(st.booleans())
    right_kind = data.draw(st.sampled_from(RIGHT_KINDS))
    by = [data.draw(st.sampled_from(BY)) for _ in kinds]
    stages = [
        stage(number, by[number], kind, VBelowW(f"r{number}.v") if residual else None)
        for number, kind in enumerate(kinds)
    ]
    contents = [ReferenceRows(right_kind, (0, 1)) for _ in kinds]
    joins = []
    for number, kind in enumerate(kinds):
        places = tuple(COLUMNS.index(name) for name in by[number])
        joins.append(ReferenceLookup(kind, places, contents[number], places, PADDING))
        if residual:
            joins[-1].condition = v_below_w(-1)
    reference = ReferenceFlow(ingest, joins, (0, 1) if ingest in KEYED else (0, 1, 2))
    with tempfile.TemporaryDirectory() as folder:
        host = Host(flow(ingest, stages), Path(folder), right_kind, INDEXES)
        output = host.flow.sink.columns
        current: Counter[Row] = Counter()
        for _ in range(data.draw(st.integers(2, 6))):
            for number, content in enumerate(contents):
                changes = data.draw(records(right_kind in (Kind.UPSERT, Kind.CHANGELOG_KV), right_kind is Kind.APPEND))
                host.right(f"r{number}", changes)
                content.take(changes)
            left = data.draw(records(ingest in KEYED, ingest is Ingest.APPEND))
            match data.draw(st.sampled_from(["go on", "restart", "abort", "kill"])):
                case "restart":
                    host.restart()
                case "abort":
                    host.left(left)
                    host.enricher.discard()
                case "kill":
                    host.left(left)
                    host.restart()
            dangling = reference.dangling
            step = host.left(left)
            assert net(step.messages, output) == reference.on_batch(left)
            assert step.counts["dangling"] == reference.dangling - dangling
            if ingest is not Ingest.APPEND:
                assert len(step.messages) == sum(abs(count) for count in net(step.messages, output).values())
                current.update(net(step.messages, output))
                assert min(current.values(), default=0) >= 0
            host.commit(left, step)
        host.close()


@settings(max_examples=tries(15))
@given(data=st.data())
@pytest.mark.parametrize("ingest", [Ingest.APPEND, *KEYED, Ingest.CHANGELOG])
def test_over_frozen_rows_the_cuts_do_not_matter(ingest: Ingest, data: st.DataObject) -> None:
    """Any cutting of the left input gives the same output in the end, aside from retractions without a row."""
    left = data.draw(st.lists(records(ingest in KEYED, append=True), max_size=4))
    flat = [record for batch in left for record in batch]
    if ingest is not Ingest.APPEND:
        flat += [(row, -1) for row, _ in flat[: data.draw(st.integers(0, len(flat)))]]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(flat)), max_size=4)))
    right = data.draw(records(keyed=False, append=True))
    totals = []
    for bounds in ([0, len(flat)], [0, *cuts, len(flat)]):
        with tempfile.TemporaryDirectory() as folder:
            host = Host(flow(ingest, [stage(0, ("k",), JoinKind.LEFT)]), Path(folder), Kind.APPEND)
            host.right("r0", right)
            total: Counter[Row] = Counter()
            for low, high in itertools.pairwise(bounds):
                step = host.left(flat[low:high])
                host.commit(flat[low:high], step)
                total.update(net(step.messages, host.flow.sink.columns))
            host.close()
            totals.append(Counter({row: count for row, count in total.items() if count}))
    assert totals[0] == totals[1]
