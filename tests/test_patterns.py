"""Every regular expression of the project takes time that grows with the text: no text from outside stops a process."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

from tests.paths import ROOT
from tests.test_layers import PRESENT, sources
from tests.worst_texts import MOST_GROWTH, Call

_FUNCTIONS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_ALIAS = "pattern"
_LOCAL = {
    ("services/completion.py", _ALIAS): r"\b(\w++)\)?\s++(?:AS\s++)?a\b",
    ("services/registry/json_schemas/patterns.py", "text"): "",
}
"""Patterns that are made of local names: an example of each. That of a schema is short, and is not searched for."""


def called(path: Path) -> Iterator[tuple[str, Call]]:
    """The patterns of a module, each with the functions that it is used by."""
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree))
    used = _used(nodes)
    kept = {
        id(node.value): used[node.targets[0].id]
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=function), args=[pattern, *_]) if (
                function in (*_FUNCTIONS, "compile")
            ):
                functions = (kept.get(id(node)) or {"search", "fullmatch"}) if function == "compile" else {function}
            case ast.keyword(arg="pattern", value=ast.Constant() as pattern):
                functions = {"search"}
            case _:
                continue
        place = f"{path.relative_to(ROOT)}:{pattern.lineno}"
        text, flags = _evaluated(path, pattern), _flags(path, node, function) if isinstance(node, ast.Call) else 0
        for one in sorted(functions):
            if isinstance(text, bytes):
                yield place, Call(text.decode("latin-1"), flags, one, of_bytes=True)
            else:
                yield place, Call(text, flags, one)


def _used(nodes: Sequence[ast.AST]) -> Mapping[str, set[str]]:
    """Each name, with the functions of patterns that are called on it."""
    found = defaultdict[str, set[str]](set)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _FUNCTIONS:
            found[node.value.id].add(node.attr)
    return found


def _evaluated(path: Path, expression: ast.expr) -> str | bytes:
    if isinstance(expression, ast.Constant):
        return expression.value  # type: ignore[return-value]
    key = str(path.relative_to(ROOT)), ast.unparse(expression)
    return _LOCAL[key] if key in _LOCAL else eval(key[1], vars(_module(path)))


def _flags(path: Path, call: ast.Call, function: str) -> int:
    after = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(function, 2)
    given = [word.value for word in call.keywords if word.arg == "flags"] + call.args[after:]
    return int(eval(ast.unparse(given[0]), vars(_module(path)))) if given else 0


def _module(path: Path) -> ModuleType:
    return importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def test_no_pattern_is_slow_over_what_it_repeats() -> None:
    calls = [found for layer in PRESENT for path in sources(layer) for found in called(path)]
    lines = "".join(json.dumps(asdict(call)) + "\n" for _, call in calls)
    answer = subprocess.run(
        [sys.executable, "-m", "tests.worst_texts"],
        input=lines,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    measured = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(measured) == len(calls), answer.stderr
    slow = [
        f"{place} {call.function} {call.pattern!r}: {growth:.0f} times as long over eight times {text!r}"
        for (place, call), (_, growth, text) in zip(calls, measured, strict=True)
        if growth >= MOST_GROWTH
    ]
    assert slow == [], "\n".join(slow)
