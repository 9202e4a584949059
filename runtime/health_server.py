"""The health and metrics of a process, by HTTP, on a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from runtime.processes.listener import address_of


@dataclass(frozen=True)
class Said:
    """An answer: whether it is so, and what else there is to say, as JSON."""

    holds: bool
    detail: Mapping[str, Any] = field(default_factory=dict)


def metrics_page(figures: Collector) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The handler of ``/metrics``: ``figures`` in the form of Prometheus, collected on a thread."""
    registry = CollectorRegistry()
    registry.register(figures)

    async def answer(_request: web.Request) -> web.Response:
        body = await asyncio.to_thread(generate_latest, registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    return answer


class HealthServer:
    """``/healthz``: the process does its work. ``/readyz``: and all that it runs does. ``/metrics``, for Prometheus.

    Each question is answered on a thread, so one that takes its time holds up no other.
    """

    def __init__(
        self,
        healthy: Callable[[], Said],
        ready: Callable[[], Said],
        figures: Collector,
        listener: socket.socket,
    ) -> None:
        """``listener`` is bound already: its address is known before anything is answered."""
        self._questions = {"healthy": healthy, "ready": ready}
        self._metrics = metrics_page(figures)
        self._listener = listener
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)
        self._thread.start()
        self._up.wait()

    @property
    def address(self) -> str:
        return f"http://{address_of(self._listener)}"

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application()
        app.router.add_get("/healthz", lambda _: self._answer("healthy"))
        app.router.add_get("/readyz", lambda _: self._answer("ready"))
        app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(runner.setup())
        self._loop.run_until_complete(web.SockSite(runner, self._listener).start())
        self._up.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())

    async def _answer(self, question: str) -> web.Response:
        said = await asyncio.to_thread(self._questions[question])
        return web.json_response({question: said.holds, **said.detail}, status=200 if said.holds else 503)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
