"""Threads behind the work: whatever happens to one, it goes on, and says so."""

from __future__ import annotations

import logging
from threading import Event

import pytest

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.work.backoff import Backoff
from dovetail.changelog.work.supervised_thread import PeriodicThread, SupervisedThread

WAIT_S = 20.0
AT_ONCE = Backoff(first_s=0.0, longest_s=0.0)


class Work:
    """Raises these one after the other, then does well until it is closed. ``done`` once it does."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.done = Event()
        self.thread: SupervisedThread

    def __call__(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.thread.mark_healthy()
        self.done.set()
        self.thread.closing.wait()


def started(work: Work, reported: list[Exception]) -> SupervisedThread:
    work.thread = SupervisedThread("t", work, reported.append, AT_ONCE)
    return work.thread


def test_it_goes_on_and_tells_of_each_failure() -> None:
    reported: list[Exception] = []
    failures = [ZeroDivisionError("a defect"), ServiceUnavailable("away")]
    with started(work := Work(*failures), reported) as thread:
        assert work.done.wait(WAIT_S)
        assert thread.is_healthy
    assert reported == failures
    assert thread.restarts == 2


def test_it_says_why_once_for_each_class_of_errors(caplog: pytest.LogCaptureFixture) -> None:
    failures = [ServiceUnavailable("away"), ServiceUnavailable("still"), ZeroDivisionError("a defect")]
    with caplog.at_level(logging.WARNING, "dovetail.threads"), started(work := Work(*failures), []):
        assert work.done.wait(WAIT_S)
    said = [(record.getMessage(), record.exc_info is not None) for record in caplog.records]
    assert said == [
        ("thread t: ServiceUnavailable: away; it is tried again", False),
        ("thread t: ZeroDivisionError: a defect; it is tried again", True),
    ]


def test_one_that_fails_is_not_healthy() -> None:
    failed, go_on = Event(), Event()

    def work() -> None:
        raise ZeroDivisionError("a defect")

    def report(_failure: Exception) -> None:
        failed.set()
        go_on.wait(WAIT_S)

    thread = SupervisedThread("t", work, report)
    assert thread.is_healthy
    thread.start()
    assert failed.wait(WAIT_S)
    assert (thread.is_healthy, thread.failure) == (False, "ZeroDivisionError: a defect")
    go_on.set()
    thread.close()


def test_work_that_returns_without_being_told_to_is_seen() -> None:
    thread = SupervisedThread("t", lambda: None)
    thread.start()
    thread.await_end(WAIT_S)
    assert thread.has_ended
    assert not thread.is_healthy
    thread.close()
    assert thread.is_healthy


def test_a_periodic_one_looks_at_once_and_again_until_it_is_closed() -> None:
    looks, thrice = [0], Event()

    def look() -> None:
        looks[0] += 1
        if looks[0] == 2:
            raise ZeroDivisionError("a defect")
        if looks[0] == 3:
            thrice.set()

    with PeriodicThread("t", 0.001, look) as thread:
        assert thrice.wait(WAIT_S)
    assert thread.has_ended
    assert thread.restarts == 1
