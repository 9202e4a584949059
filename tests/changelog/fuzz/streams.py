"""The streams that read nasty records: of each a decoder, good records, and how a nasty value becomes a record."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import Forms, encode
from dovetail.changelog.encodings.avro import generated_schema as avro
from dovetail.changelog.encodings.json_schema import generated_schema as json_schema
from dovetail.changelog.encodings.protobuf import generated_schema as protobuf
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.encodings.schema_id_framing.subjects import SUBJECT
from dovetail.changelog.schema import JSON, Column, Kind, RecordFormat, StreamSchema
from tests.changelog.encodings.avro_records import Schemas
from tests.changelog.encodings.protobuf_records import proto
from tests.changelog.fuzz.nasty import GREAT, LARGE, SMALL, mutated, noise
from tests.changelog.records import TYPES

_OF_KEY = b'{"n":1}'
Record = tuple[bytes | None, bytes | None]
_AT = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)


@dataclass(frozen=True)
class NastyStream:
    """``wrapped``: a record with a nasty value in it; ``bad``: records of which nothing is a value."""

    name: str
    decoder: Decoder
    good: Record
    wrapped: Callable[[bytes], Record]
    bad: tuple[Record, ...] = ()
    keyed: bool = False

    def records(self, chance: random.Random, count: int, share: float) -> Iterator[Record]:
        """``count`` mutated ones; of nasty values a ``share``, of great ones the fourth part of that, or all."""
        yield from self.bad
        yield from map(self.wrapped, chance.sample(SMALL, round(len(SMALL) * share)))
        yield from map(self.wrapped, chance.sample(GREAT, round(len(GREAT) * (share if share == 1 else share / 4))))
        bytes_of_nothing = noise(chance)
        for number in range(count):
            made = next(bytes_of_nothing) if number % 8 == 0 else mutated(self._nasty_part, chance)
            yield (made, self.good[1]) if self.keyed else (self.good[0], made)

    @property
    def _nasty_part(self) -> bytes:
        return (self.good[0] if self.keyed else self.good[1]) or b""


def _texts(form: str) -> Iterator[NastyStream]:
    for kind in TYPES:
        if form != "raw" or not pa.types.is_nested(kind):
            yield _of_texts(kind, RecordFormat(form))


def _all_keys() -> Iterator[NastyStream]:
    for kind in TYPES:
        if not (pa.types.is_nested(kind) or pa.types.is_floating(kind)):
            yield from (_keys(kind, RecordFormat(form)) for form in ("json", "raw"))


def _decoder(stream: StreamSchema, schemas: Schemas | None = None) -> Decoder:
    return Decoder(stream, tuple(column.name for column in stream.columns), schemas)


def _written(stream: StreamSchema, rows: pa.Table, schemas: Schemas | None = None) -> Record:
    keys = tuple((name, name) for name in stream.primary_key)
    form = "upsert" if stream.primary_key else "changelog"
    forms = Forms(stream.value, stream.key, schemas)
    made = encode(Changes.of(rows).table, tuple(rows.column_names), keys, bool(keys), form, forms)
    return made.keys[0], made.values[0]


def _of_texts(kind: pa.DataType, value: RecordFormat) -> NastyStream:
    stream = StreamSchema("s", (Column("v", kind),), value=value)
    good = _written(stream, pa.table({"v": pa.array([good_value(kind)], kind)}))
    wrap: Callable[[bytes], Record] = (
        (lambda one: (None, b'{"v":%s}' % one)) if value == JSON else lambda one: (None, one)
    )
    bad = tuple((None, bad) for bad in _NO_OBJECTS) if value == JSON else ()
    return NastyStream(f"{value.kind} {kind}", _decoder(stream), good, wrap, bad)


_NO_OBJECTS = (
    *(
        b"",
        b"1",
        b"null",
        b"[]",
        b"{",
        b"}",
        b"{}{}",
        b'\xef\xbb\xbf{"v":1}',
        b'{"v":1',
        b"{'v':1}",
        b'{"v":1}\n{"v":2}',
    ),
    *(
        b'{"v":1,"v":"x"}',
        b'{"\\u0076":"1e-3000000"}',
        b'{"_tp_time":1e999999999,"v":1}',
        b'{"v":1,"x":%s}' % (b"[" * 5_000),
    ),
    *(b'{"x":%s1%s,"v":null}' % (b"[" * 900, b"]" * 900), b'{"v":null}' + b" " * LARGE, b'{"%s":1}' % (b"v" * LARGE)),
)


def _debezium(kind: pa.DataType) -> NastyStream:
    stream = StreamSchema("s", (Column("v", kind),), Kind.CHANGELOG, value=RecordFormat(envelope="debezium"))
    plain = _written(
        replace(stream, value=JSON, kind=Kind.APPEND), pa.table({"v": pa.array([good_value(kind)], kind)})
    )[1]
    bad = tuple((None, b'{"op":%s,"after":%s}' % (op, after)) for op in (b'"c"', b'"u"', b"1") for after in SMALL[:8])
    wrap: Callable[[bytes], Record] = lambda one: (None, b'{"op":"u","before":{"v":%s},"after":{"v":%s}}' % (one, one))  # noqa: E731
    return NastyStream(
        f"debezium {kind}", _decoder(stream), (None, b'{"op":"c","after":%s}' % (plain or b"")), wrap, bad
    )


def _beside_a_decimal(kind: pa.DataType) -> NastyStream:
    """Numbers are read to the last digit where one of the columns is a decimal."""
    stream = StreamSchema("s", (Column("v", kind), Column("d", pa.decimal128(38, 10))))
    rows = pa.table({"v": pa.array([good_value(kind)], kind), "d": pa.array([Decimal("1.5")], pa.decimal128(38, 10))})
    beside = b'{"d":1.5,"v":%s}'
    return NastyStream(f"beside {kind}", _decoder(stream), _written(stream, rows), lambda one: (None, beside % one))


def _keys(kind: pa.DataType, form: RecordFormat) -> NastyStream:
    stream = StreamSchema("s", (Column("v", kind), Column("n", pa.int64())), Kind.UPSERT, ("v",), key=form)
    good = _written(stream, pa.table({"v": pa.array([good_value(kind)], kind), "n": pa.array([1])}))
    return NastyStream(
        f"key {form.kind} {kind}", _decoder(stream), (good[0], _OF_KEY), lambda one: (one, _OF_KEY), keyed=True
    )


@cache
def _columns() -> pa.Schema:
    kinds = [kind for kind in TYPES if not pa.types.is_map(kind) or pa.types.is_string(kind.key_type)]
    return pa.schema([(f"v{place}", kind) for place, kind in enumerate(kinds)])


def _identified(form: str) -> Iterator[NastyStream]:
    stream, schemas, good = _identified_stream(form)
    head = (good[1] or b"")[: wire.HEAD_BYTES]
    bad = tuple(
        (None, head + one) for one in (b"", b"\xff" * 9 + b"\x01", *(one * LARGE for one in (b"\0", b"\2", b"\x80")))
    )
    wrap = _within(form, head, good[1] or b"")
    yield NastyStream(form, _decoder(stream, schemas), good, wrap, bad)
    for column in stream.columns:
        yield NastyStream(f"{form} {column.type}", Decoder(stream, (column.name,), schemas), good, wrap)
    if form == "avro":
        yield _recursive()
        keyed = StreamSchema("s", (*stream.columns, Column("n", pa.int64())), Kind.UPSERT, ("v2",), key=stream.value)
        decoder = Decoder(keyed, ("v2", "n"), schemas)
        yield NastyStream("avro key", decoder, (good[1], _OF_KEY), lambda one: (one, _OF_KEY), keyed=True)


def _identified_stream(form: str) -> tuple[StreamSchema, Schemas, Record]:
    """All types beside each other, under the one schema that there is."""
    columns, schemas = _columns(), Schemas()
    match form:
        case "avro":
            schemas.add(json.loads(avro.text_of(columns, "s")))
        case "json_schema":
            schemas.add(json_schema.text_of(columns, "s"), "JSON")
        case _:
            schemas.known[1] = proto(protobuf.text_of(columns, "s"))
    value = RecordFormat(form, ((SUBJECT, "1"),))
    stream = StreamSchema("s", tuple(Column(one.name, one.type) for one in columns), value=value)
    rows = pa.table({one.name: pa.array([good_value(one.type)], one.type) for one in columns})
    return stream, schemas, _written(stream, rows, schemas)


def _within(form: str, head: bytes, good: bytes) -> Callable[[bytes], Record]:
    """JSON members, or a text of any length in the place of the first text of the good record."""
    if form == "json_schema":
        return lambda one: (None, head + b'{"v2":%s,"v10":%s}' % (one, one))
    if form == "protobuf":
        return lambda one: (
            None,
            head + b"\0" + b"".join(_field(number, one) for number in range(1, len(_columns()) + 1)),
        )
    return lambda one: (None, good.replace(b"\x02x", _zigzag(len(one)) + one))


def _field(number: int, value: bytes) -> bytes:
    """A member of bytes."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


def _zigzag(number: int) -> bytes:
    return _varint(number << 1)


def _recursive() -> NastyStream:
    """A schema of Avro whose record holds itself; depth is a matter of two bytes a level."""
    schemas = Schemas()
    inner = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "n", "type": ["null", "r"]}, {"name": "c", "type": "long"}],
    }
    number = schemas.add(inner)
    stream = StreamSchema("s", (Column("c", pa.int64()),), value=RecordFormat("avro"))
    head = wire.head(number)
    deep = tuple(
        (None, head + b"\x02" * depth + b"\0" + b"\x02" * (depth + 1)) for depth in (1, 30, 5_000, 100_000, LARGE)
    )
    return NastyStream(
        "avro recursive", _decoder(stream, schemas), (None, head + b"\0\x02"), lambda one: (None, head + one), deep
    )


def good_value(kind: pa.DataType) -> Any:
    """One value of a type, in the form that ``pa.array`` takes."""
    if pa.types.is_list(kind):
        return [good_value(kind.value_type)]
    if pa.types.is_map(kind):
        return [(good_value(kind.key_type), good_value(kind.item_type))]
    if pa.types.is_struct(kind):
        return {field.name: good_value(field.type) for field in kind}
    if pa.types.is_decimal(kind):
        return Decimal("1.5")
    if pa.types.is_timestamp(kind):
        return _AT if kind.tz else _AT.replace(tzinfo=None)
    if pa.types.is_date32(kind):
        return _AT.date()
    if pa.types.is_time(kind):
        return _AT.time()
    return {pa.bool_(): True, pa.string(): "x", pa.binary(): b"x"}.get(kind, 1)


GROUPS: dict[str, Callable[[], Iterator[NastyStream]]] = {
    **{form: partial(_texts, form) for form in ("json", "csv", "raw")},
    "beside": lambda: map(_beside_a_decimal, TYPES),
    "debezium": lambda: map(_debezium, TYPES),
    "key": _all_keys,
    **{form: partial(_identified, form) for form in ("avro", "json_schema", "protobuf")},
}
"""Every format by every type of a column."""
