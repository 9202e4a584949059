"""All levels of a dataflow in one bucket: every row is where it is wanted, so none has to travel.

exchange ─▶ level 1 ─▶ exchange ─▶ level 2 ─▶ exchange ─▶ sink          many buckets: a stage each
exchange ─▶ level 1 ─▶ level 2 ─▶ sink                                  one bucket: one stage, over one store
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.host.exchange import KEYLESS
from dovetail.joins.host.level import Arrival, Clock, LevelOutput, LevelTask
from dovetail.joins.inputs.watermarks import PartitionTime
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class LevelInput:
    """What reaches a level from the scans."""

    arrivals: Sequence[Arrival] = ()
    partition_times: Sequence[PartitionTime] = ()


@dataclass
class OneBucketOutput:
    """changes   what reaches the sink
    levels    what each level that was asked said besides
    """

    changes: list[pa.Table] = field(default_factory=list)
    levels: dict[int, LevelOutput] = field(default_factory=dict)


def part_of_level(level: int) -> str:
    """The prefix of what a level keeps in the store of all."""
    return f"{level}."


class OneBucket:
    """``dataflow`` over ``store``, of which each level has a part.

    clock   as that of ``LevelTask``
    """

    def __init__(
        self, dataflow: Dataflow, store: RunStore, snapshots: Mapping[str, pa.Table], clock: Clock = lambda: 0
    ) -> None:
        self._dataflow = dataflow
        self.stores = {level: store.part(part_of_level(level)) for level in range(1, dataflow.levels + 1)}
        self._tasks = {
            level: LevelTask(dataflow, level, KEYLESS, 1, own, snapshots, clock) for level, own in self.stores.items()
        }

    def on_batch(self, inputs: Mapping[int, LevelInput]) -> OneBucketOutput:
        """``inputs``: by level. A level to which nothing comes is not asked, as in the other hosts."""
        output = OneBucketOutput()
        waiting: dict[int, list[Arrival]] = defaultdict(list)
        for level, task in self._tasks.items():
            came = inputs.get(level)
            if came is None and not waiting[level]:
                continue
            came = came or LevelInput()
            said = task.on_batch([*came.arrivals, *waiting[level]], came.partition_times)
            output.levels[level] = said
            self._deal(said, waiting, output.changes)
        return output

    def _deal(self, said: LevelOutput, waiting: Mapping[int, list[Arrival]], changes: list[pa.Table]) -> None:
        for departure in said.departures:
            if departure.edge == self._dataflow.sink.edge:
                changes.append(departure.rows)
            else:
                waiting[self._dataflow.edge(departure.edge).level].append(Arrival(departure.edge, departure.rows))
