"""Columns of UUIDs and of JSON documents: one text for each value, whatever form a record has, in batches and alone."""

from __future__ import annotations

import json
import random
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.broker.reader import RECORDS
from dovetail.changelog.decode import Decoder
from dovetail.changelog.formats.text_forms import JSONB, TEXT_FORMS, UUID, jsonb_text, uuid_text
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
    form = TEXT_FORMS[UUID]
    assert form.strange is not None
    assert form.strange(form.members(pa.chunked_array([[text]]))).to_pylist() == [True]


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


DOCUMENTS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**30), 10**30),
        st.decimals(Decimal("-1e25"), Decimal("1e25"), allow_nan=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


def written(value: Any, chance: random.Random) -> str:
    """``value`` as some producer writes it: members in any order, blanks, escapes, noughts, exponents."""
    blank = chance.choice(["", " ", "\n\t"])
    if isinstance(value, dict):
        members = [f"{json.dumps(name)}{blank}:{written(one, chance)}" for name, one in value.items()]
        chance.shuffle(members)
        return "{" + f",{blank}".join(members) + "}"
    if isinstance(value, list):
        return "[" + f"{blank},".join(written(one, chance) for one in value) + "]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | Decimal):
        exact = Decimal(value)
        forms = [f"{exact:f}", f"{exact:E}"]
        return chance.choice([*forms, f"{exact:f}{'0' if '.' in forms[0] else '.00'}"])
    return json.dumps(value, ensure_ascii=chance.random() < 0.5)


@given(one=DOCUMENTS, seed=st.integers(0, 2**32))
def test_equal_documents_are_one_text(one: Any, seed: int) -> None:
    chance = random.Random(seed)
    text = jsonb_text(written(one, chance))
    assert jsonb_text(written(one, chance)) == text == jsonb_text(text)
    assert json.loads(text, parse_float=Decimal) == one


@given(one=DOCUMENTS, other=DOCUMENTS)
def test_other_documents_are_other_texts(one: Any, other: Any) -> None:
    def typed(value: Any) -> Any:
        """True is 1 to Python, and not to JSON."""
        if isinstance(value, dict):
            return {name: typed(member) for name, member in value.items()}
        return [typed(member) for member in value] if isinstance(value, list) else (isinstance(value, bool), value)

    texts = [jsonb_text(written(value, random.Random(1))) for value in (one, other)]
    assert (texts[0] == texts[1]) == (typed(one) == typed(other))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"bb": 1, "a": 2, "c": 3}', '{"a":2,"bb":1,"c":3}'),
        ('{"a": 1, "a": 2}', '{"a":2}'),
        ("[1.0, 1.50, -0.0, 1e2, 0.001, 12345678901234567890123.40, 1E400]",
         "[1,1.5,0,100,0.001,12345678901234567890123.4,1e400]"),
        ('"\\u00e9\\/"', '"\u00e9/"'),
        (" null ", "null"),
    ],
)  # fmt: skip
def test_the_form_of_a_document(text: str, expected: str) -> None:
    assert jsonb_text(text) == expected


@pytest.mark.parametrize("text", ["", "{", "NaN", "[Infinity]", "{'a': 1}", "x", '"\\ud800"', "[" * 2000, "01", "1 2"])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        jsonb_text(text)


# As the members of records are: a string is the text of a document, or a document itself.
MEMBERS = st.one_of(
    DOCUMENTS, DOCUMENTS.map(lambda one: written(one, random.Random(3))), st.sampled_from(["x", "1e", "{", "NaN"])
)


@given(members=st.lists(MEMBERS, max_size=6), seed=st.integers(0, 2**32), kept=st.booleans())
def test_members_of_records_are_read_alike_in_batches_and_alone(members: list[Any], seed: int, kept: bool) -> None:
    columns = (Column("n", pa.int64()),) if kept else ()
    schema = StreamSchema("s", (*columns, Column("d", pa.string(), form=JSONB)))
    chance = random.Random(seed)
    values: list[bytes | None] = [
        f'{{"n": {n}, "d": {written(member, chance)}}}'.encode() for n, member in enumerate(members)
    ]
    expected = [None if member is None else as_document(member) for member in members]
    decoder = Decoder(schema, tuple(column.name for column in schema.columns))
    decoded = decoder.decode(records(values, [None] * len(values)))
    assert decoded.rejected.num_rows == 0
    assert decoded.rows.column("d").to_pylist() == expected
    # Beside a record that is none each is looked at by itself.
    alone = [decoder.decode(records([value, b"{"], [None] * 2)).rows.column("d").to_pylist() for value in values]
    assert alone == [[one] for one in expected]


def as_document(member: Any) -> str:
    if not isinstance(member, str):
        return jsonb_text(written(member, random.Random(1)))
    try:
        return jsonb_text(member)
    except ValueError:
        return json.dumps(member, ensure_ascii=False)


@pytest.mark.parametrize("number", ["1e99999", "1e99999999999999999999", "[" * 300 + "]" * 300])
def test_what_no_document_holds_is_a_dead_letter_or_is_kept(number: str) -> None:
    schema = StreamSchema("s", (Column("d", pa.string(), form=JSONB),))
    decoded = Decoder(schema, ("d",)).decode(records([f'{{"d": {number}}}'.encode(), b'{"d": 1}'], [None] * 2))
    assert decoded.rows.column("d").to_pylist()[-1:] == ["1"]
    assert decoded.rows.num_rows + decoded.rejected.num_rows == 2


def test_a_default_is_in_the_form_of_its_column() -> None:
    column = Column("d", pa.string(), default="""'{"b": 1.0, "a": 2}'""", form=JSONB)
    decoder = Decoder(StreamSchema("s", (Column("n", pa.int64()), column)), ("n", "d"))
    decoded = decoder.decode(records([b'{"n": 1}', b'{"n": 2, "d": null}'], [None] * 2))
    assert decoded.rows.column("d").to_pylist() == ['{"a":2,"b":1}', None]


def test_documents_of_an_envelope_are_in_their_form() -> None:
    columns = (Column("n", pa.int64()), Column("d", pa.string(), form=JSONB))
    schema = StreamSchema("s", columns, Kind.UPSERT, ("n",), value=RecordFormat("json", envelope="debezium"))
    value = json.dumps({"before": None, "after": {"n": 1, "d": '{"b": 1.0, "a": 2}'}, "op": "c"}).encode()
    decoded = Decoder(schema, ("n", "d")).decode(records([value], [b'{"n": 1}']))
    assert decoded.rows.column("d").to_pylist() == ['{"a":2,"b":1}']


@pytest.mark.parametrize("envelope", ["", "debezium"])
def test_half_a_pair_of_surrogates_is_no_document(envelope: str) -> None:
    columns = (Column("n", pa.int64()), Column("d", pa.string(), form=JSONB))
    schema = StreamSchema("s", columns, Kind.UPSERT, ("n",), value=RecordFormat("json", envelope=envelope))
    row = '{"n": 1, "d": "\\ud800 1.0"}'
    value = f'{{"before": null, "after": {row}, "op": "c"}}' if envelope else row
    decoded = Decoder(schema, ("n", "d")).decode(records([value.encode()], [b'{"n": 1}']))
    assert (decoded.rows.num_rows, decoded.rejected.num_rows) == (0, 1)
