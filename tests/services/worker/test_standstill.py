"""What is taken to stand still, and what is not."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.services.worker.query.standstill import Standstill

PATIENCE_S = 100.0
LET_GO_S = 40.0


class Topic:
    """A topic by itself, and the time: its ends, or None while the broker is away."""

    def __init__(self, ends: Mapping[int, int]) -> None:
        self.ends: Mapping[int, int] | None = ends
        self.now_s = 0.0
        self._standstill = Standstill(self._ends, patience_s=PATIENCE_S, let_go_s=LET_GO_S, clock=lambda: self.now_s)

    def _ends(self, partitions: Collection[int]) -> Mapping[int, int]:
        if self.ends is None:
            raise ServiceUnavailable("away")
        return {partition: self.ends[partition] for partition in partitions}

    def reports(self, reached: Mapping[int, int], seconds: range, let_go: Collection[int] = ()) -> list[str]:
        """What a look in each of these seconds says."""
        said = []
        for second in seconds:
            self.now_s = float(second)
            said.append(self._standstill.look(reached, let_go))
        return list(filter(None, said))


def test_what_answers_nothing_though_there_is_more_stands_still() -> None:
    topic = Topic({0: 9, 1: 9})
    assert topic.reports({0: 9, 1: 4}, range(0, 100, 5)) == []
    assert "partition 1 is answered up to 4 of 9" in topic.reports({0: 9, 1: 4}, range(100, 120, 5))[0]


def test_what_has_answered_all_does_not() -> None:
    assert Topic({0: 9}).reports({0: 9}, range(0, 1000, 5)) == []


def test_what_gets_on_does_not_however_far_behind() -> None:
    topic = Topic({0: 1 << 40})
    for second in range(0, 2000, 50):
        assert topic.reports({0: second}, range(second, second + 50, 5)) == []


def test_new_records_after_a_long_silence_have_their_own_time() -> None:
    """Nothing was answered, as there was nothing to answer."""
    topic = Topic({0: 9})
    assert topic.reports({0: 9}, range(0, 1000, 5)) == []
    topic.ends = {0: 10}
    assert topic.reports({0: 9}, range(1000, 1095, 5)) == []


def test_time_without_a_broker_does_not_count() -> None:
    topic = Topic({0: 9})
    assert topic.reports({0: 4}, range(0, 90, 5)) == []
    topic.ends = None
    assert topic.reports({0: 4}, range(90, 1000, 5)) == []
    topic.ends = {0: 9}
    assert topic.reports({0: 4}, range(1000, 1095, 5)) == []
    assert topic.reports({0: 4}, range(1095, 1120, 5)) != []


def test_a_partition_that_is_assigned_anew_has_its_own_time() -> None:
    topic = Topic({0: 9})
    assert topic.reports({0: 4}, range(0, 95, 5)) == []
    assert topic.reports({}, range(95, 105, 5)) == []
    assert topic.reports({0: 4}, range(105, 200, 5)) == []


def test_a_partition_that_was_let_go_and_is_not_given_away_stands_still() -> None:
    topic = Topic({0: 9})
    assert topic.reports({0: 9}, range(0, 40, 5), let_go=[0]) == []
    assert "was let go 40 s ago" in topic.reports({0: 9}, range(40, 45, 5), let_go=[0])[0]


def test_one_that_is_taken_up_again_does_not() -> None:
    topic = Topic({0: 9})
    assert topic.reports({0: 9}, range(0, 35, 5), let_go=[0]) == []
    assert topic.reports({0: 9}, range(35, 40, 5)) == []
    assert topic.reports({0: 9}, range(40, 75, 5), let_go=[0]) == []
