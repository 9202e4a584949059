"""Messages as sentences: no count disagrees with its noun, no type is named as Arrow or Python names it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from dovetail.changelog.wording import articled, counted
from tests.paths import ROOT

PACKAGES = ("changelog", "broker", "joins", "sql", "dictionaries", "enrichment", "runtime", "spark_jobs", "services")
PLURAL = re.compile(r" (?:more )?[a-z]{3,}s\b")
NO_NOUN = re.compile(r" (?:is|has|was|does|this|needs|takes|gives|counts|tells|its)\b")

MORE_THAN_ONE = {
    "sql/syntax/bounds/statement_bounds.py",
    "spark_jobs/runner/packs.py",
    "services/jars.py",
    "services/known_stacks.py",
    "services/serve/statements/script.py",
}
"""Where a count is never one."""


def messages() -> Iterator[tuple[str, ast.JoinedStr]]:
    """Each text with values in it that a user may read; defects (InternalError) are for developers."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text())
            defects = {
                id(node)
                for call in ast.walk(tree)
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "InternalError"
                for node in ast.walk(call)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr) and id(node) not in defects:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def uncounted(text: ast.JoinedStr) -> list[str]:
    """The counts in it that a noun follows which is plural whatever they are."""
    return [
        f"{{{ast.unparse(value.value)}}}{behind.value!r}"
        for value, behind in zip(text.values, text.values[1:], strict=False)
        if isinstance(value, ast.FormattedValue)
        and re.fullmatch(r"len\(.*\)|.*\.num_rows", ast.unparse(value.value))
        and isinstance(behind, ast.Constant)
        and PLURAL.match(str(behind.value))
        and not NO_NOUN.match(str(behind.value))
    ]


def test_one_is_no_plural() -> None:
    found = {place: wrong for place, text in messages() if (wrong := uncounted(text))}
    assert {place.split(":")[0] for place in found} == MORE_THAN_ONE, found


@pytest.mark.parametrize(
    ("count", "noun", "text"), [(1, "row", "1 row"), (0, "row", "0 rows"), (1200, "primary key", "1,200 primary keys")]
)
def test_counts(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text
    assert articled("index") == "an index"
    assert articled("table") == "a table"
