"""A short run of kills, one of each kind and more: everything heals with no hand, and nothing differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.run import run

pytestmark = pytest.mark.services
KILLS = 9
SEED = 3


def test_one_kill_of_every_kind_heals_by_itself(tmp_path: Path) -> None:
    said: list[str] = []
    account = run(tmp_path, SEED, lambda done: done.kills.total() >= KILLS, said.append)
    assert account.differences == [], "\n".join(said)
    assert set(account.kills.values()) == {1}
    assert min(account.rows.values()) > 0
