"""The engines by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.conformance.case import Case
from tests.conformance.memory import MemoryHost
from tests.conformance.runner import Outcome, run_case
from tests.conformance.services import own_cluster
from tests.conformance.sql_engine import SqlEngine


def running(engine: str, cases: Sequence[Case]) -> Iterator[Outcome]:
    """The outcome of each case in turn."""
    if engine == "services":
        with own_cluster() as cluster:
            yield from cluster.run(cases)
    else:
        yield from running_in_memory(cases)


def running_in_memory(
    cases: Sequence[Case], batch_records: int | None = None, rescaled: Sequence[int] = ()
) -> Iterator[Outcome]:
    """As ``running``; each step in batches of so many records, after each of which there are other buckets."""
    for case in cases:
        yield run_case(case, lambda case: SqlEngine(MemoryHost(batch_records, rescaled), case.lookup_tables))
