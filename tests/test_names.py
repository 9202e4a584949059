"""One name, one idea: no two public classes of the project share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.paths import ROOT
from tests.test_layers import PRESENT, sources


def public_classes(tree: ast.AST) -> Iterable[tuple[str, int]]:
    """The classes that a module shows, with their lines; those inside functions are nobody else's."""
    for node in getattr(tree, "body", ()):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node.lineno
            yield from public_classes(node)


def repeated(found: Iterable[tuple[str, str]]) -> list[str]:
    """``found``: names and places. The names that stand at several places, with these."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, place in found:
        places[name].append(place)
    return [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]


def test_no_two_public_classes_share_a_name() -> None:
    paths: list[Path] = [path for layer in PRESENT for path in sources(layer)]
    classes = [
        (name, f"{path.relative_to(ROOT)}:{line}")
        for path in paths
        for name, line in public_classes(ast.parse(path.read_text()))
    ]
    assert repeated(classes) == []


def test_a_repeated_name_is_seen_with_its_places() -> None:
    tree = ast.parse("class A: ...\nclass _B: ...\ndef f():\n    class C: ...\nclass D:\n    class A: ...")
    assert repeated((name, f"m.py:{line}") for name, line in public_classes(tree)) == ["A: m.py:1, m.py:6"]
