"""A call that another library does not end in the time it was given."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")


def begun(call: Callable[[], Answer]) -> Future[Answer]:
    """``call`` on a thread of its own, which the end of the process does not wait for."""
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as failure:  # noqa: BLE001 - it is raised where the answer is awaited
            answer.set_exception(failure)

    Thread(target=run, name="timed-call", daemon=True).start()
    return answer


def within(timeout_s: float, call: Callable[[], Answer]) -> Answer:
    """What ``call`` gives or raises; TimeoutError where it does neither in time. Below 0 there is no end.

    The call goes on by itself then: whatever it works with is not to be used again.
    """
    return begun(call).result(None if timeout_s < 0 else timeout_s)
