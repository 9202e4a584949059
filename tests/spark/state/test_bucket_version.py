"""The version of a bucket's state, as a text: of one portion what it was before there were portions."""

from __future__ import annotations

import json

from dovetail.joins.state.portion import WHOLE, Portion
from dovetail.spark_jobs.state.bucket_version import BucketVersion, PortionVersion, scalars_of
from dovetail.spark_jobs.state.local_copy import StateVersion

FIRST, SECOND = StateVersion(4, "four"), StateVersion(7, "seven")
CUT = BucketVersion(
    (
        PortionVersion(Portion(0, 1, 0), FIRST, {"next_id": 3}),
        PortionVersion(Portion(1, 1, 1, one_key=90), SECOND, {"next_id": (1 << 40) + 2, "watermark.0": -5}),
    )
)


def test_a_bucket_of_one_portion_is_written_as_before() -> None:
    made = BucketVersion((PortionVersion(WHOLE, FIRST, {"next_id": 3}),))
    assert made.written() == (4, "four", json.dumps({"next_id": 3}))
    assert BucketVersion.read(*made.written()) == made


def test_several_portions_come_back_each_with_its_version() -> None:
    assert CUT.written()[:2] == (7, "seven")
    assert BucketVersion.read(*CUT.written()) == CUT


def test_the_numbers_of_buckets_are_those_of_their_portions() -> None:
    texts = [json.dumps({"next_id": 9}), CUT.written()[2]]
    assert [numbers["next_id"] for numbers in scalars_of(texts)] == [9, 3, (1 << 40) + 2]
