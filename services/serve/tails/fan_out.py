"""All who follow changes, and the topics that are read for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus

from fastapi.sse import KEEPALIVE_COMMENT

from dovetail.changelog.errors import DovetailError
from dovetail.runtime.settings import Settings
from dovetail.services.serve.refusals import RequestRefused, account_of
from dovetail.services.serve.tails.events import ending, opening
from dovetail.services.serve.tails.followed import FollowedTopic
from dovetail.services.serve.tails.places import EventPlace, Offsets
from dovetail.services.serve.tails.tail_client import TailClient
from dovetail.services.session import Session

_LOOK_S = 1.0
_HEARTBEAT_S = 15.0
_LINGERS_S = 5.0
"""So long a topic is read for nobody: who comes back finds what is recent."""
_CATCHING_UP = 4


def behind() -> RequestRefused:
    return RequestRefused(
        "more rows have come than wait for a client",
        where="changes",
        fix="ask again with the header Last-Event-ID: it goes on behind the last event, and nothing is lost;"
        " DOVETAIL_SERVE_TAIL_ROWS is how many wait",
        status=HTTPStatus.TOO_MANY_REQUESTS,
    )


def stopped() -> RequestRefused:
    return RequestRefused(
        "the server stops",
        where="changes",
        fix="ask again with the header Last-Event-ID once it is back",
        status=HTTPStatus.SERVICE_UNAVAILABLE,
    )


class FanOut:
    """Used by one event loop."""

    def __init__(self, settings: Settings, open_session: Callable[[], Session]) -> None:
        self._settings = settings
        self._open = open_session
        self._session: Session | None = None
        self._opening = threading.Lock()
        self._followed: dict[str, asyncio.Task[FollowedTopic]] = {}
        self._steps = asyncio.Semaphore(_CATCHING_UP)
        self.clients = 0
        self.behind = 0
        self._closed = False

    @property
    def readers(self) -> int:
        """Topics that are read."""
        return len(self._followed)

    async def followed(self, name: str, place: EventPlace | None) -> FollowedTopic:
        """Raises UnknownName; RequestRefused where there are too many, or ``place`` is not there."""
        if self._closed:
            raise stopped()
        if self.clients >= self._settings.serve_tails:
            raise RequestRefused(
                f"{self.clients} clients follow changes, and no more do at once",
                where="changes",
                fix="try again later; DOVETAIL_SERVE_TAILS is their number",
                status=HTTPStatus.SERVICE_UNAVAILABLE,
            )
        found = await self._shared(name)
        if place is not None:
            await asyncio.to_thread(found.expect_there, place)
        return found

    async def _shared(self, name: str) -> FollowedTopic:
        """The one of this name; whoever comes first has it made, and the others wait for it."""
        task = self._followed.get(name)
        if task is not None and task.done() and (task.cancelled() or task.exception() or task.result().ended):
            task = None
        if task is None:
            task = asyncio.create_task(self._begun(name))
            self._followed[name] = task
        try:
            return await asyncio.shield(task)
        except DovetailError:
            self._forget(name, task)
            raise

    async def _begun(self, name: str) -> FollowedTopic:
        loop = asyncio.get_running_loop()
        found = await asyncio.to_thread(self._made, name, loop)
        found.thread.start()
        loop.call_later(_LINGERS_S, self._leave_alone, found)
        return found

    def _made(self, name: str, loop: asyncio.AbstractEventLoop) -> FollowedTopic:
        with self._opening:
            if self._session is None:
                self._session = self._open()
        return FollowedTopic(self._session.context, name, self._settings.serve_tail_rows, loop)

    async def events(
        self, found: FollowedTopic, start: Offsets | None, expect_still: Callable[[], None]
    ) -> AsyncGenerator[bytes, None]:
        """The events of one who follows, from ``start`` or from now on; ``expect_still`` raises once they may not."""
        if found.ended is not None and not self._closed:
            found = await self._shared(found.name)
        self.clients += 1
        found.followers += 1
        listener: TailClient | None = None
        try:
            offsets = found.offsets if start is None else start
            yield opening(found.description, EventPlace(found.topic_id, offsets))
            while (listener := found.join(offsets)) is None:
                async with self._steps:
                    missed, offsets = await asyncio.to_thread(found.next_step, offsets, found.offsets)
                expect_still()
                for one in missed:
                    yield one.text
            async for text in self._live(listener, expect_still):
                yield text
        except DovetailError as error:
            yield ending(account_of(error, "changes"))
        finally:
            self.clients -= 1
            found.followers -= 1
            if listener is not None:
                found.listeners.discard(listener)
            asyncio.get_running_loop().call_later(_LINGERS_S, self._leave_alone, found)

    async def _live(self, listener: TailClient, expect_still: Callable[[], None]) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        said_s = looked_s = loop.time()
        while True:
            one = await listener.next(_LOOK_S)
            if listener.behind:
                self.behind += 1
                raise behind()
            if one is not None:
                yield one.text
                said_s = loop.time()
            elif listener.ended is not None and listener.idle:
                raise listener.ended
            elif loop.time() - said_s > _HEARTBEAT_S:
                yield KEEPALIVE_COMMENT
                said_s = loop.time()
            if loop.time() - looked_s > _LOOK_S:
                looked_s = loop.time()
                expect_still()

    def _leave_alone(self, found: FollowedTopic) -> None:
        """Read no more what nobody follows."""
        task = self._followed.get(found.name)
        if found.followers or self._closed:
            return
        if task is not None and task.done() and not task.exception() and task.result() is found:
            del self._followed[found.name]
        found.end(stopped())

    def _forget(self, name: str, task: asyncio.Task[FollowedTopic]) -> None:
        if self._followed.get(name) is task:
            del self._followed[name]

    def stop(self) -> None:
        """Tell all who follow."""
        self._closed = True
        for found in self._begun_ones():
            found.end(stopped())

    def _begun_ones(self) -> list[FollowedTopic]:
        tasks = [task for task in self._followed.values() if task.done() and not task.cancelled()]
        return [task.result() for task in tasks if task.exception() is None]

    def close(self) -> None:
        self.stop()
        for found in self._begun_ones():
            found.close()
        if self._session is not None:
            self._session.close()
