"""Threads behind the lookups: whatever happens to one, it goes on, and says so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from threading import Event

import pytest

from dovetail.dictionaries.cache.cold.key_locks import Lease, LeaseKeeper
from dovetail.dictionaries.cache.filling.renewal import BackgroundRenewal
from dovetail.dictionaries.layouts.loaded import Loaded
from dovetail.dictionaries.layouts.reloader import Reloader
from dovetail.dictionaries.supervised_thread import SupervisedThread
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names, settle


class Work:
    """Fails with a defect a few times, then does well."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.done = 0

    def __call__(self, *_: object) -> None:
        if self.failures:
            self.failures -= 1
            raise ZeroDivisionError("a defect")
        self.done += 1


Started = tuple[SupervisedThread, Callable[[], None]]
"""A thread with the work in it, and what closes it."""


def reloader(work: Work, failed: Callable[[BaseException], None]) -> Started:
    made = Reloader(definition("hashed", lifetime_s=(0, 1)), work, failed)
    made.start()
    return made.thread, made.close


def renewal(work: Work, failed: Callable[[BaseException], None]) -> Started:
    made = BackgroundRenewal("d", work, failed)
    made.ask(["a"])
    settle(lambda: work.failures == 0)
    made.ask(["a"])
    return made.thread, made.close


def keeper(work: Work, failed: Callable[[BaseException], None]) -> Started:
    made = LeaseKeeper(work, failed)
    kept = made.keeping(Lease("t", "v", "s"), ["a"])
    kept.__enter__()

    def close() -> None:
        kept.__exit__(None, None, None)
        made.close()

    return made.thread, close


@pytest.mark.parametrize("start", [reloader, renewal, keeper])
def test_a_thread_goes_on_after_a_defect_and_tells_of_it(start: Callable[..., Started]) -> None:
    told: list[BaseException] = []
    work = Work(failures=1)
    thread, close = start(work, told.append)
    settle(lambda: len(told) == 1)
    settle(lambda: work.done > 0)
    settle(lambda: thread.is_healthy)
    assert (thread.restarts, [str(failure) for failure in told]) == (1, ["a defect"])
    close()


def test_a_thread_that_fails_again_and_again_is_not_healthy_and_waits_longer_each_time() -> None:
    work = Work(failures=1000)
    thread = SupervisedThread("t", work, lambda failure: None)
    assert thread.is_healthy
    thread.start()
    settle(lambda: thread.restarts == 4)
    assert (thread.is_healthy, thread.failure) == (False, "ZeroDivisionError: a defect")
    thread.close()
    assert thread.restarts <= 5


def test_work_that_returns_without_being_told_to_is_seen() -> None:
    ended = Event()
    thread = SupervisedThread("t", ended.set, lambda failure: None)
    thread.start()
    ended.wait(5)
    settle(lambda: not thread.is_healthy)
    thread.close()
    assert thread.is_healthy


def test_a_dictionary_is_loaded_again_after_a_defect_of_its_source() -> None:
    source = FakeSource()
    source.put(a="pen")
    with closing(Loaded(definition("hashed", lifetime_s=(0, 1)), source)) as loaded:
        assert names(loaded.lookup(["a"], NOW_MS)) == ["pen"]
        rows, source.rows = source.rows, None  # type: ignore[assignment]  # what no source gives
        settle(lambda: loaded.statistics()["thread_failures"] > 0)
        assert loaded.statistics()["threads_failing"] == 1
        source.rows = rows
        source.put(a="quill")
        settle(lambda: names(loaded.lookup(["a"], NOW_MS)) == ["quill"])
        settle(lambda: loaded.statistics()["threads_failing"] == 0)
