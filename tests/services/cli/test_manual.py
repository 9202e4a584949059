"""The documentation on the command line: every page is found by its name, every section by its heading."""

from __future__ import annotations

import io
import re

import pytest
from prompt_toolkit.document import Document

from dovetail.changelog.errors import UnknownName
from dovetail.services.cli.console import is_finished
from dovetail.services.cli.manual import show_manual
from dovetail.services.cli.show import Screen
from tests.paths import ROOT

PAGES = [
    path.relative_to(ROOT / "docs").with_suffix("").as_posix()
    for kind in ("", "joins", "tasks")
    for path in sorted((ROOT / "docs" / kind).glob("*.md"))
]
"""By name: those for users."""


def shown(words: str) -> str:
    output = io.StringIO()
    show_manual(Screen(output=output), words)
    return output.getvalue()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_shown_by_its_name(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text()
    for written in (name, name.upper(), f"docs/{name}.md"):
        assert shown(written) == f"{text}\n"
    assert name == "README" or f"\n{name} " in f"\n{shown('')}"


def test_the_pages_are_in_the_order_in_which_the_first_names_them() -> None:
    names = [line.split(" ")[0] for line in shown("").splitlines()]
    assert names[:3] == ["tasks/quick-start", "tasks/mysql", "tasks/within-minutes"]
    assert set(PAGES) - {"README"} <= set(names)


def test_one_in_a_folder_is_found_without_it() -> None:
    assert shown("dynamic filter") == shown("joins/dynamic-filter")


def test_words_of_a_heading_show_its_sections_and_no_more() -> None:
    text = shown("rows late")
    assert [line for line in text.splitlines() if re.fullmatch(r"\*[\w-]+\*", line)] == ["*dead-letters*", "*time*"]
    assert {line for line in text.splitlines() if line.startswith("#")} == {"## Late rows"}


def test_words_that_are_in_no_heading_are_answered_with_where_they_stand() -> None:
    text = shown("maxMemoryUsageMB")
    assert text.startswith("runner-and-worker ")
    assert "maxMemoryUsageMB" in shown(text.splitlines()[0].partition(" ")[2].strip())


def test_what_is_not_there_is_answered_with_what_may_be_meant() -> None:
    with pytest.raises(UnknownName, match='did you mean "asof"'):
        shown("asoff")
    with pytest.raises(UnknownName, match="dovetail docs lists the pages"):
        shown("zzz qqq")


@pytest.mark.parametrize("typed", ["help asof", "\\h late rows", "help"])
def test_the_console_needs_no_semicolon_to_show_them(typed: str) -> None:
    assert is_finished(Document(typed))
