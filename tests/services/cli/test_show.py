"""How values and rows look."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

import pyarrow as pa
import pytest

from dovetail.services.cli.cells import text
from dovetail.services.cli.row_format import Format
from dovetail.services.cli.show import Screen

CHANGES = pa.table({"id": [1, 1], "name": ["a", None], "_tp_delta": pa.array([1, -1], pa.int32())})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "NULL"),
        (True, "true"),
        (1, "1"),
        (0.1, "0.1"),
        (1e20, "1e+20"),
        (Decimal("1.50"), "1.50"),
        ("it's", "it's"),
        (b"\x01\xff", "01ff"),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31 12:00:00.000"),
        (datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC), "2026-01-31 12:00:00.000001"),
        (date(2026, 1, 31), "2026-01-31"),
        ([1, None], "[1, NULL]"),
        ({"a": 1}, "{a: 1}"),
        ([("k", 1)], "[(k, 1)]"),
    ],
)
def test_values(value: Any, shown: str) -> None:
    assert text(value) == shown


def test_rows_are_aligned_numbers_to_the_right() -> None:
    output = StringIO()
    Screen(output=output).rows(pa.table({"n": [1, 100], "s": ["long text", "x"]}))
    assert output.getvalue() == "  n  s\n---  ---------\n  1  long text\n100  x\n"


def test_no_rows_still_have_a_header() -> None:
    output = StringIO()
    Screen(output=output).rows(pa.table({"n": pa.array([], pa.int64())}))
    assert output.getvalue() == "n\n-\n"


def test_rows_as_json_lines() -> None:
    output = StringIO()
    Screen(Format.JSON, output).rows(CHANGES)
    assert output.getvalue() == '{"id":1,"name":"a","_tp_delta":1}\n{"id":1,"name":null,"_tp_delta":-1}\n'


def test_a_changelog_has_one_header_until_a_column_grows() -> None:
    output = StringIO()
    lines = Screen(output=output).changelog(CHANGES.schema)
    lines.add(CHANGES)
    lines.add(CHANGES)
    lines.add(CHANGES.slice(0, 0))
    assert lines.count == 4
    assert output.getvalue().count("_tp_delta") == 1
    lines.add(pa.table({"id": [12345], "name": ["b"], "_tp_delta": pa.array([1], pa.int32())}))
    assert output.getvalue().count("_tp_delta") == 2
