"""Processes that others start find the packages where their parents did."""

from __future__ import annotations

from runtime.packages import PACKAGE_ROOT
from tests.paths import ROOT
from tests.test_rooms import ROOMS


def test_the_rooms_are_in_the_folder_where_child_processes_begin() -> None:
    assert PACKAGE_ROOT == ROOT
    assert all((PACKAGE_ROOT / room / "__init__.py").exists() for room in ROOMS)
