"""Passes over a plan treat every node, and every kind of join, by name: a new one is missed by none of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from dovetail.sql.plan.joins import JoinMethod
from dovetail.sql.plan.nodes import Node
from tests.paths import ROOT

KINDS = {kind.__name__ for union in (Node, JoinMethod) for kind in get_args(union)}
MODULES = sorted((ROOT / "sql").rglob("*.py"))


def swallowed(tree: ast.AST) -> Iterator[int]:
    """The lines of ``case _`` that take the nodes nobody named for something, in a match over nodes or methods."""
    for found in ast.walk(tree):
        if isinstance(found, ast.Match) and _is_over_plan(found):
            yield from (case.pattern.lineno for case in found.cases if _takes_all(case) and not _refuses(case))


def unfinished(tree: ast.AST) -> Iterator[int]:
    """The lines of a match over nodes or methods that has no last case, where mypy would see what is missing."""
    for found in ast.walk(tree):
        if isinstance(found, ast.Match) and _is_over_plan(found) and not _takes_all(found.cases[-1]):
            yield found.lineno


def _is_over_plan(found: ast.Match) -> bool:
    named = [pattern for pattern in ast.walk(found) if isinstance(pattern, ast.MatchClass)]
    return any(isinstance(pattern.cls, ast.Name) and pattern.cls.id in KINDS for pattern in named)


def _takes_all(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None


def _refuses(case: ast.match_case) -> bool:
    match case.body:
        case [ast.Expr(value=ast.Call(func=ast.Name(id="assert_never")))]:
            return True
        case _:
            return False


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_pass_names_every_node(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert list(swallowed(tree)) == []
    assert list(unfinished(tree)) == []


@pytest.mark.parametrize(
    ("cases", "taken", "open_ended"),
    [
        ("case Scan(): pass\n  case _: pass", [3], []),
        ("case Map() | Join(how=Range()): pass\n  case other: return other", [3], []),
        ("case Scan(): pass\n  case _: assert_never(node)", [], []),
        ("case Scan(): pass\n  case Map(): pass", [], [1]),
        ("case 'a': pass\n  case _: pass", [], []),
    ],
)
def test_what_swallows_is_seen(cases: str, taken: list[int], open_ended: list[int]) -> None:
    tree = ast.parse(f"match node:\n  {cases}")
    assert (list(swallowed(tree)), list(unfinished(tree))) == (taken, open_ended)
