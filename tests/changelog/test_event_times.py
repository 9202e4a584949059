"""Event times: what a watermark is made of, and which ones cannot be used."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.decode import Decoder, parted
from dovetail.changelog.event_times import greatest_ms, not_behind, unusable
from dovetail.changelog.schema import Column, Kind, StreamSchema
from tests.changelog.records import FIRST_TIMESTAMP_US, records

DAY_MS = 86_400_000
FIRST = dt.datetime.fromtimestamp(FIRST_TIMESTAMP_US / 1e6, dt.UTC).replace(tzinfo=None)
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def chunked(values: list[int | None], kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.int64()).cast(kind)])


def test_the_greatest_time_in_ms_is_cut_off_towards_the_past() -> None:
    assert greatest_ms(chunked([1_999, None, -5], pa.timestamp("us"))) == 1
    assert greatest_ms(chunked([-1], pa.timestamp("us", "UTC"))) == -1
    assert greatest_ms(chunked([3], pa.timestamp("s"))) == 3_000
    assert greatest_ms(chunked([7, 9], pa.int32())) == 9
    assert greatest_ms(pa.chunked_array([pa.array([2], pa.int32()).cast(pa.date32())])) == 2 * DAY_MS
    assert greatest_ms(chunked([None], pa.timestamp("us"))) is None


@given(watermark=st.integers(-10_000, 10_000), time=st.integers(-10_000, 10_000), unit=st.sampled_from(list(UNITS)))
def test_a_time_is_behind_a_watermark_at_its_own_precision(watermark: int, time: int, unit: str) -> None:
    first = not_behind(watermark, pa.timestamp(unit)).value

    assert (time < first) == (time * 1_000 < watermark * UNITS[unit])


def test_whole_numbers_and_dates_are_compared_as_they_are() -> None:
    assert not_behind(41, pa.int64()).as_py() == 41
    assert not_behind(-5, pa.uint8()).as_py() == 0
    assert not_behind(DAY_MS + 1, pa.date32()).as_py() == dt.date(1970, 1, 3)


def judged(
    values: list[str], kind: Kind = Kind.APPEND, max_future_ms: int | None = DAY_MS, unit: str = "us"
) -> tuple[list[int], list[str]]:
    """Which of the rows {"k":n,"t":value} cannot be used, and why not; the second record is none."""
    schema = StreamSchema("s", (Column("k", pa.int32()), Column("t", pa.timestamp(unit))), kind, ("k",))
    texts = [b'{"k":%d,"t":%s}' % (n, value.encode()) for n, value in enumerate(values)]
    batch, _ = parted(records([texts[0], b"no JSON", *texts[1:]]))
    rows = Decoder(schema, ("k", "t")).decode(batch).rows
    bad, rejected = unusable(rows, batch, "t", nullable=kind is not Kind.APPEND, max_future_ms=max_future_ms)
    assert [record["value"] for record in rejected.to_pylist()] == [texts[n] for n in bad.nonzero()[0]]
    return bad.nonzero()[0].tolist(), rejected["reason"].to_pylist()


def text(ms_after_the_first_record: int) -> str:
    return f'"{FIRST + dt.timedelta(milliseconds=ms_after_the_first_record)}"'


def test_a_time_that_is_too_far_after_that_of_its_record_cannot_be_used() -> None:
    """The records lie a millisecond apart, and the one after the first is no row."""
    found, (reason,) = judged([text(DAY_MS), text(DAY_MS + 2), text(DAY_MS + 4)])

    assert found == [2]
    assert reason == (
        "column t: the event time 2023-11-15 22:13:20.004000 is after 2023-11-15 22:13:20.003000, "
        "the latest that max_future = 1d allows for its record"
    )


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_bound_is_drawn_in_every_unit(unit: str) -> None:
    found, _ = judged([text(0), text(DAY_MS - 2000), text(DAY_MS + 2000)], unit=unit)
    assert found == [2]


@pytest.mark.parametrize("watermark", [2**62, -(2**62)])
def test_a_watermark_beyond_a_unit_is_its_end(watermark: int) -> None:
    assert not_behind(watermark, pa.timestamp("ns")).value == (1 if watermark > 0 else -1) * (2**63 - 1)


def test_any_time_can_be_used_where_there_is_no_bound() -> None:
    assert judged([text(DAY_MS * 400)], max_future_ms=None) == ([], [])


@pytest.mark.parametrize(("kind", "found"), [(Kind.APPEND, [1]), (Kind.UPSERT, [])])
def test_a_time_that_is_null_cannot_be_used_in_an_append_stream(kind: Kind, found: list[int]) -> None:
    assert judged([text(0), "null", text(5)], kind) == (found, ["column t: the event time is NULL"] * len(found))


def test_whole_numbers_are_never_ahead() -> None:
    schema = StreamSchema("s", (Column("t", pa.int64()),))
    batch, _ = parted(records([b'{"t":9000000000000000}']))
    rows = Decoder(schema, ("t",)).decode(batch).rows

    bad, rejected = unusable(rows, batch, "t", nullable=False, max_future_ms=0)

    assert not bad.any()
    assert rejected.num_rows == 0
