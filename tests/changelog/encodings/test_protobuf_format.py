"""Protobuf: what is written comes back, a batch reads as its records one by one, and what is broken says why."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.decode import Decoded, Decoder
from dovetail.changelog.encode import Forms
from dovetail.changelog.encodings import registry
from dovetail.changelog.encodings.interface import Reads, SchemaDefinition
from dovetail.changelog.encodings.protobuf.schema import MessageFile
from dovetail.changelog.encodings.protobuf.schema_parser import ProtobufSchemaParser
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.encodings.schema_id_framing.subjects import MESSAGE_OPTION, SUBJECT
from dovetail.changelog.encodings.settings import value_format
from dovetail.changelog.errors import SqlError
from dovetail.changelog.formats.members import Member
from dovetail.changelog.schema import Column, RecordFormat, StreamSchema
from dovetail.changelog.values import normalised
from tests.changelog.encodings.avro_records import Schemas, as_records
from tests.changelog.encodings.protobuf_records import encoded, message_class, proto
from tests.nasty import COLUMNS, NESTED
from tests.tries import tries

LANGUAGE = ProtobufSchemaParser()
FORM = RecordFormat("protobuf")
UTC = dt.UTC
MS = pa.timestamp("ms", "UTC")

SHOP = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum State { OPEN = 0; PAID = 1; }
message Order {
  message Line { string item = 1; optional int32 count = 2; }
  int64 id = 1;
  optional string note = 2;
  State state = 3;
  repeated State states = 4;
  Line first = 5;
  repeated Line lines = 6;
  map<string, int64> counts = 7;
  map<int32, Line> by_number = 8;
  google.protobuf.Timestamp at = 9;
  google.protobuf.Int64Value perhaps = 10;
  google.protobuf.StringValue name = 11;
  repeated sint64 numbers = 12;
  bytes raw = 13;
  double price = 14;
  uint64 great = 15;
  fixed32 small = 16;
  bool open = 17;
  oneof either { string left = 18; int32 right = 19; }
  string text = 20;
}
message Other { string text = 20; bool id = 1; }
"""


def decoded(
    schemas: Schemas, values: list[bytes | None], columns: dict[str, pa.DataType], form: RecordFormat = FORM
) -> Decoded:
    """By the batch, and known to be the same one by one."""
    stream = StreamSchema("s", tuple(Column(*one) for one in columns.items()), value=form)
    decoder = Decoder(stream, tuple(columns), schemas)
    batch, singly = decoder.decode(as_records(values)), decoder.decode_singly(as_records(values))
    assert repr(batch.rows.to_pylist()) == repr(singly.rows.to_pylist())
    assert batch.rejected.equals(singly.rejected)
    return batch


def reasons(found: Decoded) -> list[str]:
    return [str(one) for one in found.rejected.column("reason").to_pylist()]


def known(*definitions: SchemaDefinition) -> Schemas:
    return Schemas(dict(enumerate(definitions, 1)))


NESTED_LISTS = pa.list_(pa.list_(pa.float64()))
KINDS = {f"c{n}": kind for n, kind in enumerate((*COLUMNS, *NESTED)) if kind not in (NESTED_LISTS, pa.large_string())}
KINDS["time"] = pa.time64("us")
VALUES = {**COLUMNS, **NESTED, pa.time64("us"): st.sampled_from([dt.time(0), dt.time(23, 59, 59, 999_999)])}


def whole(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """NULL stands for a row alone: a list or a map has none inside."""
    if pa.types.is_list(kind):
        return VALUES[kind].map(lambda one: [inner for inner in one if inner is not None])
    if pa.types.is_map(kind):
        return VALUES[kind].map(lambda one: [pair for pair in one if pair[1] is not None])
    return st.none() | VALUES[kind]


@cache
def own() -> SchemaDefinition:
    return proto(LANGUAGE.own(pa.schema(list(KINDS.items())), "t").text)


@given(st.lists(st.fixed_dictionaries({name: whole(kind) for name, kind in KINDS.items()}), max_size=4))
@settings(max_examples=tries(50), deadline=None)
def test_what_is_written_comes_back(rows: list[dict[str, Any]]) -> None:
    table = pa.table([pa.array([row[name] for row in rows], kind) for name, kind in KINDS.items()], names=list(KINDS))
    schemas = known(own())
    written = Forms(RecordFormat("protobuf", ((SUBJECT, "1"),)), schemas=schemas).values(table)
    back = decoded(schemas, written, KINDS)
    assert reasons(back) == []
    assert repr(back.rows.select(table.column_names).to_pylist()) == repr(normalised(table).to_pylist())


def test_a_null_list_comes_back_empty_and_a_null_inside_is_refused() -> None:
    definition = proto(LANGUAGE.own(pa.schema([("l", pa.list_(pa.int64()))]), "lists").text)
    forms = Forms(RecordFormat("protobuf", ((SUBJECT, "1"),)), schemas=known(definition))
    written = forms.values(pa.table({"l": pa.array([None, [], [1]], pa.list_(pa.int64()))}))
    found = decoded(known(definition), written, {"l": pa.list_(pa.int64())})
    assert found.rows.column("l").to_pylist() == [[], [], [1]]
    with pytest.raises(SqlError, match="holds a NULL inside"):
        forms.values(pa.table({"l": pa.array([[None]], pa.list_(pa.int64()))}))


LINE = pa.struct([("count", pa.int64()), ("item", pa.string()), ("more", pa.bool_())])
AT = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
ORDER: list[tuple[str, Any, pa.DataType, Any, Any]] = [
    ("id", -5, pa.int64(), -5, 0),
    ("id", 7, pa.decimal128(9, 2), Decimal("7.00"), Decimal("0.00")),
    ("id", 7, pa.float64(), 7.0, 0.0),
    ("note", "é", pa.string(), "é", None),
    ("state", 1, pa.string(), "PAID", "OPEN"),
    ("state", 9, pa.string(), "9", "OPEN"),
    ("state", 1, pa.int32(), 1, 0),
    ("states", [1, 0], pa.list_(pa.string()), ["PAID", "OPEN"], []),
    ("first", {"item": "x"}, LINE, {"count": None, "item": "x", "more": None}, None),
    ("lines", [{"item": "x", "count": 2}], pa.list_(LINE), [{"count": 2, "item": "x", "more": None}], []),
    ("counts", {"b": 2, "a": 1}, pa.map_(pa.string(), pa.int32()), [("a", 1), ("b", 2)], []),
    ("by_number", {1: {"item": "x"}}, pa.map_(pa.int64(), LINE), [(1, {"count": None, "item": "x", "more": None})], []),
    ("at", {"seconds": -1, "nanos": 999_999_999}, MS, AT.replace(microsecond=999_000), None),
    ("at", {"seconds": -1, "nanos": 999_999_999}, pa.timestamp("us", "UTC"), AT, None),
    ("perhaps", {"value": 0}, pa.int64(), 0, None),
    ("name", {"value": "x"}, pa.string(), "x", None),
    ("numbers", [-1, 2**62], pa.list_(pa.int64()), [-1, 2**62], []),
    ("raw", b"\xc3\xa9", pa.string(), "é", ""),
    ("raw", b"\xff", pa.binary(), b"\xff", b""),
    ("price", 1.5, pa.float32(), 1.5, 0.0),
    ("great", 2**64 - 1, pa.uint64(), 2**64 - 1, 0),
    ("small", 2**32 - 1, pa.int64(), 2**32 - 1, 0),
    ("open", True, pa.bool_(), True, False),
    ("left", "", pa.string(), "", None),
    ("right", 3, pa.int8(), 3, None),
    ("absent", None, pa.int8(), None, None),
]


@pytest.mark.parametrize(("name", "value", "column", "expected", "empty"), ORDER)
def test_each_type_has_its_column(name: str, value: Any, column: pa.DataType, expected: Any, empty: Any) -> None:
    definition = proto(SHOP)
    order = message_class(definition)
    full = order() if name == "absent" else order(**{name: value})
    found = decoded(known(definition), [encoded(1, full), encoded(1, order())] * 2, {name: column})
    assert reasons(found) == []
    assert found.rows.column(name).to_pylist() == [expected, empty] * 2
    if name != "absent":
        LANGUAGE.members(definition, FORM)[name](column)


@pytest.mark.parametrize(
    ("name", "value", "column", "reason"),
    [
        ("id", 2**40, pa.int32(), "column id: "),
        ("great", 2**63, pa.int64(), "column great: "),
        ("raw", b"\xff", pa.string(), "column raw: "),
        ("id", 1, pa.string(), "message shop.Order: column id: it is int64, and the column text"),
        ("first", {}, pa.string(), "message shop.Order: column first: it is shop.Order.Line, and the column text"),
        ("states", [], pa.string(), "message shop.Order: column states: it is repeated enum"),
        ("counts", {}, pa.list_(pa.string()), "message shop.Order: column counts: it is map"),
        ("at", {"seconds": 2**62}, MS, "column at: "),
        ("text", "1.2.3", pa.decimal128(9, 2), "column text: "),
        ("text", "25:00", pa.time64("us"), "column text: "),
    ],
)
def test_a_value_that_does_not_fit_is_a_dead_letter(name: str, value: Any, column: pa.DataType, reason: str) -> None:
    definition = proto(SHOP)
    order = message_class(definition)
    found = decoded(known(definition), [encoded(1, order(**{name: value}))], {name: column})
    assert found.rows.num_rows == 0
    assert reasons(found)[0].startswith(reason)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x08\x05", "does not begin with 00 and the id of a schema, but with 08 05"),
        (wire.head(99) + b"\0", "the schema registry has no schema 99"),
        (wire.head(1), "the value ends before it says which message it is"),
        (wire.head(1) + b"\x02", "the value ends before it says which message it is"),
        (wire.head(1) + b"\xff" * 12, "the value ends before it says which message it is"),
        (wire.head(1) + b"\x02\x0e", "its schema has no message at [7]"),
        (wire.head(1) + b"\0\x08", "the value is no message of its schema: "),
        (wire.head(1) + b"\0\x12\x01\xff", "the value is no message of its schema: "),
        (wire.head(2) + b"\0", "schema 2: it is of AVRO, and the stream has PROTOBUF"),
        (wire.head(3) + b"\0", "schema 3: it is no schema of Protobuf"),
    ],
)
def test_broken_records_stand_in_nobodys_way(value: bytes, reason: str) -> None:
    definition = proto(SHOP)
    schemas = known(definition, SchemaDefinition("AVRO", '"string"'), SchemaDefinition("PROTOBUF", "message"))
    good = encoded(1, message_class(definition)(id=5))
    found = decoded(schemas, [good, value, good], {"id": pa.int64()})
    assert found.rows.column("id").to_pylist() == [5, 5]
    assert [reason in one for one in reasons(found)] == [True]


def test_a_value_says_which_message_it_is() -> None:
    definition = proto(SHOP)
    order, line, other = (message_class(definition, path) for path in ((0,), (0, 0), (1,)))
    values: list[bytes | None] = [
        encoded(1, order(text="a")),
        encoded(1, other(text="b"), (1,)),
        encoded(1, line(item="c"), (0, 0)),
        wire.head(1) + b"\x02\x00" + bytes(order(text="d").SerializeToString()),
    ]
    found = decoded(known(definition), values, {"text": pa.string()})
    assert found.rows.column("text").to_pylist() == ["a", "b", None, "d"]
    form = RecordFormat("protobuf", ((MESSAGE_OPTION, "Other"),))
    found = decoded(known(definition), values, {"text": pa.string()}, form)
    assert found.rows.column("text").to_pylist() == ["b"]
    assert reasons(found)[1] == "the value is a message shop.Order.Line, and the stream has Other"
    assert set(LANGUAGE.members(definition, form)) == {"id", "text"}


def test_a_default_of_the_schema_is_not_taken_for_a_value() -> None:
    definition = proto('syntax = "proto2"; message M { optional int32 a = 1 [default = 5]; optional double b = 2; }')
    kind = message_class(definition)
    values = [encoded(1, message) for message in (kind(), kind(a=0, b=-0.0), kind(a=5, b=0.0))]
    found = decoded(known(definition), list(values), {"a": pa.int64(), "b": pa.float64()})
    wanted = [{"a": None, "b": None}, {"a": 0, "b": 0.0}, {"a": 5, "b": 0.0}]
    assert found.rows.select(["a", "b"]).to_pylist() == wanted


def test_messages_of_several_kinds_are_read_at_once() -> None:
    definition = proto(SHOP)
    order, other = message_class(definition), message_class(definition, (1,))
    values = [encoded(1, order(text=str(n))) if n % 3 else encoded(1, other(text=str(n)), (1,)) for n in range(9)]
    stream = StreamSchema("s", (Column("text", pa.string()),), value=FORM)
    reader = registry.reader(Reads(FORM, stream, (Member("text", pa.string()),), schemas=known(definition)))
    read = reader.read(pa.array(values, pa.binary()))
    assert read.column("text").to_pylist() == [str(n) for n in range(9)]


def test_members_that_a_schema_does_not_know_are_passed_over() -> None:
    newer, older = proto(SHOP), proto('syntax = "proto3"; message Order { string text = 20; }')
    value = encoded(1, message_class(newer)(id=5, text="x", counts={"a": 1}))
    assert decoded(known(older), [value, value], {"text": pa.string()}).rows.column("text").to_pylist() == ["x", "x"]


@given(st.lists(st.tuples(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=3), st.integers(0, 3))))
@settings(max_examples=tries(100), deadline=None)
def test_random_bytes_are_rows_or_dead_letters(cuts: list[Any]) -> None:
    definition = proto(SHOP)
    order = message_class(definition)
    values: list[bytes | None] = []
    for number, (changes, kept) in enumerate(cuts):
        message = order(id=number, note="é" * number, states=[1], lines=[{"item": "x"}], counts={"a": 1}, numbers=[-1])
        value = bytearray(encoded(1, message))
        for place, byte in changes:
            value[5 + place % (len(value) - 5)] = byte
        values.append(bytes(value if kept else value[:-1]))
    columns = {
        "id": pa.int64(),
        "note": pa.string(),
        "states": pa.list_(pa.string()),
        "lines": pa.list_(LINE),
        "counts": pa.map_(pa.string(), pa.int8()),
        "numbers": pa.list_(pa.int32()),
        "at": MS,
    }
    found = decoded(known(definition), values, columns)
    assert found.rows.num_rows + found.rejected.num_rows == len(values)


def test_a_member_keeps_its_number_and_none_is_given_twice() -> None:
    first = proto(LANGUAGE.own(pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())]), "s").text)
    second = proto(
        LANGUAGE.own(pa.schema([("new", pa.int64()), ("c", pa.bool_()), ("a", pa.int64())]), "s", first).text
    )
    third = proto(LANGUAGE.own(pa.schema([("b", pa.int64()), ("a", pa.int64())]), "s", second).text)
    numbers = [{one.name: one.number for one in MessageFile.of(d).root.message_type[0].field} for d in (second, third)]
    assert numbers == [{"new": 4, "c": 3, "a": 1}, {"b": 5, "a": 1}]
    assert LANGUAGE.is_own(third, "s")
    assert not LANGUAGE.is_own(third, "t")
    assert not LANGUAGE.is_own(proto(SHOP), "s")


def test_names_that_mean_something_in_protobuf_are_names() -> None:
    names = ["message", "optional", "google", "Record1", "reserved", "s", "_tp_delta", "HasField"]
    columns = pa.schema([(name, pa.int32()) for name in names] + [("r", pa.struct([("google", MS), ("r", MS)]))])
    definition = proto(LANGUAGE.own(columns, "google").text)
    assert set(LANGUAGE.members(definition, FORM)) == set(columns.names)
    with pytest.raises(SqlError, match="cannot be the name of a member"):
        LANGUAGE.own(pa.schema([("a b", pa.int32())]), "s")


@pytest.mark.parametrize("kind", [NESTED_LISTS, pa.map_(pa.float64(), pa.int32()), pa.map_(pa.string(), NESTED_LISTS)])
def test_a_column_without_a_form_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(SqlError, match="has no form in Protobuf"):
        LANGUAGE.own(pa.schema([("a", kind)]), "s")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.table({"nope": [1]}), "has no member nope"),
        (pa.table({"id": [1]}), "member id is not optional"),
        (pa.table({"note": [1]}), "member note is string"),
        (pa.table({"perhaps": [1]}), "member perhaps is google.protobuf.Int64Value"),
    ],
)
def test_rows_are_not_written_by_a_schema_of_others(column: pa.Table, said: str) -> None:
    forms = Forms(RecordFormat("protobuf", ((SUBJECT, "1"),)), schemas=known(proto(SHOP)))
    with pytest.raises(SqlError, match=said):
        forms.values(column)


@pytest.mark.parametrize(
    "said",
    [{"data_format": "ProtobufSingle"}, {"encode": "protobuf", "encode.message": "Order"}, {"encode": "protobuf"}],
)
def test_both_dialects_have_a_name_for_it(said: dict[str, object]) -> None:
    found = value_format(said)
    assert (found.kind, found.option(MESSAGE_OPTION)) == ("protobuf", str(said.get("encode.message", "")))
