"""The health and metrics of a process, by HTTP, on a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.runtime.processes.listener import address_of
from dovetail.runtime.serving.foreign_requests import foreign_host, foreign_page, host_of


@dataclass(frozen=True)
class HealthStatus:
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


def own_requests_only(hosts: Collection[str], setting: str) -> Middleware:
    """Refuses what was sent to a name that is none of ``hosts``, and what a page sends; ``setting`` adds names."""

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        hosts_named = [host_of(one) for one in request.headers.getall("Host", [])]
        origins, site = request.headers.getall("Origin", []), request.headers.get("Sec-Fetch-Site")
        own = f"{request.scheme}://{request.host}"
        found = foreign_host(hosts_named, hosts, setting) or foreign_page(origins, site, own, (), "ask from a program")
        if found is None:
            return await handler(request)
        error = {"what": found.what, "where": found.where, "fix": found.fix}
        return web.json_response({"error": error}, status=found.status)

    return checked


class HealthServer:
    """``/healthz``: the process does its work. ``/readyz``: and all that it runs does. ``/metrics``, for Prometheus.

    Each question is answered on a thread, so one that takes its time holds up no other.
    """

    def __init__(
        self,
        healthy: Callable[[], HealthStatus],
        ready: Callable[[], HealthStatus],
        figures: Collector,
        listener: socket.socket,
        checked: Middleware,
    ) -> None:
        """``listener`` is bound already: its address is known before anything is answered. ``checked`` comes first."""
        self._checked = checked
        self._questions = {"healthy": healthy, "ready": ready}
        self._metrics = metrics_page(figures)
        self._listener = listener
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._thread = SupervisedThread("http", self._serve)
        self._thread.start()
        self._up.wait()

    @property
    def address(self) -> str:
        return f"http://{address_of(self._listener)}"

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application(middlewares=[self._checked])
        app.router.add_get("/healthz", partial(self._answer, "healthy"))
        app.router.add_get("/readyz", partial(self._answer, "ready"))
        app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(runner.setup())
        self._loop.run_until_complete(web.SockSite(runner, self._listener).start())
        self._up.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())

    async def _answer(self, question: str, _request: web.Request) -> web.Response:
        said = await asyncio.to_thread(self._questions[question])
        return web.json_response({question: said.holds, **said.detail}, status=200 if said.holds else 503)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.close(None)
        self._loop.close()
