"""All cases in memory: what is not listed in not_yet.yaml passes, what is listed fails."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.case import Case
from tests.conformance.engines import running_in_memory
from tests.conformance.load import load
from tests.conformance.not_yet import NotYet
from tests.paths import CASES


def violations(cases: Sequence[Case], batch_records: int | None = None, rescaled: Sequence[int] = ()) -> str:
    return "\n".join(NotYet.read().violations(list(running_in_memory(cases, batch_records, rescaled))))


def test_all_cases_in_memory() -> None:
    assert violations(load(CASES).cases) == ""


def test_all_cases_in_memory_record_by_record() -> None:
    """A step may be one batch or many, but where there is a watermark: a row is late against earlier batches."""
    cases = [case for case in load(CASES).cases if not any("WATERMARK" in statement for statement in case.ddl)]
    assert violations(cases, batch_records=1) == ""


def test_all_cases_in_memory_rescaled_after_every_batch() -> None:
    assert violations(load(CASES).cases, rescaled=(3, 1, 2)) == ""
