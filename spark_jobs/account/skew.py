"""Keys of more rows than a query allows on one side of a join, said in its log."""

from __future__ import annotations

from joins.dataflow.graph import Dataflow
from joins.dataflow.specification import JoinSpec
from joins.host.activity import Activity
from joins.state.holdings import Holding
from runtime.logs.query_logs import QueryLog


class SkewWatch:
    """Of one query: each side of each join is warned of once, with its heaviest key.

    most   the setting max_fan_out; None: any number of rows is allowed
    """

    def __init__(self, dataflow: Dataflow, most: int | None, log: QueryLog) -> None:
        self._most, self._log = most, log
        self._keys = {} if most is None else _keys_of_sides(dataflow)
        """The key columns of the sides that were not warned of yet, by the name of their arrangement."""

    def note(self, batch: Activity) -> None:
        """What the buckets hold that a batch has touched."""
        if self._most is None:
            return
        for arrangement in [name for name in batch.held if name in self._keys]:
            heaviest = max(batch.held[arrangement].values(), key=lambda held: held.fan_out)
            if heaviest.fan_out > self._most:
                self._warn(arrangement, heaviest, self._most)

    def _warn(self, arrangement: str, held: Holding, most: int) -> None:
        columns = ", ".join(self._keys.pop(arrangement)) or "no columns"
        key = next((key.key for key in held.top if key.rows == held.fan_out), "")
        self._log.warning(
            "skewed key (%s) = (%s): %s rows of the %s side of a join, and each row of the other side that has it meets"
            " them all; max_fan_out = %s; SHOW STATE OF names the heaviest keys",
            columns, key, f"{held.fan_out:,}", arrangement.partition(".")[2], f"{most:,}",
        )  # fmt: skip


def _keys_of_sides(dataflow: Dataflow) -> dict[str, tuple[str, ...]]:
    return {
        f"{number}.{side}": port.keys
        for number, node in enumerate(dataflow.nodes)
        if isinstance(node.operator, JoinSpec)
        for side, port in (("left", node.operator.left), ("right", node.operator.right))
    }
