"""Messages as sentences: no count disagrees with its noun, no type is named as Arrow or Python names it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.changelog.wording import articled, counted, type_words
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import arrow
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


def bare_types(path: Path) -> list[str]:
    """The types of Arrow that texts of the file name as Arrow does, such as ``decimal128(10, 2)``."""
    found = []
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef):
            continue
        arguments = [*function.args.args, *function.args.kwonlyargs]
        types = {one.arg for one in arguments if one.annotation and ast.unparse(one.annotation) == "pa.DataType"}
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in DEFECTS:
                continue
            for text in ast.iter_child_nodes(call) if isinstance(call, ast.Call | ast.Return | ast.keyword) else ():
                if isinstance(text, ast.JoinedStr):
                    values = [one.value for one in text.values if isinstance(one, ast.FormattedValue)]
                    named = [ast.unparse(one) for one in values]
                    found += [f"{path.name}: {one}" for one in named if one in types or ENDS_IN_TYPE.search(one)]
    return found


DEFECTS = ("InternalError", "TypeError", "pa.ArrowInvalid", "pa.ArrowNotImplementedError")
"""What is raised for developers, and is caught."""
ENDS_IN_TYPE = re.compile(r"(?:column|expr|array|values|time|field)\.type$")


@pytest.mark.parametrize("package", PACKAGES)
def test_types_are_named_as_columns_are_declared(package: str) -> None:
    assert [one for path in sorted((ROOT / package).rglob("*.py")) for one in bare_types(path)] == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.decimal128(10, 2), "decimal(10, 2)"),
        (pa.list_(pa.date32()), "array(date)"),
        (pa.timestamp("ms", tz="UTC"), "datetime64(3)"),
        (pa.map_(pa.string(), pa.float64()), "map(string, float64)"),
        (pa.struct([("a", pa.binary())]), "tuple(a bytes)"),
        (pa.time64("us"), "time"),
    ],
)
def test_a_name_of_a_type_is_read_as_that_type(kind: pa.DataType, name: str) -> None:
    assert type_words(kind) == name
    assert arrow(name, Rules.TIMEPLUS) == kind


@pytest.mark.parametrize(
    ("count", "noun", "text"), [(1, "row", "1 row"), (0, "row", "0 rows"), (1200, "primary key", "1,200 primary keys")]
)
def test_counts(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text
    assert articled("index") == "an index"
    assert articled("table") == "a table"
