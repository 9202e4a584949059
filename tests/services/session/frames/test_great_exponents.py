"""A decimal of a great exponent, by every way that a text takes into a session: refused, and the process lives."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import Column, StreamSchema
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from dovetail.services.session.dictionaries.dictionary_statements import keys_of
from dovetail.services.session.frames.fitted_columns import fitted
from dovetail.services.session.typed_rows import typed_rows

DECIMAL = pa.decimal128(38, 10)
STREAM = StreamSchema("s", (Column("d", DECIMAL),))
FAR = ("1e-999999999", "1E-3000000", "-1e-77", "0." + "0" * 3_000_000 + "1")


@pytest.mark.parametrize("text", FAR, ids=lambda text: text[:14])
def test_it_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(SqlError, match="row 2 does not fit"):
        typed_rows(STREAM, ["d"], [("1",), (text,)])
    with pytest.raises(SqlError, match="row 1 "):
        fitted(pa.chunked_array([["1", text]]), DECIMAL, "d")
    with pytest.raises(SqlError, match="is no value of d"):
        keys_of(Definition("d", STREAM.columns, ("d",), SourceSpec("fake"), LayoutSpec("cache")), [text])
