"""INTERSECT and EXCEPT, by definition: each row as often as both inputs together say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail.joins.dataflow.ports import SetKind
from dovetail.joins.reference.rows import Record, Row, difference
from dovetail.joins.reference.side import ReferenceSide


@dataclass
class ReferenceSetOperation:
    kind: SetKind
    left: ReferenceSide
    right: ReferenceSide
    _result: Counter[Row] = field(default_factory=Counter)

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        """The net changes of the output: row to signed count, without zeros."""
        self.left.take(left)
        self.right.take(right)
        before, self._result = self._result, self._combined()
        return difference(self._result, before)

    def _combined(self) -> Counter[Row]:
        result: Counter[Row] = Counter()
        for row, count in self.left.content.items():
            other = self.right.content.get(row, 0)
            match self.kind:
                case SetKind.INTERSECT:
                    result[row] = 1 if other else 0
                case SetKind.INTERSECT_ALL:
                    result[row] = min(count, other)
                case SetKind.EXCEPT:
                    result[row] = 0 if other else 1
                case SetKind.EXCEPT_ALL:
                    result[row] = count - other if count > other else 0
        return result
