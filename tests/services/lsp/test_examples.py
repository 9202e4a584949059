"""What runs has nothing wrong in an editor: the examples, and the statements of the pages of tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.services.lsp.analysis import Analyst
from dovetail.sql.syntax.rules import Rules
from tests.docs.pages import DOCS, Page
from tests.paths import ROOT

EXAMPLES = sorted((ROOT / "examples").rglob("*.sql"))
PAGES = sorted((DOCS / "tasks").glob("*.md"))


def errors(text: str) -> list[str]:
    """Names that only a stack may have are no errors here."""
    return [one.message for one in Analyst().findings(text, Rules.TIMEPLUS, None) if one.certain]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_example_is_right(path: Path) -> None:
    assert errors(path.read_text()) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_statements_of_a_page_are_right(path: Path) -> None:
    assert errors(";\n".join(Page(path).blocks("sql"))) == []
