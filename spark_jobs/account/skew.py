"""Keys of more rows than a query allows on one side of a join, said in its log."""

from __future__ import annotations

from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.host.activity import Activity
from dovetail.joins.operators.delta_joins.delta_step import DeltaStepSpec
from dovetail.joins.operators.multiway import MultiwaySpec
from dovetail.joins.state.arrangement_stats import ArrangementStats
from dovetail.runtime.logs.query_logs import QueryLog


class SkewWatch:
    """Of one query: each side of each join is warned of once, with its heaviest key.

    most   the setting max_fan_out; None: any number of rows is allowed

    A side with a budget never has more: of it is told when a key has as many, since its next record is a dead letter.
    """

    def __init__(self, dataflow: Dataflow, most: int | None, log: QueryLog) -> None:
        self._most, self._log = most, log
        self._sides = {} if most is None else _sides(dataflow)
        """Those that were not warned of yet, by the name of their arrangement."""

    def note(self, batch: Activity) -> None:
        """What the buckets hold that a batch has touched."""
        if self._most is None:
            return
        for arrangement in [name for name in batch.held if name in self._sides]:
            bucket, heaviest = max(batch.held[arrangement].items(), key=lambda one: one[1].fan_out)
            full = self._sides[arrangement].max_rows_per_key
            if heaviest.fan_out > self._most or (full is not None and heaviest.fan_out >= full):
                self._warn(arrangement, bucket, heaviest, self._most)

    def _warn(self, arrangement: str, bucket: int, held: ArrangementStats, most: int) -> None:
        port = self._sides.pop(arrangement)
        columns = ", ".join(port.keys) or "no columns"
        key = next((key.key for key in held.top if key.rows == held.fan_out), "")
        side = arrangement.partition(".")[2]
        if port.max_rows_per_key is not None:
            self._log.warning(
                "skewed key (%s) = (%s): as many rows of the %s side of a join as max_fan_out = %s allows: further"
                " records of such a key go to the dead letters",
                columns, key, side, f"{most:,}", extra={"bucket": bucket},
            )  # fmt: skip
            return
        self._log.warning(
            "skewed key (%s) = (%s): %s rows of the %s side of a join, and each row of the other side that has it meets"
            " them all; max_fan_out = %s; SHOW STATE OF names the heaviest keys",
            columns, key, f"{held.fan_out:,}", side, f"{most:,}", extra={"bucket": bucket},
        )  # fmt: skip


def _sides(dataflow: Dataflow) -> dict[str, Port]:
    """The inputs of joins, by the name of their arrangement."""
    found: dict[str, Port] = {}
    for number, node in enumerate(dataflow.nodes):
        match node.operator:
            case JoinSpec(left=left, right=right):
                found |= {f"{number}.left": left, f"{number}.right": right}
            case DeltaStepSpec(parts=parts, kept=kept):
                found |= {f"{number}.part{one.place}": parts[one.place] for one in kept}
            case MultiwaySpec(parts=parts):
                found |= {f"{number}.part{place}": part for place, part in enumerate(parts)}
    return found
