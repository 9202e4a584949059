"""A module's name says which idea is in it, so no two modules of the layer are called alike.

Two dialects have the same groups of functions: their folders are each looked at alone. A node of a plan has a file of
its name, and so may the clause that it is bound from, or the rule that makes it.
"""

from __future__ import annotations

from collections import Counter

from tests.paths import ROOT

FUNCTIONS = ROOT / "sql" / "functions"
NODES = ROOT / "sql" / "plan" / "nodes"


def test_no_two_modules_are_called_alike() -> None:
    paths = [path for path in (ROOT / "sql").rglob("*.py") if path.stem != "__init__" and path.parent != NODES]
    names = Counter(path.stem for path in paths if FUNCTIONS not in path.parent.parents)
    assert [name for name, count in names.items() if count > 1] == []
