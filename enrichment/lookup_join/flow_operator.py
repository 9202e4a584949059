"""A lookup query as a batch operator: rows of the scan in, rows for the sink out."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.changelog.lookup import Lookup
from dovetail.enrichment.lookup_join.stage_operator import StageOperator
from dovetail.joins.dataflow.lookup import Access, LookupFlow
from dovetail.joins.dataflow.ports import transformed


class FlowOperator:
    """The scan's transforms, then one stage after the other, each with its own lookup.

    Keeps no state of its own: what was answered is final, and the memo remembers it where the left side is updating.
    """

    def __init__(
        self,
        flow: LookupFlow,
        lookups: Mapping[Access, Lookup],
        snapshots: Mapping[str, pa.Table] | None = None,
    ) -> None:
        bound_to = snapshots or {}
        missing = [access.table for access in flow.accesses if access not in lookups]
        if missing:
            raise InternalError(f"no lookup was given for {', '.join(missing)}")
        self._scan_transforms = tuple(step.bound(bound_to) for step in flow.scan.transforms)
        self._stages = [StageOperator(stage, lookups[stage.join.access], bound_to) for stage in flow.stages]

    def answer(self, rows: pa.Table, now_ms: int) -> pa.Table:
        """``rows``: decoded rows of the scan (its columns, ``arrival`` if wanted, ``delta``), insertions only."""
        return self.run_stages(self.scan(rows), now_ms)

    def scan(self, rows: pa.Table) -> pa.Table:
        """Decoded rows as they reach the first stage."""
        return transformed(rows, self._scan_transforms)

    def run_stages(self, rows: pa.Table, now_ms: int) -> pa.Table:
        """Rows that reach the first stage as they reach the sink, in the same order."""
        for stage in self._stages:
            rows = stage(rows, now_ms)
        return rows
