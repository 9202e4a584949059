"""Whose turn it is to run a batch."""

from __future__ import annotations

from dovetail.spark_jobs.source.turns import Turns


def test_no_more_begin_than_may_at_once() -> None:
    turns = Turns(at_once=2, longest_s=10.0)
    assert [turns.begin(source, 0.0) for source in ("a", "b", "c")] == [True, True, False]
    turns.end("a")
    assert turns.begin("c", 1.0)
    assert not turns.begin("a", 1.0)


def test_a_long_batch_holds_up_the_others_for_a_while_only() -> None:
    turns = Turns(at_once=1, longest_s=10.0)
    assert turns.begin("long", 0.0)
    assert not turns.begin("short", 9.9)
    assert turns.begin("short", 10.0)
    turns.end("long")
    assert not turns.begin("third", 11.0)


def test_the_end_of_what_has_not_begun_is_no_matter() -> None:
    turns = Turns(at_once=1, longest_s=10.0)
    turns.end("never")
    assert turns.begin("a", 0.0)
    assert not turns.begin("b", 0.0)
