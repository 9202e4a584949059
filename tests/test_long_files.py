"""The list of long files holds what is there, and their tests come first."""

from __future__ import annotations

import random

import pytest

from tests.long_files import LONGEST_FIRST, rank
from tests.paths import ROOT


def test_each_is_there_once() -> None:
    assert [name for name in LONGEST_FIRST if not (ROOT / name).is_file()] == []
    assert len(set(LONGEST_FIRST)) == len(LONGEST_FIRST)


@pytest.mark.parametrize("seed", range(5))
def test_they_come_first_and_the_others_stay_in_their_order(seed: int) -> None:
    others = [ROOT / "tests" / name for name in ("b.py", "a.py", "chaos/test_kill.py", "test_services.py")]
    long = [ROOT / name for name in LONGEST_FIRST]
    mixed = random.Random(seed).sample(long, len(long))
    assert sorted([*others, *mixed], key=rank) == [*long, *others]
