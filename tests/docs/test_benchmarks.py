"""The figures of the front page are those of docs/benchmarks.md, which names every benchmark."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import README, Page
from tests.docs.test_commands import TARGETS

PAGE = Page.of("docs/benchmarks.md")
FIGURES = README.rows(
    "two cores, Kafka to Kafka", "Dovetail, exactly-once", "Flink SQL 2.3, tuned, at-least-once", "times as fast"
)
_MEASURED = re.compile(r"\d[\d,.]*\d (?:s|ms|CPU-s|GiB|events per second)\b")


def test_the_front_page_has_the_joins_beside_flink() -> None:
    assert len(FIGURES) == len(PAGE.rows("join", "Dovetail", "Flink SQL 2.3, tuned", "times as fast"))


def test_a_figure_of_the_front_page_is_on_the_page() -> None:
    measured = set(_MEASURED.findall(" ".join(README.prose.split())))
    assert len(measured) > len(FIGURES)
    assert [figure for figure in sorted(measured) if figure not in _readable(PAGE.text)] == []


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure[0])
def test_how_many_times_is_what_the_seconds_say(figure: tuple[str, ...]) -> None:
    ours, theirs = (float(cell.split(" s")[0]) for cell in figure[1:3])
    assert float(figure[3]) == pytest.approx(theirs / ours, abs=0.05)


def _readable(text: str) -> str:
    return f"{text} {' '.join(f'{row[1]} events per second' for row in PAGE.rows('what', 'events per second'))}"


@pytest.mark.parametrize("target", [target for target in TARGETS if target.startswith("bench-")])
def test_every_benchmark_is_on_the_page(target: str) -> None:
    assert f"make {target}" in PAGE.code
