"""Whether the service can do its work: its catalog and Kafka answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from dovetail.changelog.errors import DovetailError
from dovetail.services.session import Session

_LOG = logging.getLogger("dovetail.serve")
_LASTS_S = 1.0


class Readiness:
    """Asked by one thread at a time, and not more than once a second, however many want to know."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._open = open_session
        self._session: Session | None = None
        self._lock = asyncio.Lock()
        self._checked_s = float("-inf")
        self._ready = False

    async def is_ready(self) -> bool:
        async with self._lock:
            if time.monotonic() - self._checked_s > _LASTS_S:
                self._ready = await asyncio.to_thread(self._ask)
                self._checked_s = time.monotonic()
            return self._ready

    def _ask(self) -> bool:
        try:
            if self._session is None:
                self._session = self._open()
            self._session.context.catalog.queries()
            self._session.context.topics.partitions()
        except DovetailError as failure:
            _LOG.warning("not ready\n%s", failure)
            return False
        return True

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
