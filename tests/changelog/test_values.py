"""One definition of equality: normalised bytes, equal rows, groups and hashes agree with each other and with DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.hashing import row_hashes
from dovetail.changelog.rows import RowsByKey, distinct, equal_rows, missing_side, numbered
from dovetail.changelog.values import holds_floats, normalised
from tests.nasty import COLUMNS, FLOATS, NESTED, canonical
from tests.tries import tries

TYPES = [*COLUMNS, *NESTED]


def table(kind: pa.DataType, values: Sequence[Any]) -> pa.Table:
    return pa.table({"v": pa.array(values, kind)})


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=tries(30))
@given(data=st.data())
def test_equality_groups_and_hashes_agree(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | {**COLUMNS, **NESTED}[kind], max_size=8))
    rows = table(kind, values)
    known = [canonical(value) for value in rows.column("v").to_pylist()]
    count = len(known)
    left = rows.take(pa.array(np.repeat(np.arange(count), count), pa.int64()))
    right = rows.take(pa.array(np.tile(np.arange(count), count), pa.int64()))
    expected = [a == b for a in known for b in known]
    for form in (left, normalised(left)):
        assert equal_rows(form, right, [("v", "v")], [True]).tolist() == expected
        assert equal_rows(form, right, [("v", "v")], [False]).tolist() == [
            same and one is not None for same, one in zip(expected, [a for a in known for _ in known], strict=True)
        ]
    numbers, firsts = numbered(rows)
    assert [a == b for a in numbers for b in numbers] == expected
    assert len(firsts) == len(set(map(repr, known)))
    hashes = row_hashes(rows, ["v"])
    assert [a == b for a in hashes for b in hashes] == expected
    order = list(dict.fromkeys(map(repr, known)))
    assert [repr(canonical(one)) for one in distinct(rows).column("v").to_pylist()] == order
    groups = RowsByKey.by(rows, ["v"])
    assert (
        [repr(known[place]) for place in groups.members[groups.begins]] == order if count else groups.begins.size == 0
    )
    assert groups.members.tolist() == sorted(range(count), key=lambda place: (order.index(repr(known[place])), place))


@pytest.mark.parametrize("kind", [kind for kind in TYPES if holds_floats(kind)], ids=str)
@settings(max_examples=tries(30))
@given(data=st.data())
def test_equal_values_are_written_alike(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | {**COLUMNS, **NESTED}[kind], max_size=8))
    rows = table(kind, [None, *values]).slice(1)
    formed = normalised(rows)
    assert formed.schema == rows.schema
    assert list(map(repr, formed.column("v").to_pylist())) == [
        repr(value).replace("-0.0", "0.0") if value is not None else "None" for value in rows.column("v").to_pylist()
    ]
    assert normalised(formed).equals(formed) or "nan" in repr(values)


def test_a_nan_has_one_form_whatever_its_bits() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], dtype=np.uint64)
    rows = pa.table({"v": bits.view(np.float64)})
    assert len(set(row_hashes(rows, ["v"]).tolist())) == 1
    assert set(normalised(rows).column("v").to_numpy().view(np.uint64).tolist()) == {0x7FF8000000000000}
    assert normalised(rows.select([])).num_columns == 0


def test_a_null_hides_bytes_of_any_length() -> None:
    """Arrow leaves in place what stood where a NULL is now."""
    hidden = pa.array(["x" * 300, "y" * 300, "z"])
    valid = pa.array([False, True, True]).buffers()[1]
    rows = pa.table({"v": pa.Array.from_buffers(pa.string(), 3, [valid, *hidden.buffers()[1:]])})
    plain = pa.table({"v": pa.array([None, "y" * 300, "z"])})
    assert row_hashes(rows, ["v"]).tolist() == row_hashes(plain, ["v"]).tolist()


@given(st.lists(st.none() | FLOATS, max_size=8))
def test_groups_are_those_of_duckdb(values: list[float | None]) -> None:
    rows = table(pa.float64(), values)
    found = duckdb.connect().register("rows", rows).execute("SELECT v, count(*) AS n FROM rows GROUP BY v").fetchall()
    numbers, firsts = numbered(rows)
    ours = zip(rows.column("v").take(pa.array(firsts)).to_pylist(), np.bincount(numbers).tolist(), strict=True)
    assert sorted((repr(canonical(v)), n) for v, n in found) == sorted((repr(canonical(v)), n) for v, n in ours)


@pytest.mark.parametrize("kind", [*TYPES, pa.decimal128(38, 38), pa.decimal128(1, 0), pa.time64("us")], ids=str)
def test_every_type_has_a_default(kind: pa.DataType) -> None:
    padded = missing_side(pa.schema([("v", kind)]), 2, defaults=True).column("v")
    assert padded.type == kind
    if not (pa.types.is_struct(kind) or pa.types.is_map(kind)):
        assert padded.null_count == 0
        assert not any(value for value in padded.to_pylist() if not isinstance(value, date | datetime | time))
