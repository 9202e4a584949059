"""The pages of the runners of cases and suites have their options, and the front page the number of cases."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import typer
import typer.main

from tests.conformance.__main__ import conformance
from tests.conformance.load import load
from tests.docs.pages import README, Page
from tests.paths import CASES
from tests.sqllogictest.__main__ import sqllogictest


@pytest.mark.parametrize(
    ("page", "runner"), [("docs/conformance.md", conformance), ("docs/sqllogictest.md", sqllogictest)]
)
def test_the_page_has_all_options_and_no_other(page: str, runner: Callable[..., None]) -> None:
    app = typer.Typer()
    app.command()(runner)
    declared = {name for option in typer.main.get_command(app).params for name in option.opts}
    named = {name for row in Page.of(page).rows("option", "meaning") for name in re.findall(r"--[a-z-]+", row[0])}
    assert named == {name for name in declared if not name.endswith("-completion")}


def test_the_front_page_gives_the_number_of_cases() -> None:
    [said] = re.findall(r"(\d+) cases from the founding documents", README.text)
    assert int(said) == len(load(CASES).cases)
