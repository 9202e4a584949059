"""The pauses between the starts of a component that dies, and their end."""

from __future__ import annotations

from dovetail.services.stack.restarts import LIMIT, Restarts


def test_the_pause_doubles_up_to_a_bound() -> None:
    restarts = Restarts()
    pauses = [restarts.died(float(now_s)) for now_s in range(8)]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_one_that_was_well_for_long_begins_anew() -> None:
    restarts = Restarts()
    restarts.died(0)
    restarts.died(1)
    restarts.ready(10)
    assert restarts.died(11) == 2.0
    restarts.ready(20)
    assert restarts.died(1000) == 0.5
    assert restarts.due_s == 1000.5


def test_one_that_never_stays_up_is_left_alone() -> None:
    restarts = Restarts()
    for now_s in range(LIMIT):
        restarts.ready(now_s)
        assert restarts.died(now_s + 1) is not None
    assert restarts.died(LIMIT + 1) is None
