"""A call that another library does not end in the time it was given."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")


def within(timeout_s: float, call: Callable[[], Answer]) -> Answer:
    """What ``call`` gives or raises; TimeoutError where it does neither in time.

    The call goes on by itself then, on a thread that the end of the process does not wait for: whatever it works with
    is not to be used again.
    """
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as failure:  # noqa: BLE001 - it is raised where the answer is awaited
            answer.set_exception(failure)

    Thread(target=run, name="timed-call", daemon=True).start()
    return answer.result(timeout_s)
