"""Late rows: from the level that left them out to the messages of the late topic.

A message holds the columns that reached the operator, under their own names, and in headers by what it was late.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from dovetail.broker.producer_queue import OutgoingMessage
from dovetail.changelog.formats import json_text
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.host.level import Late, late_of
from dovetail.spark_jobs.stages.job import Job

LATE_ROWS = pa.schema(
    [("value", pa.string()), ("input", pa.string()), ("event_time", pa.string()), ("watermark", pa.string())]
)


def late_rows(dataflow: Dataflow, late: Late) -> pa.Table:
    """LATE_ROWS of the rows that came late on an edge."""
    watermark = dataflow.ports[late.edge].watermark
    assert watermark is not None
    names = {name: declared for name in late.rows.column_names if (declared := _declared(name)) is not None}
    values = json_text.objects(late.rows.select(list(names)).rename_columns(list(names.values()))).to_arrow()
    time = late.rows.column(watermark.column).type
    constants = (dataflow.source(late.edge).name, _declared(watermark.column) or watermark.column, _shown(late, time))
    constant = [pa.array([text] * late.rows.num_rows, pa.string()) for text in constants]
    return pa.table([values.cast(pa.string()), *constant], schema=LATE_ROWS)


def late_messages(job: Job, rows: pa.Table) -> Iterator[OutgoingMessage]:
    """The messages of LATE_ROWS."""
    for row in rows.to_pylist():
        headers = {
            "dovetail.input": row["input"],
            "dovetail.event_time": row["event_time"],
            "dovetail.watermark": row["watermark"],
            "dovetail.query": job.name,
        }
        yield {"value": row["value"].encode(), "headers": [(name, text.encode()) for name, text in headers.items()]}


def counters(dataflow: Dataflow) -> dict[str, str]:
    """The counter of late rows of each edge that can have some → what the query calls its input."""
    return {
        late_of(edge): dataflow.source(edge).name
        for edge, port in sorted(dataflow.ports.items())
        if port.watermark is not None and port.watermark.drops_late
    }


def _declared(internal: str) -> str | None:
    """The name of a column behind the alias of its FROM item; None for a column that the planner has added."""
    alias, _, name = internal.partition(".")
    return None if internal.startswith("__") else name or alias


def _shown(late: Late, time: pa.DataType) -> str:
    """The watermark as the times of a topic are written, or as the number that it is."""
    if pa.types.is_integer(time):
        return str(late.watermark)
    instant = pa.array([late.watermark], pa.timestamp("ms"))
    return str(instant.cast(pa.string())[0])
