"""Where statements are run: so many requests at once, each on a thread and in a session of its own."""

from __future__ import annotations

import asyncio
import queue
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Event
from typing import TypeVar

from dovetail.changelog.errors import Unsupported
from dovetail.runtime.settings import Settings
from dovetail.services.serve.access.users import User
from dovetail.services.serve.refusals import RequestRefused
from dovetail.services.serve.statements.thread_to_async_iterator import ThreadToAsyncIterator
from dovetail.services.session import Session
from dovetail.services.session.context import Confirm, Say

OpenSession = Callable[[Say, Confirm], Session]
T = TypeVar("T")
_RETRY = {"Retry-After": "1"}


@dataclass
class PooledSession:
    """A session for one request at a time, with what it says and what the request agrees to."""

    opener: OpenSession
    notes: list[str] = field(default_factory=list)
    agree: bool = False
    opened: Session | None = None

    @property
    def session(self) -> Session:
        """Opened when it is needed first: a text that is no statement needs none."""
        if self.opened is None:
            self.opened = self.opener(self.notes.append, self.confirmed)
        return self.opened

    def confirmed(self, what: str) -> bool:
        if self.agree:
            return True
        raise Unsupported(what, fix='drop them one by one; or agree: {"sql": .., "agree": true}')


class StatementPool:
    """Work of requests, within bounds of number and time."""

    def __init__(self, settings: Settings, open_session: OpenSession) -> None:
        self._settings = settings
        self._open = open_session
        self._threads = ThreadPoolExecutor(settings.serve_statements, thread_name_prefix="statements")
        self._free: queue.LifoQueue[PooledSession] = queue.LifoQueue()
        self._working: Counter[str] = Counter()

    @property
    def working(self) -> int:
        """Requests that have a thread now."""
        return self._working.total()

    async def pieces(
        self, user: User, make: Callable[[PooledSession, Event], Generator[T, None, None]], *, agree: bool = False
    ) -> AsyncGenerator[T, None]:
        """What ``make`` makes on a thread, until the time of a request is over: RequestRefused then, 504.

        What nobody waits for any more is interrupted, and its place is free once it has ended.
        """
        self._expect_place(user)
        handover = ThreadToAsyncIterator(self._threads, lambda over: self._seated(make, over, agree=agree))
        self._working[user.name] += 1
        handover.finished.add_done_callback(lambda finished: self._left(user, finished))
        within_s = self._settings.serve_statement_s
        deadline = asyncio.get_running_loop().time() + within_s
        async with aclosing(handover.pieces()) as pieces:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        piece = await anext(pieces)
                except TimeoutError:
                    raise overdue(within_s) from None
                except StopAsyncIteration:
                    return
                yield piece

    async def answer(self, user: User, ask: Callable[[Session], T]) -> T:
        """What ``ask`` gives, in the same bounds."""

        def one(seat: PooledSession, _over: Event) -> Generator[T, None, None]:
            yield ask(seat.session)

        [answer] = [piece async for piece in self.pieces(user, one)]
        return answer

    def _expect_place(self, user: User) -> None:
        settings = self._settings
        if self.working >= settings.serve_statements:
            raise RequestRefused(
                f"{self.working} requests are at work, and no more are at once",
                where="statements at work",
                fix="try again in a moment; DOVETAIL_SERVE_STATEMENTS is their number",
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                headers=_RETRY,
            )
        if self._working[user.name] >= settings.serve_statements_per_user:
            raise RequestRefused(
                f'{self._working[user.name]} requests of "{user.name}" are at work, and no more are at once',
                where="statements at work",
                fix="wait for one of them; DOVETAIL_SERVE_STATEMENTS_PER_USER is their number",
                status=HTTPStatus.TOO_MANY_REQUESTS,
                headers=_RETRY,
            )

    def _left(self, user: User, finished: asyncio.Future[None]) -> None:
        self._working[user.name] -= 1
        if not finished.cancelled():
            finished.exception()  # whoever waited for it has been told; one that nobody waits for is of no interest

    def _seated(
        self, make: Callable[[PooledSession, Event], Generator[T, None, None]], over: Event, *, agree: bool
    ) -> Generator[T, None, None]:
        seat = self._seat()
        seat.notes.clear()
        seat.agree = agree
        try:
            yield from make(seat, over)
        finally:
            self._free.put(seat)

    def _seat(self) -> PooledSession:
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return PooledSession(self._open)

    def close(self) -> None:
        """What is at work ends by itself; its session with the process."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        while not self._free.empty():
            opened = self._free.get_nowait().opened
            if opened is not None:
                opened.close()


def overdue(within_s: float) -> RequestRefused:
    return RequestRefused(
        f"the statements have not ended within {within_s:g} s",
        where="time of a request",
        fix="what changes something goes on: SHOW QUERIES tells how it is; ask for less with WHERE or LIMIT;"
        " DOVETAIL_SERVE_STATEMENT_S is the longest time",
        status=HTTPStatus.GATEWAY_TIMEOUT,
    )
