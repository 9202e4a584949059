"""The enrichment join: one-shot, with all right rows of the key.

**Definition.** A left row is joined with every right row of its key, as it stands, for which the residual condition
holds. SEMI gives the left rows that match something, ANTI those that match nothing, each once, their columns alone; a
left row whose key is NULL matches nothing, so ANTI gives it. MARK gives all, with a column that says which match. The
rest in ``joins.operators.one_shot``.

**State.** The current right rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Mask
from dovetail.joins.dataflow.ports import JoinKind, Predicate
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.operators.one_shot import OneShotOperator, OneShotSpec
from dovetail.joins.operators.semi_anti import marked
from dovetail.joins.state.arrangement import Matches
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class EnrichmentSpec(OneShotSpec):
    """Each left row is joined once, when it comes, with all right rows of its key held then.

    Only the right side is kept. Right rows of a batch are taken in before its left rows are answered.
    """

    kinds = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)

    null_safe: tuple[bool, ...] = ()
    condition: Predicate | None = None
    mark: str = "mark"

    def open(self, store: RunStore, name: str) -> EnrichmentOperator:
        return EnrichmentOperator(self, store, name)


class EnrichmentOperator(OneShotOperator):
    """``on_batch([left rows, right rows]) -> changes``: left columns, then right columns; of SEMI and ANTI left.

    Of MARK left columns, then the mark.
    """

    def __init__(self, spec: EnrichmentSpec, store: RunStore, name: str) -> None:
        super().__init__(spec, store, name, spec.condition)
        self._mark = spec.mark
        self._right = ChangeNormalizer.of(spec.right, store, f"{name}.right", spec.null_safe)

    @property
    def dangling(self) -> int:
        return self._right.dangling

    @property
    def _output(self) -> pa.Schema:
        if not self._kind.is_existence:
            return self._pairing.schema
        mark = [pa.field(self._mark, pa.bool_())] if self._kind is JoinKind.MARK else []
        return pa.schema([*(field.with_nullable(True) for field in self._pairing.left), *mark])

    def _take_in(self, rows: pa.Table) -> Changes:
        self._right.arrangement.insert(self._right.changes(rows))
        return Changes.empty(self._output)

    def _answered(self, left: Changes) -> Changes:
        if self._kind.is_existence:
            matched = self._matched(left)
            if self._kind is JoinKind.MARK:
                answered = marked(left, matched, self._mark)
            else:
                answered = left.where(matched if self._kind is JoinKind.SEMI else ~matched)
            return Changes.with_deltas(answered.rows.cast(self._output), answered.deltas)
        return self._joined(left, self._found(left))

    def _matched(self, left: Changes) -> Mask:
        """Which left rows match something."""
        if self._pairing.condition is None:
            return self._right.arrangement.counts(left.table, self._left.keys) > 0
        return ~self._found(left).unmatched(len(left))

    def _found(self, left: Changes) -> Matches:
        return Matches.concat(
            found.where(self._pairing.matching(left.take(found.probe).table, found.rows))
            for block in self._right.arrangement.probed_whole(left.table, self._left.keys)
            for found in [block.summed()]
        )
