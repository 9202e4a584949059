"""The stream that a materialized view writes, as a text of the catalog: whoever reads the view plans nothing of it.

Its columns are those of a plan, so they have a name, a type and the form of their texts, and nothing else that a
declaration may add to these.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from dovetail.changelog.schema import Column, Kind, RecordFormat, StreamSchema
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.rules import Rules


def as_text(stream: Stream) -> str:
    schema = stream.schema
    columns = pa.schema([(column.name, column.type) for column in schema.columns])
    members = {
        "columns": base64.b64encode(columns.serialize()).decode(),
        "kind": schema.kind,
        "primary_key": schema.primary_key,
        "event_time": schema.event_time,
        "value": asdict(schema.value),
        "key": asdict(schema.key),
        "topic": stream.topic,
        "rules": stream.rules,
        "told": [_members(watermark) for watermark in stream.upstream_watermarks],
    }
    forms = {column.name: column.form for column in schema.columns if column.form}
    return json.dumps({**members, "forms": forms} if forms else members)


def of_text(name: str, text: str) -> Stream:
    members = json.loads(text)
    columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(members["columns"])))
    forms = members.get("forms", {})
    schema = StreamSchema(
        name=name,
        columns=tuple(Column(one.name, one.type, form=forms.get(one.name, "")) for one in columns),
        kind=Kind(members["kind"]),
        primary_key=tuple(members["primary_key"]),
        event_time=members["event_time"],
        value=_format(members["value"]),
        key=_format(members["key"]),
    )
    watermarks = tuple(_watermark(one) for one in members["told"])
    return Stream(schema, members["topic"], Rules(members["rules"]), upstream_watermarks=watermarks, trusted=True)


def _members(watermark: Watermark) -> dict[str, Any]:
    """In the catalog ``from_heartbeats`` is called ``told``."""
    members = asdict(watermark)
    members["told"] = members.pop("from_heartbeats")
    return members


def _watermark(members: dict[str, Any]) -> Watermark:
    return Watermark(from_heartbeats=members.pop("told"), **members)


def _format(members: dict[str, Any]) -> RecordFormat:
    options = tuple((name, value) for name, value in members["options"])
    return RecordFormat(members["kind"], options, members["envelope"])
