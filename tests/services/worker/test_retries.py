"""A batch answered in spite of failures, without a broker; and the queue before it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from dovetail.changelog.errors import InternalError, RecordRejected, ServiceUnavailable
from dovetail.enrichment.enricher import AnsweredBatch
from dovetail.services.worker.lane.fetch_queue import FetchQueue
from dovetail.services.worker.lane.lane_settings import LaneClosed
from dovetail.services.worker.lane.retries import FailedRecord, Retries
from tests.services.worker.lanes import Echo, fetch

Before = Callable[[Sequence[int]], None]


def retries(echo: Echo, closing: threading.Event | None = None, wait_s: float = 10.0) -> Retries:
    return Retries(echo, 0, "q", wait_s, closing or threading.Event(), lambda: None)


def outcomes(answers: Iterator[AnsweredBatch | FailedRecord]) -> list[object]:
    """Numbers of records, and reasons."""
    return [
        (answer.record.offset, answer.reason) if isinstance(answer, FailedRecord) else len(answer.messages.values)
        for answer in answers
    ]


def failing(numbers: Sequence[int], failure: Exception) -> Before:
    def before(given: Sequence[int]) -> None:
        if set(numbers) & set(given):
            raise failure

    return before


def test_a_batch_without_failures_is_one_answer() -> None:
    assert outcomes(retries(Echo()).answers(fetch(0, 10).records)) == [10]


def test_the_record_at_fault_is_isolated_by_halves() -> None:
    echo = Echo(failing([5], RecordRejected("no number")))
    assert outcomes(retries(echo).answers(fetch(0, 8).records)) == [4, 1, (5, "no number"), 2]
    assert [numbers for numbers in echo.steps if 5 in numbers] == []
    assert sorted(number for numbers in echo.steps for number in numbers) == [0, 1, 2, 3, 4, 6, 7]


def test_each_answer_can_be_written_before_the_next_is_asked() -> None:
    echo = Echo(failing([3], RecordRejected("no number")))
    answers = retries(echo).answers(fetch(0, 4).records)
    next(answers)
    assert echo.steps == [[0, 1]]


def test_many_records_on_end_that_fail_are_a_defect() -> None:
    echo = Echo(failing(range(64), ZeroDivisionError("always")))
    with pytest.raises(InternalError, match="20 records on end"):
        list(retries(echo).answers(fetch(0, 64).records))


def test_a_service_that_stays_away_ends_the_query() -> None:
    echo = Echo(failing([0], ServiceUnavailable("the source is away")))
    with pytest.raises(ServiceUnavailable, match="it was tried again for 0 s"):
        list(retries(echo, wait_s=0.0).answers(fetch(0, 4).records))


def test_what_a_batch_waits_for_is_known_until_it_is_answered() -> None:
    away, seen = [True], list[str]()
    closing = threading.Event()

    def before(_: Sequence[int]) -> None:
        if away[0]:
            raise ServiceUnavailable("the source is away")

    def look() -> None:
        seen.append(retrying.waits_for)
        away[0] = not any(seen)

    retrying = Retries(Echo(before), 0, "q", 30.0, closing, look)
    assert outcomes(retrying.answers(fetch(0, 4).records)) == [4]
    assert seen[0] == ""  # it may be there again at once
    assert "the source is away" in seen[-1]
    assert retrying.waits_for == ""


def test_a_lane_that_closes_waits_no_longer() -> None:
    closing = threading.Event()
    closing.set()
    echo = Echo(failing([0], ServiceUnavailable("the source is away")))
    with pytest.raises(LaneClosed):
        list(retries(echo, closing).answers(fetch(0, 4).records))


def test_the_queue_refuses_a_gap() -> None:
    queue = FetchQueue(most=2)
    queue.begin(10)
    assert queue.offer(fetch(12, 5)) == 10
    assert [queue.offer(fetch(10, 5)), queue.offer(fetch(15, 5))] == [None, None]
    assert not queue.has_room


def test_what_waits_is_taken_up_to_a_batch() -> None:
    queue = FetchQueue(most=9)
    for start in (0, 10, 20):
        queue.offer(fetch(start, 10))
    assert [taken.start for taken in queue.take(0.0, records=15)] == [0, 10]
    assert [taken.start for taken in queue.take(0.0, records=15)] == [20]
    assert queue.take(0.0, records=15) == []
