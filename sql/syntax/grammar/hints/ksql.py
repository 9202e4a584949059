"""Streams and tables of ksqlDB: WITH (KAFKA_TOPIC = 'x', VALUE_FORMAT = 'JSON', ..).

A stream is a stream, read from now on as there; a table one whose records replace each other by the primary key. The
column of a stream that is its KEY is in no value, and streams here have all their columns there.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.hints.filled_forms import Declaration, noted, refuse
from dovetail.sql.syntax.statements import Setting

TOPIC = "kafka_topic"
_READ = (TOPIC, "value_format", "format", "key_format", "partitions", "replicas", "timestamp")
_KEYS_AS_HERE = ("json", "none")


def settings_of_stream(
    cursor: Cursor, stream: Declaration, given: Mapping[str, Setting], start: int, key: str = ""
) -> dict[str, Setting]:
    """The settings of a stream that means the same; ``key`` is its column in the key of records. Raises Unsupported."""
    if key:
        note = f"{key} is read from the value of a record, where it has to be, too"
        what = f"the column {key} is in the key of records, and streams have all columns in the value"
        refuse(cursor, what, noted(stream.stream(), note), start)
    _refuse_others(cursor, given, stream.stream(), start)
    time = given.get("timestamp")
    return {
        **_topic(given),
        "data_format": _format(given),
        **({} if time is None else {"event_time_column": str(time)}),
    }


def settings_of_table(
    cursor: Cursor, table: Declaration, given: Mapping[str, Setting], start: int
) -> dict[str, Setting]:
    """As of a stream. Keys of one text column are as they are here; others have to be JSON. None is
    known yet where a schema names the columns.
    """
    if not table.found.primary_key:
        refuse(cursor, "a table of ksqlDB has a primary key", table.appended(), start)
    keys = [column.type for column in table.found.columns if column.name in table.found.primary_key]
    as_here = str(given.get("key_format", given.get("format", "kafka"))).lower()
    if as_here not in _KEYS_AS_HERE and not (as_here == "kafka" and keys in ([], [pa.string()])):
        shown = ", ".join(f'"{name}":..' for name in table.found.primary_key)
        what = f"keys of KEY_FORMAT {as_here.upper()} cannot be read"
        refuse(cursor, what, noted(table.keyed(), f"the key of a record is JSON: {{{shown}}}"), start)
    _refuse_others(cursor, given, table.keyed(), start)
    connector: dict[str, Setting] = {"connector": "kafka"} if is_external(given) else {}
    return {**connector, **_topic(given), "format": "upsert", "encode": _format(given)}


def is_external(given: Mapping[str, Setting]) -> bool:
    """Without PARTITIONS the topic is one that is there."""
    return "partitions" not in given


def _topic(given: Mapping[str, Setting]) -> dict[str, Setting]:
    names = {TOPIC: "topic", "partitions": "shards", "replicas": "replication_factor"}
    return {ours: given[theirs] for theirs, ours in names.items() if theirs in given}


def _format(given: Mapping[str, Setting]) -> str:
    return str(given.get("value_format", given.get("format", "json"))).lower()


def _refuse_others(cursor: Cursor, given: Mapping[str, Setting], form: str, start: int) -> None:
    for name in given:
        if name not in _READ:
            refuse(cursor, f"ksqlDB's {name.upper()} means nothing here", form, start)
