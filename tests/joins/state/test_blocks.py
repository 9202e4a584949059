"""What probes find comes in blocks of bounded size, whatever the keys: and nothing but the size of blocks changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.changes import Changes
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.matching import match_counts
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.range import Band, RangeSpec
from dovetail.joins.reference.rows import Record
from dovetail.joins.state import blocks
from dovetail.joins.state.arrangement import Arrangement, Matches
from dovetail.joins.state.store import RunStore
from tests.joins.harness import LEFT, RIGHT, LeftBelowRight, decoded, net, port

MOST = 64
KINDS = (JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of few pairs, so that few rows make many of them."""
    monkeypatch.setattr(blocks, "PAIRS", MOST)


@dataclass
class Measured:
    """A condition that notes of how many pairs it was asked at once."""

    sizes: list[int] = field(default_factory=list)

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        self.sizes.append(rows.num_rows)
        return LeftBelowRight()(rows)


def specs(kind: JoinKind, condition: Measured | None) -> Iterable[JoinSpec]:
    left, right = port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND)
    yield BidirectionalSpec(kind, left, right, condition=condition)
    yield RangeSpec(kind, left, right, band=Band("l.v", "r.w", -1000, 1000), condition=condition)
    if kind is not JoinKind.FULL:
        yield EnrichmentSpec(kind, left, right, condition=condition)


def skewed(prefix: str, hot: int) -> list[Record]:
    """``hot`` rows of key 1, and some of others."""
    heavy: list[Record] = [((1, f"{prefix}{n}", n % 7), 1) for n in range(hot)]
    return [*heavy, *(((n, f"{prefix}x", 3), 1) for n in range(2, 9))]


def emitted(spec: JoinSpec, batches: Sequence[tuple[list[Record], list[Record]]]) -> Counter[tuple[object, ...]]:
    operator, total = spec.open(RunStore(), "0"), Counter[tuple[object, ...]]()
    for left, right in batches:
        changes = operator.on_batch([decoded(LEFT, left, 0), decoded(RIGHT, right, 0)])
        total.update(net(changes.table))
    return total


BATCHES = [(skewed("l", 40), skewed("r", 30)), (skewed("m", 25), []), ([], skewed("s", 35))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_heavy_key_is_tested_in_blocks_and_gives_the_same(kind: JoinKind, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [emitted(spec, BATCHES) for spec in specs(kind, Measured())]
    monkeypatch.setattr(blocks, "PAIRS", MOST)

    for spec, expected in zip(specs(kind, measured := Measured()), whole, strict=True):
        measured.sizes.clear()
        assert emitted(spec, BATCHES) == expected
        assert expected.total() > 0
        assert len(measured.sizes) > 30 * 40 // MOST
        if not isinstance(spec, BidirectionalSpec) or kind is JoinKind.INNER:
            assert max(measured.sizes) <= MOST


@pytest.mark.usefixtures("small")
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=40), max_size=6),
    st.lists(st.integers(0, 4), max_size=20),
)
def test_blocks_together_are_the_whole(runs: list[list[int]], probes: list[int]) -> None:
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])
    arrangement = Arrangement(RunStore(), "a", schema, ["k"])
    for number, keys in enumerate(runs):
        arrangement.insert(Changes.of(pa.table([pa.array(keys), pa.array([number] * len(keys))], schema=schema)))
    rows = pa.table({"k": pa.array(probes, pa.int64())})

    whole = pairs([arrangement.probe(rows)])
    cut, by_probe = list(arrangement.probed(rows)), list(arrangement.probed_whole(rows))

    assert pairs(cut) == pairs(by_probe) == whole
    assert all(len(block.probe) <= MOST for block in cut)
    assert all(len(block.probe) <= MOST or len(set(block.probe.tolist())) == 1 for block in by_probe)
    assert len(cut) <= whole.total() // MOST + 1
    homes = [probe for block in by_probe for probe in set(block.probe.tolist())]
    assert len(homes) == len(set(homes))


def pairs(found: Iterable[Matches]) -> Counter[tuple[int, int, int]]:
    return Counter(
        (probe, row["k"], row["n"])
        for block in found
        for probe, row in zip(block.probe.tolist(), block.rows.to_pylist(), strict=True)
    )


def test_a_million_pairs_at_most_are_made_of_one_row() -> None:
    """With the bound as it is: the row that a key of 2.5 M rows meets makes three blocks."""
    schema = pa.schema([("k", pa.int64())])
    arrangement = Arrangement(RunStore(), "a", schema, ["k"])
    arrangement.insert(Changes.of(pa.table([pa.array(np.ones(2_500_000, dtype=np.int64))], schema=schema)))

    sizes = [len(block.probe) for block in arrangement.probed(pa.table({"k": pa.array([1], pa.int64())}))]

    assert sizes == [1 << 20, 1 << 20, 2_500_000 - (2 << 20)]


@pytest.mark.parametrize("kind", [JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK])
def test_a_heavy_key_is_asked_for_in_blocks_and_gives_the_same(kind: JoinKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what a retraction on either side takes back. A block has all that a row finds, so it may have more."""
    left, right = port(LEFT, Ingest.CHANGES), port(RIGHT, Ingest.CHANGES)
    gone = [(row, -1) for row, _ in skewed("r", 30)[5:]]
    batches = [*BATCHES, ([(row, -1) for row, _ in skewed("l", 40)[::3]], gone)]
    expected = emitted(BidirectionalSpec(kind, left, right, condition=Measured()), batches)
    monkeypatch.setattr(match_counts, "_PAIRS", MOST)
    measured = Measured()
    assert emitted(BidirectionalSpec(kind, left, right, condition=measured), batches) == expected
    assert expected.total() > 0
    assert max(measured.sizes) <= MOST + 40
