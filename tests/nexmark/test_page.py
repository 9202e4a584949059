"""docs/nexmark.md is what the planner says."""

from __future__ import annotations

from tests.nexmark.page import PAGE, page


def test_the_page_is_made_from_the_plans() -> None:
    assert PAGE.read_text() == page(), "python -m tests.nexmark.page writes it"
