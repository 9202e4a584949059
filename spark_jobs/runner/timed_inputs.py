"""The inputs of a query whose watermark is a time of day: those that a lag can be told of."""

from __future__ import annotations

import pyarrow as pa

from joins.dataflow.graph import Dataflow
from joins.dataflow.ports import Port


def timed_inputs(dataflow: Dataflow) -> dict[int, str]:
    """What the query calls the input behind each edge that has a watermark.

    An edge behind a join is left out: it has its time from the join's inputs. So is one that counts in whole numbers.
    """
    ports = dataflow.ports
    return {
        edge: scan.name
        for scan in dataflow.scans
        for edge in dataflow.beyond(scan.edge)
        if edge in ports and _tells_time(ports[edge])
    }


def _tells_time(port: Port) -> bool:
    return port.watermark is not None and not pa.types.is_integer(port.schema.field(port.watermark.column).type)
