"""docs/dictionaries.md names every source, layout, option, setting and figure."""

from __future__ import annotations

import pytest

from dictionaries.cache.cache_settings import CACHE_SETTINGS
from dictionaries.definition.kinds import LAYOUTS, SOURCES
from sql.system_tables import DICTIONARIES
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "dictionaries.md").read_text()


@pytest.mark.parametrize("kind", [*SOURCES, *LAYOUTS])
def test_every_source_and_layout_is_named(kind: str) -> None:
    assert f"`{kind.upper()}" in PAGE


@pytest.mark.parametrize("name", [setting.name for setting in CACHE_SETTINGS])
def test_every_setting_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", DICTIONARIES.names)
def test_every_figure_is_named(name: str) -> None:
    told_elsewhere = ("name", "type", "key", "source", "lifetime_min", "lifetime_max")
    assert name in told_elsewhere or f"`{name}`" in PAGE
