"""Which views are packed: by the clock, what they read, and what they hold."""

from __future__ import annotations

from spark_jobs.packing.choice import FEWEST, MOST, Candidate, PackLimits, Quiet, packs

LIMITS = PackLimits(after_s=60.0, state_bytes=1000, rows_per_s=100.0)


def lived(quiet: Quiet, rows_per_s: float, state_bytes: int, from_s: int, to_s: int, before: int = 0) -> int:
    rows = before
    for second in range(from_s, to_s + 1):
        rows = before + int((second - from_s) * rows_per_s)
        quiet.note(7, rows, state_bytes, second)
    return rows


def test_a_view_that_is_quiet_for_long_enough_is_one() -> None:
    quiet = Quiet(LIMITS)
    lived(quiet, 50, 500, 0, 59)
    assert not quiet.long_enough(7, 59)
    lived(quiet, 0, 500, 60, 60, before=3000)
    assert quiet.long_enough(7, 60)
    assert not quiet.long_enough(7, 60, times=2)
    assert not quiet.long_enough(8, 1000)


def test_one_that_reads_much_or_holds_much_is_none_until_it_has_been_quiet_again() -> None:
    quiet = Quiet(LIMITS)
    rows = lived(quiet, 500, 500, 0, 100)
    assert "rows a second" in quiet.loud(7)
    rows = lived(quiet, 10, 500, 101, 170, before=rows)
    assert quiet.loud(7) == ""
    assert not quiet.long_enough(7, 165)
    assert quiet.long_enough(7, 175)
    lived(quiet, 0, 2000, 176, 177, before=rows)
    assert "2,000 bytes" in quiet.loud(7)
    assert not quiet.long_enough(7, 1000)


def test_a_restart_and_a_count_that_begins_anew_begin_the_time_anew() -> None:
    quiet = Quiet(LIMITS)
    rows = lived(quiet, 50, 500, 0, 70)
    assert quiet.long_enough(7, 70)
    quiet.note(7, rows - 1, 500, 71)
    assert not quiet.long_enough(7, 100)
    quiet.forget(7)
    assert not quiet.long_enough(7, 1000)


def test_those_are_packed_that_mean_the_same_topics() -> None:
    one = [Candidate(view, {"orders": "a", f"own-{view}": "x"}) for view in range(FEWEST)]
    other = [Candidate(view, {"orders": "b"}) for view in range(10, 10 + FEWEST)]
    few = [Candidate(20, {"users": "c", "orders": "c"})]
    assert packs([*one, *other, *few]) == [tuple(range(FEWEST)), tuple(range(10, 10 + FEWEST))]


def test_a_pack_has_no_more_members_than_it_may() -> None:
    assert [len(views) for views in packs([Candidate(view, {}) for view in range(MOST + FEWEST)])] == [MOST, FEWEST]
    assert [len(views) for views in packs([Candidate(view, {}) for view in range(MOST + 1)])] == [MOST]
