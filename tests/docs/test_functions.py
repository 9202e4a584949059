"""docs/functions.md and docs/functions/ are what the registries say."""

from __future__ import annotations

import re

import pytest

from dovetail.sql.expressions.dict_functions import USAGE
from dovetail.sql.functions.page import pages
from dovetail.sql.functions.registry import Registry
from dovetail.sql.functions.risingwave import functions as risingwave
from dovetail.sql.functions.timeplus import functions as timeplus
from tests.docs.pages import Page
from tests.paths import ROOT
from tests.test_package_graph import MODULES

REGISTRIES = [timeplus(), risingwave()]


def test_the_pages_are_made_from_the_registries() -> None:
    made = pages()
    assert set(made) == {ROOT / "docs" / "functions.md", *(ROOT / "docs" / "functions").iterdir()}
    for path, text in made.items():
        assert path.read_text() == text, "python -m dovetail.sql.functions.page writes it"


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.dialect)
def test_the_pages_name_all_functions_and_all_that_is_refused(registry: Registry) -> None:
    written = " ".join(code for path in pages() for code in Page(path).code)
    names = {*registry.functions, *registry.refused, *USAGE}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", written)] == []


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.dialect)
def test_every_function_says_what_it_means(registry: Registry) -> None:
    assert [name for name, function in registry.functions.items() if not function.row.meaning] == []


@pytest.mark.parametrize(
    ("module", "page"),
    [
        (module, page)
        for module, path in MODULES.items()
        for page in re.findall(r"\bdocs/[\w/.-]+\.md\b", path.read_text())
    ],
)
def test_a_page_that_the_code_names_exists(module: str, page: str) -> None:
    assert (ROOT / page).is_file(), module
