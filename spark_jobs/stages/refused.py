"""Records that a budget of rows has refused: from the level that left them out to the dead letters."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.decode import REJECTED
from dovetail.changelog.schema import RECORD
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.host.level import Refused
from dovetail.joins.inputs.row_budget import REASON
from dovetail.spark_jobs.exchange.shuffle_block import TOPIC


def refused_records(dataflow: Dataflow, refused: Refused) -> pa.Table:
    """REJECTED of the records, with their TOPIC: as those that could not be decoded."""
    record = refused.rows.column(RECORD).combine_chunks()
    columns = [pc.struct_field(record, name) for name in REJECTED.names[:-1]]
    reasons = refused.rows.column(REASON).combine_chunks()
    rows = pa.table([*columns, reasons], schema=REJECTED)
    topic = dataflow.source(refused.edge).topic
    return rows.append_column(TOPIC, pa.array([topic] * rows.num_rows, pa.string()))
