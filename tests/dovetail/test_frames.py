"""Frames of every library as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dovetail.changelog.errors import SqlError
from dovetail.frames import arrow_of
from dovetail.query_result import QueryResult

MAP = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (lambda: pd.DataFrame({"a": [1, "x"]}), "column a"),
        (lambda: pd.DataFrame({"a": [object()]}), "column a"),
        (lambda: pd.DataFrame({"a": [1j]}), "column a"),
        (lambda: pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0])}), "column a"),
        (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), '"a" is there twice'),
        (lambda: pd.Series([1], name="a"), "Series is a column"),
        (lambda: pl.Series("a", [1]), "Series is a column"),
        (lambda: pl.DataFrame({"a": [1]}).lazy(), "LazyFrame"),
        (lambda: pl.DataFrame({"a": [object()]}), "objects of Python"),
        (lambda: pl.DataFrame({"a": [1]}, schema={"a": pl.Int128}), "cannot be read"),
        (lambda: [{"a": 2**70}], "too large"),
        (lambda: [{"a": "\ud800"}], "surrogates"),
        (lambda: [{1: 2}], "1 is no name of a column"),
        (lambda: [1], "list has no rows"),
        (lambda: "text", "str has no rows"),
        (lambda: None, "NoneType has no rows"),
    ],
)
def test_what_no_column_can_have_is_refused(rows: Callable[[], Any], words: str) -> None:
    with pytest.raises(SqlError) as refused:
        arrow_of(rows(), {"a": pa.int64()})
    assert words in str(refused.value)
    assert refused.value.fix
    str(refused.value).encode()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (pd.DataFrame({"a": pd.Categorical(["x", None])}), ["x", None]),
        (pd.DataFrame({"a": [1.5, float("nan")]}), [1.5, None]),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), [1, None]),
        (pd.DataFrame({"a": [pd.NaT]}), [None]),
        (pd.DataFrame({"a": np.array([2**64 - 1], dtype="uint64")}), [2**64 - 1]),
        (pd.DataFrame({"a": [[1], None]}), [[1], None]),
        (pd.DataFrame({"a": [1, 2]}).iloc[1:], [2]),
        (pl.DataFrame({"a": ["x"]}, schema={"a": pl.Categorical}), ["x"]),
        (pl.DataFrame({"a": [["x"]]}, schema={"a": pl.List(pl.Enum(["x"]))}), [["x"]]),
        (pa.table({"a": [1]}).to_reader(), [1]),
        ([{"a": np.int64(1)}, {}], [1, None]),
    ],
)
def test_the_values_are_those_of_the_frame(rows: Any, expected: list[Any]) -> None:
    assert arrow_of(rows, {"a": pa.string()}).column("a").to_pylist() == expected


@pytest.mark.parametrize("kind", [MAP, pa.list_(MAP), pa.struct([("m", MAP)])])
def test_dictionaries_are_maps_where_the_stream_says_so(kind: pa.DataType) -> None:
    inner: dict[str, Any] = {"k": 1}
    value = inner if kind == MAP else [inner] if pa.types.is_list(kind) else {"m": inner}
    for rows in ([{"a": value}, {"a": None}], pd.DataFrame({"a": [value, None]})):
        column = arrow_of(rows, {"a": kind}).column("a")
        assert column.type == kind
        assert column.null_count == 1


def test_an_index_that_has_a_name_is_a_column() -> None:
    frame = pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([(2, 3)], names=["k", "j"]))
    assert arrow_of(frame, {}).to_pylist() == [{"a": 1, "k": 2, "j": 3}]


def test_integers_and_truth_values_stay_so_with_a_null() -> None:
    large = 2**53 + 1
    table = pa.table({"i": [large, None], "u": pa.array([1, 2], pa.uint8()), "b": [True, None]})
    frame = QueryResult("", table).pandas()
    assert dict(frame.dtypes.astype(str)) == {"i": "Int64", "u": "UInt8", "b": "boolean"}
    assert frame["i"][0] == large
    assert frame["i"][1] is pd.NA
