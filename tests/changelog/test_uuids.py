"""Columns of UUIDs: one text for each, whatever form a record has, read in batches and one by one."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.broker.reader import RECORDS
from dovetail.changelog.decode import Decoder
from dovetail.changelog.formats.uuid_text import UUID, in_small_letters, of_another_form, uuid_text
from dovetail.changelog.schema import Column, Kind, RecordFormat, StreamSchema

ONE = uuid.UUID("78e5afd1-1b2c-4d5e-8f00-aabbccddeeff")
FORMS = [
    str,
    lambda one: str(one).upper(),
    lambda one: one.hex,
    lambda one: f"{{{one}}}",
    lambda one: "-".join(one.hex[place : place + 4] for place in range(0, 32, 4)),
]
STRANGE = [
    "",
    "x",
    str(ONE)[:-1],
    f"{ONE}0",
    f"{ONE}\n",
    f" {ONE}",
    str(ONE).replace("-", "--"),
    "{",
    f"{{{ONE}",
    "g" * 32,
]


@given(one=st.uuids(), form=st.sampled_from(FORMS))
def test_all_forms_are_one_text(one: uuid.UUID, form: object) -> None:
    assert callable(form)
    assert uuid_text(form(one)) == str(one)


@pytest.mark.parametrize("text", STRANGE)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        uuid_text(text)
    assert of_another_form(in_small_letters(pa.chunked_array([[text]]))).to_pylist() == [True]


def records(values: list[bytes | None], keys: list[bytes | None]) -> pa.Table:
    count = len(values)
    columns = [
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array([0] * count).cast(RECORDS.field("timestamp").type),
        pa.array([0] * count, pa.int32()),
        pa.array(range(count), pa.int64()),
    ]
    return pa.table(columns, schema=RECORDS)


@given(
    texts=st.lists(
        st.one_of(st.none(), st.tuples(st.uuids(), st.sampled_from(FORMS)), st.sampled_from(STRANGE)), max_size=8
    )
)
def test_records_are_read_in_one_form_or_refused(texts: list[Any]) -> None:
    schema = StreamSchema("s", (Column("n", pa.int64()), Column("u", pa.string(), form=UUID)))
    given_texts = [text[1](text[0]) if isinstance(text, tuple) else text for text in texts]
    values: list[bytes | None] = [json.dumps({"n": n, "u": text}).encode() for n, text in enumerate(given_texts)]
    decoded = Decoder(schema, ("n", "u")).decode(records(values, [None] * len(values)))
    good = {n: None if text is None else str(text[0]) for n, text in enumerate(texts) if not isinstance(text, str)}
    assert {row["n"]: row["u"] for row in decoded.rows.to_pylist()} == good
    refused = decoded.rejected.to_pylist()
    assert sorted(row["offset"] for row in refused) == [n for n, text in enumerate(texts) if isinstance(text, str)]
    assert all(row["reason"].startswith("column u: expected uuid, found ") for row in refused)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_key_that_is_one_is_one_key(form: str) -> None:
    columns = (Column("u", pa.string(), form=UUID), Column("n", pa.int64()))
    schema = StreamSchema("s", columns, Kind.UPSERT, ("u",), value=RecordFormat(form))
    key = json.dumps({"u": str(ONE).upper()}).encode()
    capital = f'{{"u": "{str(ONE).upper()}", "n": 1}}' if form == "json" else f"{str(ONE).upper()},1"
    decoded = Decoder(schema, ("u", "n")).decode(records([capital.encode(), None], [key, key]))
    assert decoded.rejected.num_rows == 0
    assert [row["u"] for row in decoded.rows.to_pylist()] == [str(ONE), str(ONE)]
