"""Which views are packed: by the clock, what they read, and what they hold."""

from __future__ import annotations

from dovetail.spark_jobs.packing.choice import (
    FEWEST,
    MOST,
    OF_ALL,
    Candidate,
    Joining,
    Load,
    LoadTracker,
    OpenPack,
    PackLimits,
    joinings,
)

LIMITS = PackLimits(after_s=60.0, state_bytes=1000, rows_per_s=100.0)


def lived(tracker: LoadTracker, rows_per_s: float, state_bytes: int, from_s: int, to_s: int, before: int = 0) -> int:
    rows = before
    for second in range(from_s, to_s + 1):
        rows = before + int((second - from_s) * rows_per_s)
        tracker.note(7, rows, state_bytes, second)
    return rows


def test_a_view_that_is_quiet_for_long_enough_is_one() -> None:
    tracker = LoadTracker(LIMITS)
    lived(tracker, 50, 500, 0, 59)
    assert not tracker.long_enough(7, 59)
    lived(tracker, 0, 500, 60, 60, before=3000)
    assert tracker.long_enough(7, 60)
    assert not tracker.long_enough(7, 60, times=2)
    assert not tracker.long_enough(8, 1000)


def test_one_that_reads_much_or_holds_much_is_none_until_it_has_been_quiet_again() -> None:
    tracker = LoadTracker(LIMITS)
    rows = lived(tracker, 500, 500, 0, 100)
    assert "rows a second" in tracker.overloaded(7)
    rows = lived(tracker, 10, 500, 101, 170, before=rows)
    assert tracker.overloaded(7) == ""
    assert not tracker.long_enough(7, 165)
    assert tracker.long_enough(7, 175)
    lived(tracker, 0, 2000, 176, 177, before=rows)
    assert "2,000 bytes" in tracker.overloaded(7)
    assert not tracker.long_enough(7, 1000)


def test_a_restart_and_a_count_that_begins_anew_begin_the_time_anew() -> None:
    tracker = LoadTracker(LIMITS)
    rows = lived(tracker, 50, 500, 0, 70)
    assert tracker.long_enough(7, 70)
    tracker.note(7, rows - 1, 500, 71)
    assert not tracker.long_enough(7, 100)
    tracker.forget(7)
    assert not tracker.long_enough(7, 1000)


def test_what_is_read_in_one_go_after_an_outage_is_no_reason_to_leave() -> None:
    tracker = LoadTracker(LIMITS)
    rows = lived(tracker, 10, 500, 0, 70)
    tracker.note(7, rows + 100_000, 500, 71)
    rows = lived(tracker, 10, 500, 72, 80, before=rows + 100_000)
    assert "rows a second" in tracker.overloaded(7)
    assert tracker.leaves([7]) == {}
    rows = lived(tracker, 10, 500, 81, 95, before=rows)
    assert tracker.overloaded(7) == ""
    lived(tracker, 200, 500, 96, 140, before=rows)
    assert list(tracker.leaves([7, 8])) == [7]


def test_one_that_is_at_work_on_a_long_batch_is_not_quiet() -> None:
    tracker = LoadTracker(LIMITS)
    for second in range(61):
        tracker.note(7, 0, 0, second, batch=0, at_rest=False)
        tracker.note(8, 0, 0, second, batch=second, at_rest=False)
        tracker.note(9, 0, 0, second, batch=0, at_rest=second % 10 == 0)
    assert [tracker.long_enough(view, 60) for view in (7, 8, 9)] == [False, True, True]
    for second in range(61, 121):
        tracker.note(7, 100, 0, second, batch=1)
    assert tracker.long_enough(7, 120)


def test_one_that_holds_much_leaves_at_once() -> None:
    tracker = LoadTracker(LIMITS)
    tracker.note(7, 0, 1001, 0)
    tracker.note(8, 0, 1000, 0)
    assert list(tracker.leaves([7, 8])) == [7]


def test_of_those_that_do_too_much_together_the_greatest_leaves() -> None:
    tracker = LoadTracker(LIMITS)
    for view in range(OF_ALL):
        tracker.note(view, 0, 1000, 0)
    assert tracker.leaves(range(OF_ALL)) == {}
    tracker.note(9, 0, 1, 0)
    assert list(tracker.leaves([9, *range(OF_ALL)])) == [0]
    for second in range(0, 41, 10):
        for view in range(10):
            tracker.note(view, second * (40 + view), 0, second)
    assert list(tracker.leaves(range(10))) == [9]


def test_those_are_packed_that_mean_the_same_topics() -> None:
    one = [Candidate(view, {"orders": "a", f"own-{view}": "x"}) for view in range(FEWEST)]
    other = [Candidate(view, {"orders": "b"}) for view in range(10, 10 + FEWEST)]
    few = [Candidate(20, {"users": "c", "orders": "c"})]
    assert joinings([*one, *other, *few], [], LIMITS) == [
        Joining(tuple(range(FEWEST))),
        Joining(tuple(range(10, 10 + FEWEST))),
    ]


def new_packs(candidates: list[Candidate]) -> list[int]:
    return [len(joining.views) for joining in joinings(candidates, [], LIMITS)]


def test_a_pack_has_no_more_members_than_it_may() -> None:
    assert new_packs([Candidate(view, {}) for view in range(MOST + FEWEST)]) == [MOST, FEWEST]
    assert new_packs([Candidate(view, {}) for view in range(MOST + 1)]) == [MOST]


def test_a_pack_does_no_more_than_one_core_may() -> None:
    assert new_packs([Candidate(view, {}, Load(100.0, 10)) for view in range(3 * OF_ALL)]) == [OF_ALL] * 3
    assert new_packs([Candidate(view, {}, Load(1.0, 1000)) for view in range(2 * OF_ALL)]) == [OF_ALL] * 2


def test_one_that_comes_later_joins_a_pack_that_has_room() -> None:
    full, other = OpenPack("full", MOST, {}), OpenPack("other", 5, {"orders": "b"})
    room = OpenPack("room", MOST - 2, {"orders": "a"})
    late = [Candidate(view, {"orders": "a"}) for view in range(3)]
    assert joinings(late[:1], [full, other, room], LIMITS) == [Joining((0,), room)]
    assert joinings(late, [full, other, room], LIMITS) == [Joining((0, 1), room)]
    assert joinings(late, [full, other], LIMITS) == []
