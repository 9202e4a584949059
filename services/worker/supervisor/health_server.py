"""The worker's health and metrics, by HTTP, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from services.stack.free_ports import choose_ports
from services.worker.supervisor.child_process import Child
from services.worker.supervisor.worker_supervisor import WorkerSupervisor


@dataclass(frozen=True)
class ChildrenFigures(Collector):
    """The figures of all children: each family once, with the samples of all."""

    children: Callable[[], list[Child]]

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for child in self.children():
            for family in text_string_to_metric_families(child.metrics()):
                known = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                known.samples += family.samples
        yield from families.values()


class HealthServer:
    """``/healthz``: the worker looks after its queries. ``/readyz``: and each has its partitions. ``/metrics``."""

    def __init__(self, supervisor: WorkerSupervisor, healthy: Callable[[], bool], bind: str, port: int) -> None:
        self._supervisor = supervisor
        self._healthy = healthy
        self._bind = bind
        (self.port,) = choose_ports(port)
        self._loop = asyncio.new_event_loop()
        self._registry = CollectorRegistry()
        self._registry.register(ChildrenFigures(lambda: supervisor.children))
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)
        self._thread.start()
        self._up.wait()

    @property
    def address(self) -> str:
        return f"http://{self._bind}:{self.port}"

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application()
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(runner.setup())
        self._loop.run_until_complete(web.TCPSite(runner, self._bind, self.port).start())
        self._up.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())

    async def _health(self, _request: web.Request) -> web.Response:
        healthy = self._healthy()
        queries = sorted(child.name for child in self._supervisor.children)
        return web.json_response({"healthy": healthy, "queries": queries}, status=200 if healthy else 503)

    async def _ready(self, _request: web.Request) -> web.Response:
        queries = {child.name: await asyncio.to_thread(child.ready) for child in self._supervisor.children}
        ready = self._healthy() and all(queries.values())
        return web.json_response({"ready": ready, "queries": queries}, status=200 if ready else 503)

    async def _metrics(self, _request: web.Request) -> web.Response:
        body = await asyncio.to_thread(generate_latest, self._registry)
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
