"""The picture of every folder: few boxes, and arrows that never run back."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.test_layers import PRESENT

MOST_FILES = 30
"""What one can take in at a look, where they are kinds of one thing."""


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts if parts[0] == "dovetail" else ("dovetail", *parts))
    return name.removesuffix(".__init__")


MODULES = {module_of(path): path for layer in PRESENT for path in (ROOT / layer).rglob("*.py")}
FOLDERS = sorted(name for name, path in MODULES.items() if path.name == "__init__.py")


def imported(tree: ast.AST, modules: Mapping[str, object]) -> Iterator[str]:
    """The modules of the project that a module imports, also those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules:
                    yield inner
                elif node.module in modules:
                    yield node.module


@cache
def arrows_drawn() -> Mapping[str, frozenset[str]]:
    """Each module with those that it imports."""
    return {name: frozenset(imported(ast.parse(path.read_text()), MODULES)) for name, path in MODULES.items()}


def boxes(folder: str, arrows: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    """The files and folders inside ``folder``, each with those that it imports from."""
    inside = folder + "."
    drawn: dict[str, set[str]] = {}
    for name, targets in arrows.items():
        if name.startswith(inside):
            box = name.removeprefix(inside).split(".")[0]
            reached = {target.removeprefix(inside).split(".")[0] for target in targets if target.startswith(inside)}
            drawn.setdefault(box, set()).update(reached - {box})
    return drawn


def circle(drawn: Mapping[str, set[str]]) -> list[str]:
    """Some boxes that import each other in a circle; none if there is none."""
    try:
        TopologicalSorter(drawn).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_arrow_runs_back(folder: str) -> None:
    assert circle(boxes(folder, arrows_drawn())) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_can_be_taken_in_at_a_look(folder: str) -> None:
    files = [path.name for path in MODULES[folder].parent.glob("*.py") if path.name != "__init__.py"]
    assert len(files) <= MOST_FILES


def test_a_circle_is_seen() -> None:
    arrows = {"a.x.f": frozenset({"a.y"}), "a.y": frozenset({"a.x.g"}), "a.x.g": frozenset[str]()}
    assert set(circle(boxes("a", arrows))) == {"x", "y"}
    assert circle(boxes("a.x", arrows)) == []
