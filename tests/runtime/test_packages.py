"""Processes that others start find the packages where their parents did."""

from __future__ import annotations

from pathlib import Path

from dovetail.runtime.packages import PACKAGE_ROOT
from tests.paths import ROOT
from tests.test_layers import LAYERS


def test_the_package_has_a_link_to_each_layer_beside_it_and_to_the_documentation() -> None:
    assert PACKAGE_ROOT == ROOT
    links = {path.name: path for path in (PACKAGE_ROOT / "dovetail").iterdir() if path.is_symlink()}
    assert links.keys() == LAYERS.keys() - {"dovetail"} | {"docs"}
    assert all(links[name].readlink() == Path("..") / name for name in links)
