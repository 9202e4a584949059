"""The one-shot ASOF join, by definition: each left row once, as it comes, with the nearest of the ``keep_versions``
newest right rows of its key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.joins.dataflow.ports import JoinKind, refuse_other_kinds
from dovetail.joins.reference.rows import HOLDS, Record, Row


@dataclass
class ReferenceAsof:
    """One-shot ASOF over (key, time, value) rows: position 0 is the key, 1 the time, on both sides."""

    kind: JoinKind
    comparison: str
    keep_versions: int
    versions: dict[object, list[tuple[object, int, Row]]] = field(default_factory=dict)
    arrived: int = 0

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, (JoinKind.INNER, JoinKind.LEFT))

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        for row, _ in right:
            self.arrived += 1
            self.versions.setdefault(row[0], []).append((row[1], self.arrived, row))
        for key, held in self.versions.items():
            self.versions[key] = sorted(held, key=_by_time)[-self.keep_versions :]
        result: Counter[Row] = Counter()
        for row, count in left:
            match = self._nearest(row)
            if match is not None:
                result[row + match] += count
            elif self.kind is JoinKind.LEFT:
                result[row + (None,) * 3] += count
        return result

    def _nearest(self, row: Row) -> Row | None:
        if row[0] is None or row[1] is None:
            return None
        holds = HOLDS[self.comparison]
        fitting = [v for v in self.versions.get(row[0], []) if v[0] is not None and holds(row[1], v[0])]
        if not fitting:
            return None
        looks_back = self.comparison in (">=", ">")
        edge = (max if looks_back else min)(_by_time(v)[1] for v in fitting)
        return max((v for v in fitting if v[0] == edge), key=lambda v: v[1])[2]


def _by_time(version: tuple[object, int, Row]) -> tuple[bool, Any, int]:
    time, arrived, _ = version
    return time is not None, time if time is not None else 0, arrived
