"""docs/errors.md has every error, and says of each who fixes it and whether it is tried again."""

from __future__ import annotations

import ast
import importlib
from functools import cache

import pytest

import dovetail.changelog.errors
from dovetail.changelog.errors import DovetailError
from tests.docs.pages import Page, code_of
from tests.sql.planner import Planner
from tests.test_package_graph import MODULES

PAGE = Page.of("docs/errors.md")
ROWS = {
    code_of(row[0])[0]: row for row in PAGE.rows("error", "who fixes it", "tried again", "what it means", "what to do")
}


@cache
def error_kinds() -> dict[str, type[DovetailError]]:
    """The root and all below it, wherever they are defined. Found in the source, so that nothing else is imported."""
    bases: dict[tuple[str, str], set[str]] = {}
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases[module, node.name] = {ast.unparse(base).split(".")[-1] for base in node.bases}
    found = {("dovetail.changelog.errors", "DovetailError")}
    while True:
        names = {name for _, name in found}
        more = {place for place, inherited in bases.items() if inherited & names} - found
        if not more:
            return {name: getattr(importlib.import_module(module), name) for module, name in sorted(found)}
        found |= more


def test_the_page_has_all_errors_and_no_other() -> None:
    assert set(ROWS) == set(error_kinds())


@pytest.mark.parametrize("name", ROWS)
def test_the_page_says_who_mends_it_and_whether_it_is_tried_again(name: str) -> None:
    kind = error_kinds()[name]
    assert ROWS[name][1:3] == (kind.domain.value, "yes" if kind.retry else "no")
    assert all(ROWS[name][3:]) or kind is DovetailError


def test_the_tree_in_the_code_names_all_that_it_defines() -> None:
    tree = str(dovetail.changelog.errors.__doc__)
    defined = [name for name, kind in error_kinds().items() if kind.__module__ == "dovetail.changelog.errors"]
    assert [name for name in defined if name not in tree] == []


def test_the_message_of_the_page_is_one_that_is_given() -> None:
    with pytest.raises(DovetailError) as failure:
        Planner.of("CREATE STREAM orders (id int64)").plan("SELECT id FROM ordrs")
    assert "".join(f"    {line}\n" for line in f"error: {failure.value}".splitlines()) in PAGE.text
