"""Work that another thread may end: that of a statement whose time is over, or whose client has gone.

Whoever does long work, asks ``expect_wanted`` on the way, or runs it within ``ended_by``. Where nobody has set an
interruption, there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock

from dovetail.changelog.errors import Interrupted


class Interruption:
    """Of the work of one thread."""

    def __init__(self) -> None:
        self._requested = False
        self._end: Callable[[], None] | None = None
        self._lock = Lock()

    def ask(self) -> None:
        """End the work. A call that has begun, and does not yet listen, has to be told again."""
        with self._lock:
            self._requested = True
            if self._end is not None:
                self._end()

    @contextmanager
    def of_this_thread(self) -> Iterator[None]:
        """What the body does is the work that ends."""
        before = _current.set(self)
        try:
            yield
        finally:
            _current.reset(before)

    @contextmanager
    def ended_by(self, end: Callable[[], None]) -> Iterator[None]:
        self.expect_wanted()
        with self._lock:
            self._end = end
        try:
            yield
        finally:
            with self._lock:
                self._end = None

    def expect_wanted(self) -> None:
        if self._requested:
            raise Interrupted("the statement was ended before it was done", fix="ask for less, or give it more time")


_current: ContextVar[Interruption | None] = ContextVar("interruption", default=None)


def expect_wanted() -> None:
    """Raises Interrupted once the work of this thread is to end."""
    current = _current.get()
    if current is not None:
        current.expect_wanted()


@contextmanager
def ended_by(end: Callable[[], None]) -> Iterator[None]:
    """An interruption calls ``end``, from its own thread, while the body runs."""
    current = _current.get()
    with nullcontext() if current is None else current.ended_by(end):
        yield
