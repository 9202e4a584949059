"""Which declared types the columns of a database fit: said at CREATE, and not by a dead letter for each row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.changelog.wording import type_words
from dovetail.dictionaries.sources.column_types import fits, fix_of_type
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import arrow


@pytest.mark.parametrize(
    ("there", "declared"),
    [
        (pa.decimal128(8, 2), pa.int32()),
        (pa.decimal128(8, 2), pa.uint64()),
        (pa.decimal128(8, 2), pa.decimal128(8, 1)),
        (pa.float64(), pa.int64()),
        (pa.string(), pa.int32()),
    ],
)
def test_what_would_lose_digits_does_not_fit(there: pa.DataType, declared: pa.DataType) -> None:
    assert not fits(there, declared)
    assert fits(there, pa.string())
    assert f'declare "rate" as {type_words(there)}' in fix_of_type("rate", there)
    assert arrow(type_words(there), Rules.TIMEPLUS) == there


@pytest.mark.parametrize(
    ("there", "declared"),
    [
        (pa.decimal128(8, 0), pa.int32()),
        (pa.decimal128(8, 2), pa.decimal128(10, 2)),
        (pa.decimal128(8, 2), pa.float64()),
        (pa.int64(), pa.decimal128(8, 2)),
        (pa.int64(), pa.int32()),
        (pa.bool_(), pa.int8()),
        (pa.float64(), pa.decimal128(8, 2)),
    ],
)
def test_what_may_be_read_as_it_is_fits(there: pa.DataType, declared: pa.DataType) -> None:
    assert fits(there, declared)
