"""Every fix that a refusal offers works: beside each query that is refused stand those that follow its advice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from dovetail.changelog.errors import SqlError
from tests.paths import ROOT
from tests.sql.planner import Planner

FIXES = Path(__file__).parent / "fixes"
DDL = (FIXES / "world.sql").read_text()
PACKAGES = ("sql/bind", "sql/plan", "sql/rules")
"""Where refusals are of a query as it is planned; a new one there needs a case here."""


@dataclass(frozen=True)
class Case:
    """``refused`` and what is written in its place, each a statement, or several of which the last is planned."""

    refused: str
    mended: tuple[str, ...]


def cases() -> Iterator[Case]:
    for path in sorted(FIXES.glob("*.cases")):
        for block in path.read_text().strip().split("\n\n"):
            lines = [line.split(" ", 1) for line in block.splitlines()]
            assert [mark for mark, _ in lines] == ["no", *["ok"] * (len(lines) - 1)], block
            assert len(lines) > 1, f"no fix is applied to: {block}"
            yield Case(lines[0][1], tuple(line for _, line in lines[1:]))


@cache
def world() -> Planner:
    return Planner.of(*DDL.split(";\n"))


def plan(script: str) -> None:
    *declarations, statement = script.split("; ")
    planner = world()
    if declarations:
        planner = Planner.of(*DDL.split(";\n"), *declarations)
    planner.plan(statement)


def refusal(case: Case) -> SqlError:
    with pytest.raises(SqlError) as refused:
        plan(case.refused)
    return refused.value


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.refused)
def test_what_follows_the_fix_is_planned(case: Case) -> None:
    assert refusal(case).fix
    for mended in case.mended:
        plan(mended)


@dataclass(frozen=True)
class Refusal:
    """A place in the code that makes an error with a fix; ``message`` is a pattern of what it says."""

    place: str
    message: str


def refusals() -> Iterator[Refusal]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and node.args and any(keyword.arg == "fix" for keyword in node.keywords):
                    yield Refusal(f"{path.relative_to(ROOT)}:{node.lineno}", _pattern(node.args[0]))


def _pattern(message: ast.expr) -> str:
    """What the text may be: anything stands for what is put into it."""
    match message:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.JoinedStr(values=parts):
            return "".join(map(_pattern, parts))
        case _:
            return ".*"


def test_every_refusal_has_a_case() -> None:
    """But those of rows that are read at once, and those that pass on what another error says."""
    said = [refusal(case).what for case in cases()]
    plain = [one for one in refusals() if one.message != ".*" and "/bounded/" not in one.place]
    assert [one.place for one in plain if not any(re.fullmatch(one.message, what, re.DOTALL) for what in said)] == []
