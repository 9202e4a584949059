"""Each fault of docs/failures.md has a test that is there."""

from __future__ import annotations

import re

import pytest

from tests.paths import ROOT

PAGE = ROOT / "docs" / "failures.md"
ROWS = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][2:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_fault_says_what_is_seen_and_names_a_test(row: str) -> None:
    fault, seen, heals, hand, tests = (cell.strip() for cell in row.strip("|").split("|"))
    named = re.findall(r"`(tests/[\w/]+\.py)`", tests)
    assert fault
    assert seen
    assert heals or hand
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_there_are_rows() -> None:
    assert len(ROWS) > 20
