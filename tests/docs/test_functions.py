"""docs/functions.md names the functions that the dialect adds to DuckDB's, and those that it refuses."""

from __future__ import annotations

import re

import pytest
from sql.expressions.functions import CLOCKS, RANDOM, TEMPLATES, to_duckdb

from sql.expressions.dict_functions import dict_function
from sql.syntax.parse import parse_one
from sql.syntax.statements import Select
from tests.docs.pages import Page, code_of
from tests.paths import ROOT
from tests.test_shelves import MODULES

PAGE = Page.of("docs/functions.md")
GROUPS = {row[0]: code_of(row[1]) for row in PAGE.rows("group", "functions")}
REFUSED = [code_of(row[0]) for row in PAGE.rows("refused", "in its place")]


def test_the_page_has_all_templates_and_no_other() -> None:
    apart = ("branches", "dictionaries")
    named = [name for group, names in GROUPS.items() if group not in apart for name in names]
    assert sorted(named) == sorted(TEMPLATES)


def test_branches_are_translated() -> None:
    [name] = GROUPS["branches"]
    statement = parse_one(f"SELECT {name}(a, 1, b, 2, 3) AS x FROM t")
    assert isinstance(statement, Select)
    assert "CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END" in to_duckdb(statement.query)


@pytest.mark.parametrize("name", GROUPS["dictionaries"])
def test_functions_of_dictionaries_are_known(name: str) -> None:
    statement = parse_one(f"SELECT {name}('d', 'a', k) AS x FROM t")
    assert isinstance(statement, Select)
    assert dict_function(statement.query.selects[0].this) == name


def test_the_page_has_all_that_is_refused_and_no_other() -> None:
    assert [set(names) for names in REFUSED] == [CLOCKS, RANDOM]


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
