"""Times that no row can hold: found in columns of every shape, set aside by every decoder, told by every writer."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from dovetail.changelog.changes import Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import Forms, encode
from dovetail.changelog.encodings.avro import generated_schema
from dovetail.changelog.encodings.schema_id_framing.subjects import SUBJECT
from dovetail.changelog.errors import InternalError
from dovetail.changelog.formats import json_text
from dovetail.changelog.formats.time_range import RANGE, bounded, outside
from dovetail.changelog.schema import JSON, Column, Included, Kind, RecordFormat, RecordPart, StreamSchema
from tests.changelog.encodings.avro_records import Schemas
from tests.changelog.records import UTC_MS, records

DAY_US = 86_400_000_000
FIRST, LAST = -719_162, 2_932_896
SECONDS = pa.timestamp("s")
FAR = b"99999999999999999999999"


def _beyond(values: pa.Array) -> list[bool]:
    found = outside(values)
    assert found is not None
    return list(map(bool, found))


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [
        (pa.date32(), FIRST, LAST),
        (SECONDS, FIRST * 86_400, (LAST + 1) * 86_400 - 1),
        (UTC_MS, FIRST * 86_400_000, (LAST + 1) * 86_400_000 - 1),
        (pa.timestamp("us", "UTC"), FIRST * DAY_US, (LAST + 1) * DAY_US - 1),
        (pa.time64("us"), 0, DAY_US - 1),
    ],
)
def test_the_range_has_both_its_ends(kind: pa.DataType, first: int, last: int) -> None:
    values = pa.array([first, None, last], kind)
    assert outside(values) is None
    assert len(json_text.objects(pa.table({"v": values}))) == 3
    assert _beyond(pa.array([first - 1, first, None, last, last + 1], kind)) == [True, False, False, False, True]


_INFINITE = 2**31 - 1


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.list_(pa.date32()), [1, None], [1, _INFINITE]),
        (pa.large_list(pa.date32()), [], [_INFINITE, None]),
        (pa.list_(pa.date32(), 2), [1, None], [1, _INFINITE]),
        (pa.struct([("n", pa.int64()), ("d", pa.date32())]), {"n": _INFINITE, "d": 1}, {"n": 1, "d": -_INFINITE}),
        (pa.map_(pa.date32(), pa.int32()), [(1, _INFINITE)], [(1, 1), (_INFINITE, 1)]),
        (pa.map_(pa.int32(), pa.list_(SECONDS)), [(1, [1])], [(1, [1, 2**62])]),
    ],
)
def test_a_value_that_holds_a_time_outside_is_outside(kind: pa.DataType, good: Any, bad: Any) -> None:
    values = pa.array([bad, good, None, bad, good], kind)
    for start in (0, 1, 2):
        expected = [True, False, False, True, False][start:]
        assert _beyond(values.slice(start)) == expected
        found, count = bounded(pa.chunked_array([values.slice(1, 2), values.slice(start)]))
        assert count == sum(expected)
        nulls = [beyond or at == 2 for at, beyond in enumerate(expected, start)]
        assert found.is_null().to_pylist() == [False, True, *nulls]
    assert outside(pa.array([good, None], kind)) is None


def test_types_without_bounds_are_not_looked_at() -> None:
    numbers = pa.chunked_array([pa.array([2**62])])
    assert bounded(numbers) == (numbers, 0)
    assert outside(numbers.cast(pa.timestamp("ns"))) is None


def _reasons(stream: StreamSchema, good: Any, bad: Any, schemas: Schemas | None = None) -> list[str]:
    """Why ``bad`` is rejected among good records and alone; the good ones are rows."""
    names = tuple(column.name for column in stream.columns)
    decoder, batch = Decoder(stream, names, schemas), [good, bad, good]
    found = []
    for decode in (decoder.decode, decoder.decode_singly):
        decoded = decode(records([value for _, value in batch], [key for key, _ in batch]))
        assert decoded.rows.num_rows == 2
        assert decoded.rejected["offset"].to_pylist() == [1]
        found += decoded.rejected["reason"].to_pylist()
    return found


_WHY = f"column v: the time is outside of {RANGE}"


@pytest.mark.parametrize("kind", [SECONDS, pa.timestamp("s", "UTC")])
@pytest.mark.parametrize(
    ("form", "wrapped"),
    [
        (JSON, b'{"v":%s}'),
        (RecordFormat("csv"), b"%s"),
        (RecordFormat("raw"), b"%s"),
        (RecordFormat(envelope="debezium"), b'{"op":"u","before":{"v":1},"after":{"v":%s}}'),
    ],
)
def test_a_record_with_such_a_time_is_a_dead_letter(form: RecordFormat, wrapped: bytes, kind: pa.DataType) -> None:
    stream = StreamSchema("s", (Column("v", kind),), Kind.CHANGELOG if form.envelope else Kind.APPEND, value=form)
    good = b'{"op":"c","after":{"v":1}}' if form.envelope else wrapped % b"1"
    assert set(_reasons(stream, (None, good), (None, wrapped % FAR))) == {_WHY}


@pytest.mark.parametrize("text", ["0000-01-01", "0000-12-31"])
def test_a_date_before_the_year_1_is_a_dead_letter(text: str) -> None:
    stream = StreamSchema("s", (Column("v", pa.list_(pa.date32())),))
    assert set(_reasons(stream, (None, b'{"v":["0001-01-01"]}'), (None, b'{"v":["%s"]}' % text.encode()))) == {_WHY}


def test_a_key_with_such_a_time_is_a_dead_letter() -> None:
    stream = StreamSchema("s", (Column("v", SECONDS), Column("n", pa.int64())), Kind.UPSERT, ("v",))
    assert set(_reasons(stream, (b'{"v":1}', b'{"n":1}'), (b'{"v":%s}' % FAR, b'{"n":1}'))) == {_WHY}


@pytest.mark.parametrize("kind", [pa.date32(), UTC_MS, pa.timestamp("us")])
def test_an_avro_record_with_such_a_time_is_a_dead_letter(kind: pa.DataType) -> None:
    schemas, rows = Schemas(), pa.schema([("v", kind)])
    schemas.add(json.loads(generated_schema.text_of(rows, "s")))
    stream = StreamSchema("s", (Column("v", kind),), value=RecordFormat("avro", ((SUBJECT, "1"),)))
    numbers = pa.table({"v": pa.array([1, (1 << kind.bit_width - 1) - 1], kind)})
    forms = Forms(stream.value, schemas=schemas)
    good, bad = encode(Changes.of(numbers).table, ("v",), (), updating=False, forms=forms).values
    assert set(_reasons(stream, (None, good), (None, bad), schemas)) == {_WHY}


def test_a_timestamp_of_a_record_counts_where_a_column_has_it() -> None:
    at = Included("at", UTC_MS, RecordPart.TIMESTAMP)
    batch = records([b'{"v":1}', b'{"v":2}'])
    times = pa.array([1_700_000_000_000, 1_700_000_000_000_000_000], pa.timestamp("ms"))
    batch = batch.set_column(2, "timestamp", times)
    for included, columns in (((), ("v", "_tp_time")), ((at,), ("v", "at"))):
        decoder = Decoder(StreamSchema("s", (Column("v", pa.int64()),), included=included), columns)
        for decode in (decoder.decode, decoder.decode_singly):
            decoded = decode(batch)
            assert decoded.rows["v"].to_pylist() == [1]
            (reason,) = decoded.rejected["reason"].to_pylist()
            assert reason == f"timestamp of the record: the time is outside of {RANGE}"
    without = Decoder(StreamSchema("s", (Column("v", pa.int64()),)), ("v",)).decode(batch)
    assert without.rows["v"].to_pylist() == [1, 2]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_panic_of_the_writer_is_an_error_of_the_program(form: str) -> None:
    infinite = pa.table({"v": pa.array([2**31 - 1], pa.date32())})
    with pytest.raises(InternalError, match="polars could not take a value"):
        encode(Changes.of(infinite).table, ("v",), (), updating=False, forms=Forms(RecordFormat(form)))
    with pytest.raises(InternalError, match="polars could not take a value"):
        json_text.objects(infinite)


def test_what_is_written_of_the_ends_is_read_back() -> None:
    rows = pa.table({"v": [date.min, date.max]})
    written = encode(Changes.of(rows).table, ("v",), (), updating=False).values
    decoded = Decoder(StreamSchema("s", (Column("v", pa.date32()),)), ("v",)).decode(records(written))
    assert decoded.rows["v"].to_pylist() == [date.min, date.max]
