"""Expressions are trees from the binder to the compiler: nothing between them reads the text of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.paths import ROOT

READERS = {"parse", "parse_one", "maybe_parse", "parsed", "columns_of", "plain_column"}
"""What makes a tree, or something that is said of one, from text."""
PRINTERS = {"text", "readable", "quoted"}
"""What makes text from a tree."""

READ = {
    "sql/bind/bounded/clocks.py": {"parsed"},
    "sql/expressions/engine.py": {"parse_one"},
    "sql/expressions/evaluate.py": {"parsed", "columns_of", "plain_column"},
    "sql/expressions/guard.py": {"parsed"},
}
"""Where text comes from outside: a query made from a template, and what the hosts run."""
PRINTED = {
    "sql/bind/binder.py": {"quoted"},
    "sql/expressions/aggregate_functions.py": {"readable", "text"},
    "sql/expressions/expression.py": {"readable", "text"},
    "sql/expressions/group_calls.py": {"quoted"},
    "sql/expressions/guard.py": {"text"},
    "sql/expressions/partitions/partition_calls.py": {"quoted"},
    "sql/expressions/written_values.py": {"text"},
}
"""The expression itself; queries of ``table(x)`` and of constants, which are text; names and errors, for people."""

PACKAGES = ("bind", "expressions", "rules", "plan")
MODULES = {str(path.relative_to(ROOT)): path for package in PACKAGES for path in (ROOT / "sql" / package).rglob("*.py")}


def called(tree: ast.AST) -> Iterator[str]:
    """The names of the functions that a module calls, or hands on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_text_is_read(name: str) -> None:
    assert READERS & set(called(ast.parse(MODULES[name].read_text()))) == READ.get(name, set())


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_tree_is_printed_but_for_people_and_for_queries(name: str) -> None:
    imported = {name for node in ast.walk(ast.parse(MODULES[name].read_text())) for name in _imported(node)}
    assert PRINTERS & imported == PRINTED.get(name, set())


def _imported(node: ast.AST) -> Iterator[str]:
    if (
        isinstance(node, ast.ImportFrom)
        and node.module is not None
        and node.module.startswith("dovetail.sql.expressions")
    ):
        yield from ("text" if alias.name == "engine" else alias.name for alias in node.names)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from dovetail.sql.expressions.engine import parsed", {"parsed"}),
        ("sqlglot.parse_one(sql, read='duckdb')", {"parse_one"}),
        ("from dovetail.sql.expressions import evaluate\nevaluate.columns_of(term)", {"columns_of"}),
        ("term.columns", set()),
    ],
)
def test_readers_are_seen(text: str, found: set[str]) -> None:
    assert READERS & set(called(ast.parse(text))) == found
