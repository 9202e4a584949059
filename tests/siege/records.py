"""Records of each format that are nearly right: what a session writes, cut, doubled and with strange bytes in it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from confluent_kafka import Producer

from dovetail.services.session import Session
from tests.spark.kafka import messages

COLUMNS = "i int, f float64, d decimal(20, 4), s string, b bool, t datetime64(3), l array(int)"
FORMATS = ("JSONEachRow", "CSV", "RawBLOB", "debezium_json", "JSONSchema", "Avro", "ProtobufSingle")
_ROWS = (
    "(1, 1.5, 12.25, 'x', true, '2024-01-01 00:00:00', [1, 2]),"
    "(-1, 0, -0.0001, 'é,\"', false, '1970-01-01 00:00:00', [])"
)
_NASTY: Sequence[bytes] = (
    *(b"1e-999999999", b"1e999999999", b"9" * 400, b"1" * 4000 + b"x", b"-0", b"NaN", b"Infinity", b"null", b"true"),
    *(
        b'"',
        b"\\",
        b"\\u0000",
        b"\\ud800",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\n",
        b",",
        b"\r\n",
        b"{" * 3000,
        b"[" * 3000,
    ),
    *(
        b"0001-01-01T00:00:00+23:59",
        b"9999-12-31",
        b"2024-02-30",
        b"\x80" * 9 + b"\x01",
        b"\x7f\xff\xff\xff",
        b"\x00" * 64,
    ),
)


def topic_of(record_format: str) -> str:
    return f"in_{record_format.lower()}"


def create(session: Session, record_format: str) -> None:
    """A stream of one format; its columns are what the format can say."""
    columns = "s string" if record_format == "RawBLOB" else COLUMNS
    if record_format == "CSV":
        columns = columns.removesuffix(", l array(int)")
    mode = ", mode = 'changelog'" if record_format == "debezium_json" else ""
    session.run(f"CREATE STREAM {topic_of(record_format)} ({columns}) SETTINGS data_format = '{record_format}'{mode}")


def good(session: Session, broker: str, record_format: str) -> list[bytes]:
    rows = _ROWS
    if record_format == "RawBLOB":
        rows = "('x'), ('y')"
    if record_format == "CSV":
        rows = rows.replace(", [1, 2])", ")").replace(", [])", ")")
    session.run(f"INSERT INTO {topic_of(record_format)} VALUES {rows}")
    return [value for message in messages(broker, topic_of(record_format)) if (value := message.value())]


def bent(chance: random.Random, record: bytes) -> bytes:
    for _ in range(chance.randint(1, 3)):
        first = chance.randint(0, len(record))
        last = first + chance.choice([0, 0, 1, 4, len(record)])
        with_in = chance.choice([b"", chance.randbytes(chance.randint(1, 8)), chance.choice(_NASTY), record])
        record = record[:first] + with_in + record[last:]
    return record


def send(broker: str, record_format: str, records: Sequence[bytes], count: int, chance: random.Random) -> None:
    """``count`` records, bent, to the stream of a format."""
    producer = Producer({"bootstrap.servers": broker, "linger.ms": 50})
    for number in range(count):
        producer.produce(topic_of(record_format), bent(chance, chance.choice(records)))
        if number % 1000 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0
