"""Event times that an operator gives: one that lets its rows go in time, and so has a watermark of its own."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.plan.nodes.event_time import EventTime
from dovetail.sql.plan.nodes.node import Node


@dataclass(frozen=True)
class Passage(EventTime):
    """A column that follows ``column`` of the operator ``node``: of groups whose windows close, a range join whose rows
    stay, or UNION ALL of parts that each have a watermark over that column.
    """

    node: Node

    @property
    def type(self) -> pa.DataType:
        return self.node.schema.field(self.column).type

    @property
    def watermark(self) -> Watermark | None:
        """That of the rows that leave the operator, over ``column``."""
        return self.node.watermark_over(self.column)
