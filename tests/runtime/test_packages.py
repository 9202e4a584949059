"""Processes that others start find the packages where their parents did."""

from __future__ import annotations

from pathlib import Path

from dovetail.runtime.packages import PACKAGE_ROOT
from tests.paths import ROOT
from tests.test_rooms import ROOMS


def test_the_package_has_a_link_to_each_room_beside_it() -> None:
    assert PACKAGE_ROOT == ROOT
    rooms = {path.name: path for path in (PACKAGE_ROOT / "dovetail").iterdir() if path.is_symlink()}
    assert rooms.keys() == ROOMS.keys() - {"dovetail"}
    assert all(rooms[name].readlink() == Path("..") / name for name in rooms)
