"""The types of docs/data-types.md are what their names stand for, and none is left out."""

from __future__ import annotations

import re

import pytest

from dovetail.sql.syntax import types
from dovetail.sql.syntax.rules import Rules
from tests.paths import ROOT

ROWS = [line for line in (ROOT / "docs" / "data-types.md").read_text().splitlines() if line.startswith("| `")]
WRAPPERS = {"nullable", "low_cardinality", "lowcardinality"}
OTHER_SPELLINGS = {"character", "fixedstring", "enum", "enum16", "timestamp_ltz", "row", "uint", "double precision"}


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: names(row)[0])
def test_a_name_stands_for_the_type(row: str) -> None:
    timeplus, risingwave, arrow, _ = (cell.strip() for cell in row.strip("|").split("|"))
    written = [(rules, name) for rules, cell in zip(Rules, (timeplus, risingwave), strict=True) for name in names(cell)]
    found = [(name, str(types.arrow(name, rules)).replace(" ('a')", "")) for rules, name in written]
    if arrow.endswith(".."):
        assert [kind for _, kind in found] == [name for _, name in written]
    else:
        assert {kind for _, kind in found} == set(names(arrow)), found


def test_no_type_is_left_out() -> None:
    told = {re.split(r"[(\[<]", name)[0] for row in ROWS for name in names(row)}
    assert types.TYPE_NAMES - told - WRAPPERS - OTHER_SPELLINGS == set()
