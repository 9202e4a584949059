"""A module's name says which idea is in it, so no two modules of the room are called alike."""

from __future__ import annotations

from collections import Counter

from tests.paths import ROOT


def test_no_two_modules_are_called_alike() -> None:
    names = Counter(path.stem for path in (ROOT / "sql").rglob("*.py") if path.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []
