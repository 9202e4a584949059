"""When a view has outgrown its one bucket."""

from __future__ import annotations

import pytest

from dovetail.spark_jobs.rescaling.outgrown import OutgrownViews


def noted(*batches: tuple[int, float]) -> OutgrownViews:
    """Batches of view 7, one after the other: how long each took in ms, and when it was heard of."""
    views = OutgrownViews()
    for number, (batch_ms, now_s) in enumerate(batches):
        views.note(7, number, batch_ms, now_s)
        views.note(7, number, batch_ms, now_s + 0.2)
    return views


@pytest.mark.parametrize(
    ("batches", "outgrown"),
    [
        ([(15_000, 15.0), (15_000, 30.0), (15_000, 45.0)], True),
        # One long batch, as after an outage.
        ([(60_000, 60.0)], False),
        ([(15_000, 15.0), (15_000, 30.0)], False),
        # It keeps up in between.
        ([(15_000, 15.0), (200, 16.0), (15_000, 31.0), (15_000, 46.0)], False),
        ([(3_000, 3.0), (3_000, 6.0), (3_000, 9.0)], False),
    ],
)
def test_long_batches_for_a_while(batches: list[tuple[int, float]], outgrown: bool) -> None:
    assert noted(*batches).has(7, now_s=46.0 if len(batches) > 3 or batches[0][0] > 3_000 else 10.0) is outgrown


def test_what_rests_begins_anew() -> None:
    views = noted((15_000, 15.0), (15_000, 30.0), (15_000, 45.0))
    views.forget(7)
    assert not views.has(7, now_s=46.0)
    assert not views.has(8, now_s=46.0)
