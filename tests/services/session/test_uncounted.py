"""Which records of an input a view has not counted, and why."""

from __future__ import annotations

import numpy as np

from dovetail.services.session.why.uncounted import BEFORE, UNREAD, Uncounted


def test_each_place_has_its_reason() -> None:
    uncounted = Uncounted(
        starts={"t": {0: 2, 1: 0}},
        reached={"t": {0: 4, 1: 1}},
        dead_letters={"t": {(0, 3): "column a is missing"}},
        late={},
    )
    partitions, offsets = np.array([0, 0, 0, 0, 1, 1, 2]), np.array([1, 2, 3, 4, 0, 1, 9])
    assert uncounted.reasons("t", partitions, offsets).to_pylist() == [
        BEFORE,
        None,
        "a dead letter: column a is missing",
        UNREAD,
        None,
        UNREAD,
        None,
    ]
    assert uncounted.reasons("another", partitions, offsets).null_count == 7


def test_a_query_that_has_read_nothing_since_its_start_has_not_read_what_came() -> None:
    uncounted = Uncounted({"t": {0: 5}}, {"t": {0: 0}}, {}, {})
    assert uncounted.reasons("t", np.array([0, 0]), np.array([4, 5])).to_pylist() == [BEFORE, UNREAD]
