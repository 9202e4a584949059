"""Each promise of the page on security names the test that holds it."""

from __future__ import annotations

import ast

import pytest

from tests.docs.pages import Page
from tests.paths import ROOT

PROMISES = Page.of("docs/security.md").rows("promise", "held by")
_TESTED = [test.strip().strip("`") for _, tests in PROMISES for test in tests.split(",")]


def test_there_are_promises() -> None:
    assert len(PROMISES) > 20


@pytest.mark.parametrize("test", _TESTED)
def test_the_test_is_there(test: str) -> None:
    """``path::name``, or a path whose tests all hold it."""
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name in names if name else any(found.startswith("test_") for found in names)
