"""Columns that are parts of the record, as both dialects declare them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import Column, Included, RecordPart
from dovetail.sql.syntax.alterations import altered
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import AlterStream, CreateStream

LISTED = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TIME = pa.timestamp("us", "UTC")


def stream(text: str) -> CreateStream:
    found = parse_one(text)
    assert isinstance(found, CreateStream)
    return found


def refusal(text: str) -> str:
    with pytest.raises(SqlError) as refused:
        parse_one(text)
    return str(refused.value)


def test_names_of_timeplus() -> None:
    found = stream(
        "CREATE EXTERNAL STREAM s (_tp_shard int32, n int, _tp_message_key string, _tp_append_time datetime64(3),"
        " _tp_message_headers map(string, string))"
    )
    assert [column.name for column in found.columns] == ["n"]
    assert found.schema.included == (
        Included("_tp_shard", pa.int32(), RecordPart.PARTITION),
        Included("_tp_message_key", pa.string(), RecordPart.KEY),
        Included("_tp_append_time", pa.timestamp("ms", "UTC"), RecordPart.TIMESTAMP),
        Included("_tp_message_headers", pa.map_(pa.string(), pa.string()), RecordPart.HEADERS),
    )
    assert stream("CREATE TABLE t (_tp_shard int)").included == ()


def test_include_of_risingwave() -> None:
    found = stream(
        "CREATE SOURCE s (n int, WATERMARK FOR at AS at - INTERVAL '5 SECONDS') INCLUDE timestamp AS at INCLUDE key"
        " INCLUDE partition INCLUDE offset AS o INCLUDE header INCLUDE header 'trace' INCLUDE header 'who' varchar"
        " INCLUDE header 'x' bytea AS x WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON"
    )
    assert found.included == (
        Included("at", TIME, RecordPart.TIMESTAMP),
        Included("_rw_kafka_key", pa.binary(), RecordPart.KEY),
        Included("_rw_kafka_partition", pa.string(), RecordPart.PARTITION),
        Included("o", pa.string(), RecordPart.OFFSET),
        Included("_rw_kafka_header", LISTED, RecordPart.HEADERS),
        Included("_rw_kafka_header_trace_bytea", pa.binary(), RecordPart.HEADER, "trace"),
        Included("_rw_kafka_header_who_varchar", pa.string(), RecordPart.HEADER, "who"),
        Included("x", pa.binary(), RecordPart.HEADER, "x"),
    )
    assert found.event_time == "at"


def test_the_key_is_text_where_keys_are() -> None:
    found = stream("CREATE TABLE t (id varchar PRIMARY KEY) INCLUDE key AS k FORMAT UPSERT ENCODE JSON KEY ENCODE TEXT")
    assert found.included == (Included("k", pa.string(), RecordPart.KEY),)


@pytest.mark.parametrize(("encode", "kind"), [("", pa.binary()), (" KEY ENCODE TEXT", pa.string())])
def test_a_key_that_is_the_primary_key_is_a_column_of_raw_keys(encode: str, kind: pa.DataType) -> None:
    found = stream(f"CREATE TABLE t (n int, PRIMARY KEY (k)) INCLUDE key AS k FORMAT UPSERT ENCODE JSON{encode}")
    assert found.included == ()
    assert found.columns == (Column("n", pa.int32()), Column("k", kind))
    assert found.schema.key.kind == "raw"


@pytest.mark.parametrize(
    ("refused", "reason", "mended"),
    [
        ("STREAM s (n int, _tp_shard string)", "the partition of the record", "STREAM s (n int, _tp_shard int32)"),
        ("STREAM s (n int, _tp_shard int32 DEFAULT 1)", "whatever a value", "STREAM s (n int, _tp_shard int32)"),
        (
            "STREAM s (n int, _tp_shard int32, _tp_shard int32)",
            "declared twice",
            "STREAM s (n int, _tp_shard int32)",
        ),
        ("STREAM s (_tp_shard int32)", "at least one column", "STREAM s (n int, _tp_shard int32)"),
        (
            "MUTABLE STREAM s (n int, _tp_message_key string) PRIMARY KEY _tp_message_key",
            "cannot be of the primary key",
            "MUTABLE STREAM s (n int, _tp_message_key string) PRIMARY KEY n",
        ),
        (
            "MUTABLE STREAM s (n int, _tp_shard int32, INDEX i (_tp_shard)) PRIMARY KEY n",
            "cannot be of an index",
            "MUTABLE STREAM s (n int, _tp_shard int32, INDEX i (n)) PRIMARY KEY n",
        ),
        (
            "MUTABLE STREAM s (n int, _tp_shard int32) PRIMARY KEY n SETTINGS version_column = '_tp_shard'",
            "cannot be the version",
            "MUTABLE STREAM s (n int, _tp_shard int32) PRIMARY KEY n SETTINGS version_column = 'n'",
        ),
        (
            "STREAM s (n int, _tp_shard int32) SETTINGS event_time_column = '_tp_shard'",
            "that is no time",
            "STREAM s (n int, _tp_append_time datetime64(3)) SETTINGS event_time_column = '_tp_append_time'",
        ),
        ("TABLE t (n int) INCLUDE payload", "expected KEY", "TABLE t (n int) INCLUDE key"),
        ("TABLE t (n int) INCLUDE key AS n", "declared twice", "TABLE t (n int) INCLUDE key AS k"),
        (
            "TABLE t (n int) INCLUDE partition AS k INCLUDE offset AS K",
            "declared twice",
            "TABLE t (n int) INCLUDE partition AS k INCLUDE offset AS o",
        ),
        (
            "TABLE t (n int, PRIMARY KEY (p)) INCLUDE partition AS p",
            "cannot be of the primary key",
            "TABLE t (n int, PRIMARY KEY (k)) INCLUDE key AS k",
        ),
    ],
)
def test_what_cannot_be_is_refused(refused: str, reason: str, mended: str) -> None:
    assert reason in refusal(f"CREATE {refused}")
    stream(f"CREATE {mended}")


def test_alter_adds_them_and_takes_none_away() -> None:
    before = stream("CREATE STREAM s (n int) SETTINGS shards = 1")
    added = parse_one("ALTER STREAM s ADD COLUMN _tp_shard int32")
    assert isinstance(added, AlterStream)
    after = altered(before, added.actions)
    assert [column.name for column in after.schema.readable] == ["n", "_tp_shard"]
    for change in ("DROP COLUMN _tp_shard", "RENAME COLUMN _tp_shard TO p", "ADD COLUMN _tp_shard int32"):
        again = parse_one(f"ALTER STREAM s {change}")
        assert isinstance(again, AlterStream)
        with pytest.raises(SqlError, match="_tp_shard"):
            altered(after, again.actions)
