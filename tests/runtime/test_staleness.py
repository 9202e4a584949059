"""For how long nothing new was heard of each name."""

from __future__ import annotations

from dovetail.runtime.staleness import Staleness


class Heard:
    """By a clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.staleness = Staleness(lambda: self.now_s)


def test_a_word_that_stays_grows_stale_and_another_does_not() -> None:
    heard = Heard()
    assert heard.staleness.seconds("a", 1) == 0
    heard.now_s += 7
    assert heard.staleness.seconds("a", 1) == 7
    assert heard.staleness.seconds("a", 2) == 0
    assert heard.staleness.seconds("b", 2) == 0


def test_who_is_forgotten_begins_anew() -> None:
    heard = Heard()
    heard.staleness.seconds("a", 1)
    heard.now_s += 7
    heard.staleness.forget("a")
    assert heard.staleness.seconds("a", 1) == 0


def test_of_all_who_speak_the_silent_are_forgotten() -> None:
    heard = Heard()
    assert heard.staleness.all_seconds({"a": 1, "b": 1}) == {"a": 0, "b": 0}
    heard.now_s += 7
    assert heard.staleness.all_seconds({"a": 1}) == {"a": 7}
    assert heard.staleness.all_seconds({"a": 1, "b": 1}) == {"a": 7, "b": 0}
