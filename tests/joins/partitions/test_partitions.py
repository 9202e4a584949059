"""Top n and window functions against their references: random rows cut into random batches, restarts between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA, Changes
from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.partitions import top_n
from dovetail.joins.partitions.ordering import Rank, SortKey, in_order
from dovetail.joins.partitions.over import OverSpec
from dovetail.joins.partitions.top_n import TopNSpec
from dovetail.joins.reference.groups.partitions import ReferenceOver, ReferenceTopN
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.reference.side import ReferenceSide
from dovetail.joins.state.store import RunStore
from dovetail.sql.expressions.evaluate import run
from tests.joins import harness
from tests.joins.harness import INPUTS, KEYED, poor_hashes, table
from tests.joins.hosted import Hosted
from tests.joins.partitions.functions import PlacesAndSums
from tests.nasty import canonical
from tests.tries import tries

ROWS = pa.schema([("k", pa.int64()), ("id", pa.string()), ("v", pa.int64()), ("d", pa.float64())])
TERMS = st.tuples(st.sampled_from([1, 2, 3]), st.booleans(), st.booleans())


def records(ingest: Ingest) -> st.SearchStrategy[list[Record]]:
    """Few values, so that rows tie; the ends of their types."""
    return harness.records(
        ingest,
        st.sampled_from(["", "a", "é", "a longer text than a word"]),
        st.sampled_from([None, 0, 1, 2, -(2**63), 2**63 - 1]),
        st.sampled_from([None, -0.0, 0.0, 1.5, -1e300, float("inf"), float("nan")]),
    )


def port(keys: tuple[str, ...], ingest: Ingest) -> Port:
    return Port(ROWS, keys, ingest, ("k", "id") if ingest in KEYED else ())


def side(keys: tuple[str, ...], ingest: Ingest) -> ReferenceSide:
    return ReferenceSide(ingest, tuple(ROWS.names.index(key) for key in keys), (0, 1) if ingest in KEYED else ())


Reference = ReferenceTopN | ReferenceOver


def agree(spec: OperatorSpec, reference: Reference, steps: Iterable[tuple[list[Record], bool]]) -> None:
    """Each batch gives what it gives in the reference, and no row stands fewer than zero times."""
    tested, content = Hosted(spec), Counter[Row]()
    for batch, restart in steps:
        changes = tested.on_batch(batch, [])
        assert changes == difference_of(reference, batch)
        content.update(changes)
        assert min(content.values(), default=0) >= 0
        if restart:
            tested.restart()


def difference_of(reference: Reference, batch: list[Record]) -> Counter[Row]:
    """With values as ``net`` has them."""
    return Counter({tuple(map(canonical, row)): count for row, count in reference.on_batch(batch).items()})


@pytest.mark.parametrize("ingest", INPUTS)
@settings(max_examples=tries(20))
@given(
    keys=st.sampled_from([("k",), ("k", "id"), ()]),
    order=st.lists(TERMS, max_size=2, unique_by=lambda term: term[0]),
    rank=st.sampled_from(Rank),
    bounds=st.sampled_from([(1, 1), (1, 2), (2, 3), (1, 0), (3, 9)]),
    numbered=st.booleans(),
    spare=st.sampled_from([1, 64]),
    poor=st.booleans(),
    data=st.data(),
)
def test_top_n(
    ingest: Ingest,
    keys: tuple[str, ...],
    order: list[tuple[int, bool, bool]],
    rank: Rank,
    bounds: tuple[int, int],
    numbered: bool,
    spare: int,
    poor: bool,
    data: st.DataObject,
) -> None:
    first, last = bounds
    terms = tuple(SortKey(ROWS.names[position], descends, nulls) for position, descends, nulls in order)
    number = "n" if numbered else ""
    spec = TopNSpec(port(keys, ingest), terms, rank, first, last, number, insertions=ingest is Ingest.APPEND)
    reference = ReferenceTopN(side(keys, ingest), order, rank=rank, first=first, last=last, numbered=numbered)
    steps = data.draw(st.lists(st.tuples(records(ingest), st.booleans()), max_size=9))
    with pytest.MonkeyPatch.context() as patch, poor_hashes(poor):
        patch.setattr(top_n, "_SPARE", spare)
        agree(spec, reference, steps)


@pytest.mark.parametrize("ingest", INPUTS)
@settings(max_examples=tries(20))
@given(keys=st.sampled_from([("k",), ("k", "id"), ()]), poor=st.booleans(), data=st.data())
def test_window_functions(ingest: Ingest, keys: tuple[str, ...], poor: bool, data: st.DataObject) -> None:
    spec = OverSpec(port(keys, ingest), PlacesAndSums(("v", "id")))
    reference = ReferenceOver(side(keys, ingest), [(2, False, False), (1, False, False)], column=2)
    small = harness.records(ingest, st.sampled_from("ab"), st.none() | st.integers(0, 3), st.none() | st.just(0.5))
    with poor_hashes(poor):
        agree(spec, reference, data.draw(st.lists(st.tuples(small, st.booleans()), max_size=9)))


def test_of_insertions_only_the_first_rows_are_kept() -> None:
    store, port_of_rows = RunStore(), Port(ROWS, ("k",), Ingest.APPEND)
    operator = TopNSpec(port_of_rows, (SortKey("v"),), Rank.ROW_NUMBER, 1, 3, insertions=True).open(store, "0")
    for batch in range(20):
        rows = table(ROWS, [(k, "a", (batch * 7 + k) % 20, 0.0) for k in range(5)])
        operator.on_batch([Changes.of(rows).table])
    runs = [Changes(run.table.select([*ROWS.names, DELTA])) for run in store.runs["0.front"]]
    held = Changes.concat(runs).consolidated()
    assert int(held.deltas.sum()) == 5 * 3
    assert not store.runs.get("0.rest")


def test_a_batch_behind_the_front_reads_none_of_the_rest() -> None:
    """The front of a partition of ten thousand rows is short, whatever comes and goes behind it."""
    store = RunStore()
    spec = TopNSpec(Port(ROWS, (), Ingest.CHANGES), (SortKey("v"),), Rank.ROW_NUMBER, 1, 3)
    operator = spec.open(store, "0")
    operator.on_batch([Changes.of(table(ROWS, [(0, "a", v, 0.0) for v in range(10_000)])).table])
    front = operator._front.probe(pa.table({"one": [0]})).summed()  # noqa: SLF001
    assert len(front.probe) == 3 + 64
    gone = Changes.of(table(ROWS, [(0, "a", v, 0.0) for v in range(9_000, 10_000)]), -1)
    assert len(operator.on_batch([gone.table])) == 0
    assert operator._front.probe(pa.table({"one": [0]})).summed().rows.equals(front.rows)  # noqa: SLF001
    taken = Changes.of(table(ROWS, [(0, "a", v, 0.0) for v in range(200)]), -1)
    changes = operator.on_batch([taken.table])
    assert sorted(changes.retractions.rows.column("v").to_pylist()) == [0, 1, 2]
    assert sorted(changes.insertions.rows.column("v").to_pylist()) == [200, 201, 202]


@example(values=[float("nan"), None, 1.0])
@settings(max_examples=tries(25))
@given(values=st.lists(st.none() | st.floats() | st.integers(-3, 3).map(float), max_size=8))
def test_the_order_of_doubles_is_that_of_the_engine(values: list[float | None]) -> None:
    rows = pa.table({"v": pa.array(values, pa.float64())})
    for descends in (False, True):
        for nulls_first in (False, True):
            way, nulls = "DESC" if descends else "ASC", "FIRST" if nulls_first else "LAST"
            query = f"SELECT v FROM rows ORDER BY v {way} NULLS {nulls}"
            wanted = run(query, {"rows": rows}).column("v")
            order = in_order(rows, np.zeros(len(values), np.int64), [SortKey("v", descends, nulls_first)])
            found = rows.column("v").take(pa.array(order))
            assert repr(found.to_pylist()).replace("-0.0", "0.0") == repr(wanted.to_pylist()).replace("-0.0", "0.0")
