"""No record ends the process that reads it, takes it a second, or is anything but a row or a dead letter."""

from __future__ import annotations

import pytest

from tests.changelog.fuzz.child import Rounds, faults
from tests.changelog.fuzz.streams import GROUPS
from tests.tries import tries


@pytest.mark.parametrize("group", GROUPS)
def test_every_record_is_a_row_or_a_dead_letter(group: str) -> None:
    found = faults(Rounds(group, seed=2026, count=tries(5), share=0.12))
    assert not found, "\n".join(map(str, found))
