"""The laws of ``Changes``: rows with a signed count form a group, and consolidation gives its shortest form."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA, Changes, products
from dovetail.changelog.errors import CountOverflow

TYPES = {
    "n": pa.int64(),
    "x": pa.float64(),
    "t": pa.string(),
    "l": pa.list_(pa.int64()),
}
ROW = st.tuples(
    st.none() | st.integers(0, 2),
    st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan]),
    st.none() | st.sampled_from(["", "a"]),
    st.none() | st.lists(st.integers(0, 1), max_size=2),
    st.integers(-3, 3).filter(bool),
)


def changes(rows: list[tuple[Any, ...]]) -> Changes:
    columns = list(zip(*rows, strict=True)) or [()] * (len(TYPES) + 1)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, (*TYPES.values(), pa.int64()), strict=True)]
    rows = pa.table(arrays[:-1], names=list(TYPES))
    return Changes.with_deltas(rows, arrays[-1].to_numpy())


CHANGES = st.lists(ROW, max_size=8).map(changes)


def multiset(part: Changes) -> dict[str, int]:
    """The sum of the counts of each row, in plain Python; -0.0 is 0.0, NaN is NaN, NULL is NULL."""
    counts: Counter[str] = Counter()
    for row in part.table.to_pylist():
        delta = row.pop(DELTA)
        row["x"] = row["x"] + 0.0 if row["x"] is not None else None
        counts[repr(row)] += delta
    return {row: count for row, count in counts.items() if count}


@given(CHANGES)
def test_consolidating_keeps_the_multiset_and_leaves_each_row_once(part: Changes) -> None:
    short = part.consolidated()

    assert multiset(short) == multiset(part)
    assert len(short) == len(multiset(part))
    assert short.table.schema.types == part.table.schema.types


@given(CHANGES)
def test_consolidating_twice_changes_nothing(part: Changes) -> None:
    once = part.consolidated()
    assert repr(once.consolidated().table.to_pylist()) == repr(once.table.to_pylist())


@given(CHANGES)
def test_a_batch_and_its_negation_consolidate_to_nothing(part: Changes) -> None:
    assert len(Changes.concat([part, part.negated()]).consolidated()) == 0


@given(CHANGES, CHANGES)
def test_concat_adds(left: Changes, right: Changes) -> None:
    both = Counter(multiset(left))
    both.update(multiset(right))
    assert multiset(Changes.concat([left, right])) == {row: count for row, count in both.items() if count}


@given(CHANGES)
def test_consolidated_rows_keep_the_order_of_their_first_appearance(part: Changes) -> None:
    kept = list(multiset(part.consolidated()))
    assert kept == [row for row in dict.fromkeys(multiset_order(part)) if row in kept]


def multiset_order(part: Changes) -> list[str]:
    return [next(iter(multiset(Changes(part.table.slice(place, 1))))) for place in range(len(part))]


def test_only_insertions() -> None:
    assert changes([]).only_insertions
    assert changes([(1, None, None, None, 2)]).only_insertions
    assert not changes([(1, None, None, None, 2), (1, None, None, None, -1)]).only_insertions


def test_rows_without_columns_are_one_row() -> None:
    nothing = pa.table({}, schema=pa.schema([]))
    changes = Changes.with_deltas(nothing, np.array([2, 1, -1], dtype=np.int64))
    assert changes.consolidated().deltas.tolist() == [2]
    assert len(Changes.concat([changes, changes.negated()]).consolidated()) == 0


@given(CHANGES)
def test_insertions_and_retractions_add_up_to_the_whole(part: Changes) -> None:
    assert part.insertions.only_insertions
    assert part.retractions.negated().only_insertions
    assert multiset(Changes.concat([part.insertions, part.retractions])) == multiset(part)


@given(CHANGES)
def test_negating_turns_insertions_into_retractions(part: Changes) -> None:
    assert multiset(part.negated().retractions) == multiset(part.insertions.negated())


@given(CHANGES, st.data())
def test_a_mask_and_its_complement_part_the_changes(part: Changes, data: st.DataObject) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(part), max_size=len(part))), dtype=np.bool_)

    assert multiset(Changes.concat([part.where(mask), part.where(~mask)])) == multiset(part)
    assert repr(part.where(mask).table) == repr(part.take(np.flatnonzero(mask)).table)


@given(CHANGES)
def test_what_is_taken_in_another_order_is_the_same_multiset(part: Changes) -> None:
    turned = part.take(np.arange(len(part))[::-1])

    assert multiset(turned) == multiset(part)
    assert turned.deltas.tolist() == part.deltas.tolist()[::-1]


counts = st.integers(-(2**62) + 1, 2**62 - 1) | st.integers(-3, 3)


@given(st.lists(counts, min_size=1, max_size=5), st.booleans())
def test_counts_are_summed_in_64_bits_or_refused(deltas: list[int], columns: bool) -> None:
    rows = pa.table({"n": [1] * len(deltas)}) if columns else pa.table({}, schema=pa.schema([]))
    part = Changes.with_deltas(rows, np.array(deltas))
    if sum(map(abs, deltas)) >= 2**62 + 2**20:
        with pytest.raises(CountOverflow, match="64 bits"):
            part.consolidated()
    elif sum(map(abs, deltas)) < 2**62 - 2**20:
        assert part.consolidated().deltas.tolist() == [total for total in [sum(deltas)] if total]


@given(st.lists(st.tuples(counts, counts), max_size=5))
def test_counts_are_multiplied_in_64_bits_or_refused(pairs: list[tuple[int, int]]) -> None:
    left, right = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    greatest = max((abs(a * b) for a, b in pairs), default=0)
    if greatest >= 2**62 + 2**20:
        with pytest.raises(CountOverflow, match="64 bits"):
            products(left, right)
    elif greatest < 2**62 - 2**20:
        assert products(left, right).tolist() == [a * b for a, b in pairs]
