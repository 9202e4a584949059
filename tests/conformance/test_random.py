"""After every step a view holds what the same SELECT gives over its tables."""

from __future__ import annotations

import pytest

from tests.conformance.memory import MemoryHost
from tests.conformance.random_cases import random_case
from tests.conformance.runner import run_case
from tests.conformance.sql_engine import SqlEngine

SEEDS = 30


@pytest.mark.parametrize("batch_records", [None, 1], ids=["a step is one batch", "a record is one batch"])
def test_random_joins(batch_records: int | None) -> None:
    failed = []
    for seed in range(SEEDS):
        case = random_case(seed)
        outcome = run_case(case, lambda _: SqlEngine(MemoryHost(batch_records)))
        if not outcome.passed:
            failed.append(f"{case.id}: {case.ddl} {case.query}: {'; '.join(outcome.faults)}")
    assert not failed, "\n".join(failed)
