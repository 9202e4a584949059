"""The pauses of an exponential back-off."""

from __future__ import annotations

import re
from itertools import islice

import pytest

from dovetail.changelog.work.backoff import Backoff
from tests.test_layers import PRESENT, sources


def test_each_pause_is_twice_the_one_before_up_to_the_longest() -> None:
    assert list(islice(Backoff(0.5, 3.0).pauses(), 5)) == [0.5, 1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(("failures", "pause_s"), [(0, 1.0), (1, 1.0), (2, 2.0), (10**9, 15.0)])
def test_any_number_of_failures_has_a_pause(failures: int, pause_s: float) -> None:
    assert Backoff(1.0, 15.0).pause_s(failures) == pause_s


def test_nobody_doubles_a_pause_by_himself() -> None:
    doubled = re.compile(r"2 \* \S*(?:pause|delay|wait)|(?:pause|delay|wait)\w* (?:\* 2\b|\*= 2)")
    paths = [path for layer in PRESENT for path in sources(layer)]
    assert [str(path) for path in paths if doubled.search(path.read_text())] == []
