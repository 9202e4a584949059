"""How far a batch reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import RecordsGone
from dovetail.spark_jobs.source.history import limited
from dovetail.spark_jobs.source.kafka_source import refuse_backwards

places = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(0, 50), st.integers(0, 1000)), min_size=1)


@given(places, st.integers(1, 500))
def test_a_batch_is_limited_in_proportion_and_always_goes_on(found: dict[str, tuple[int, int]], limit: int) -> None:
    start = {"t": {partition: begin for partition, (begin, _) in found.items()}}
    ends = {"t": {partition: begin + left for partition, (begin, left) in found.items()}}

    reached = limited(start, ends, limit)["t"]

    taken = {partition: reached[partition] - begin for partition, (begin, _) in found.items()}
    left = {partition: count for partition, (_, count) in found.items()}
    assert all(0 <= taken[partition] <= left[partition] for partition in found)
    assert sum(taken.values()) <= limit + len(found)
    assert all(taken[partition] > 0 for partition in found if left[partition])


def test_a_new_partition_is_read_from_its_beginning() -> None:
    assert limited({"t": {"0": 90}}, {"t": {"0": 100, "1": 10}}, 10) == {"t": {"0": 95, "1": 5}}


def test_a_topic_that_was_made_again_is_refused() -> None:
    with pytest.raises(RecordsGone, match=r"t\[0\] ends at offset 3, and the query has read up to 8"):
        refuse_backwards({"t": {"0": 8}}, {"t": {"0": 3}})
