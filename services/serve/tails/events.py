"""Server-sent events: rows, each with the place behind them, and what ends a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from fastapi.sse import format_sse_event

from dovetail.changelog.formats import json_text
from dovetail.services.serve.tails.places import EventPlace, Offsets
from dovetail.services.session.tail.topic_views import View

EVENT_STREAM = "text/event-stream"
_RECORDS = 500
"""The most of an event: a client that resumes gets no part of one twice."""
_RETRY_MS = 1000


@dataclass(frozen=True)
class RowsEvent:
    """The rows of the records between two places; ``text`` is made once for all who get it."""

    before: Offsets
    after: Offsets
    rows: int
    text: bytes


def opening(members: Mapping[str, Any], place: EventPlace) -> bytes:
    """The first event; whoever loses the connection asks again after a second."""
    return format_sse_event(event="start", data_str=orjson.dumps(members).decode(), id=str(place), retry=_RETRY_MS)


def ending(members: Mapping[str, Any]) -> bytes:
    """The last event: nothing comes any more."""
    return format_sse_event(event="end", data_str=orjson.dumps(members).decode())


def rows_events(view: View, records: pa.Table, before: EventPlace) -> Iterator[RowsEvent]:
    """``records``: the next ones, of all partitions in the order of each."""
    offsets = dict(before.offsets)
    for start in range(0, records.num_rows, _RECORDS):
        part = records.slice(start, _RECORDS)
        reached = offsets | _behind(part)
        rows = view.decoded(part)
        place, data = EventPlace(before.topic_id, reached), f"[{','.join(json_text.objects(rows))}]"
        text = format_sse_event(event="rows", data_str=data, id=str(place))
        yield RowsEvent(offsets, reached, rows.num_rows, text)
        offsets = reached


def _behind(records: pa.Table) -> dict[int, int]:
    """The offset after the last record of each partition."""
    partitions, offsets = (records.column(name).to_numpy() for name in ("partition", "offset"))
    return {int(one): int(offsets[partitions == one].max()) + 1 for one in np.unique(partitions)}
