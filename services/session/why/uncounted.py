"""What the queries of a view have not counted of its inputs: what was before their start, is not read yet, was late or
became a dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.dead_letter import as_rows
from dovetail.services.session.context import Context
from dovetail.services.session.input_progress import InputProgress
from dovetail.services.session.verification.left_out import dead_letters_of, late_of
from dovetail.sql.engines import Engine
from dovetail.sql.planner import Plan

BEFORE = "before the start: the view does not read what was there before it"
UNREAD = "not read yet: the view has not come so far"


@dataclass(frozen=True)
class Uncounted:
    """starts, reached  topic → partition → the first offset that a query has read, and the next that it will read
    dead_letters     topic → (partition, offset) → the reason of a dead letter
    late             stream → its late rows
    doubts           what is not known one by one, in words
    """

    starts: Mapping[str, PartitionOffsets]
    reached: Mapping[str, PartitionOffsets]
    dead_letters: Mapping[str, Mapping[tuple[int, int], str]]
    late: Mapping[str, pa.Table]
    doubts: tuple[str, ...] = ()

    @staticmethod
    def of(context: Context, plan: Plan) -> Uncounted:
        starts: dict[str, PartitionOffsets] = {}
        reached: dict[str, PartitionOffsets] = {}
        dead_letters: dict[str, dict[tuple[int, int], str]] = {}
        late: dict[str, pa.Table] = {}
        doubts: list[str] = []
        for fragment in plan.fragments:
            query = context.catalog.query(fragment.name)
            progress = InputProgress.of(query)
            starts.update(progress.first_offsets)
            reached.update(progress.offsets)
            rejected = as_rows(dead_letters_of(context, query)).to_pylist()
            read = [one for one in rejected if one["source_offset"] is not None]
            for one in read:
                place = (one["source_partition"], one["source_offset"])
                dead_letters.setdefault(one["source_topic"], {})[place] = one["reason"]
            if len(read) < len(rejected):
                doubts.append(
                    f"rows that {query.name} has made are dead letters themselves: {len(rejected) - len(read):,}"
                )
            if fragment.engine is Engine.SPARK:
                found, unknown = late_of(context, plan.settings.text("late_topic"), fragment.dataflow.scans, query)
                late |= {scan.stream.name: found[scan.name] for scan in fragment.dataflow.scans if scan.name in found}
                doubts += unknown
        return Uncounted(starts, reached, dead_letters, late, tuple(doubts))

    def reasons(self, topic: str, partitions: np.ndarray, offsets: np.ndarray) -> pa.Array:
        """For each place why its record was not counted, NULL where it was."""
        found = np.full(len(offsets), None, dtype=object)
        starts, reached = self.starts.get(topic, {}), self.reached.get(topic, {})
        for partition in np.unique(partitions).tolist():
            here = partitions == partition
            found[here & (offsets < starts.get(partition, 0))] = BEFORE
            if partition in reached:
                found[here & (offsets >= max(reached[partition], starts.get(partition, 0)))] = UNREAD
        for (partition, offset), reason in self.dead_letters.get(topic, {}).items():
            found[(partitions == partition) & (offsets == offset)] = f"a dead letter: {reason}"
        return pa.array(found, pa.string())
