"""The front page has five figures, each of them on docs/benchmarks.md, which names every benchmark."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import README, Page
from tests.docs.test_commands import TARGETS

PAGE = Page.of("docs/benchmarks.md")
FIGURES = README.rows("what", "Dovetail", "Spark's own join")
_NUMBER = re.compile(r"\d[\d,.]*\d(?: ms)?")


def test_the_front_page_has_five() -> None:
    assert len(FIGURES) == 5


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure[0])
def test_a_figure_of_the_front_page_is_on_the_page(figure: tuple[str, ...]) -> None:
    measured = [number for cell in figure[1:] for number in _NUMBER.findall(cell)]
    assert measured
    assert [number for number in measured if number not in PAGE.text] == []


@pytest.mark.parametrize("target", [target for target in TARGETS if target.startswith("bench-")])
def test_every_benchmark_is_on_the_page(target: str) -> None:
    assert f"make {target}" in PAGE.code
