"""A service in this process, and whoever asks it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import orjson
from pydantic import TypeAdapter

from dovetail.broker.address import BrokerAddress
from dovetail.runtime.clock import now_ms
from dovetail.runtime.processes.listener import listening
from dovetail.runtime.settings import Settings
from dovetail.services.role import Role
from dovetail.services.serve.access.users import UserFile
from dovetail.services.serve.application import application
from dovetail.services.serve.process import Server
from dovetail.services.serve.refusals import JSON, Error
from dovetail.services.serve.routes import ROUTES
from dovetail.services.serve.service import Service
from dovetail.services.session import Session
from dovetail.services.session.context import Confirm, Say
from dovetail.sql.catalog import Catalog

AT = "http://127.0.0.1:6068"
NOWHERE = BrokerAddress("127.0.0.1:1")
PLAIN = {"Content-Type": "text/plain"}


class World:
    """The settings of a service, its catalog in ``folder``, and the broker of its sessions."""

    def __init__(self, folder: Path, brokers: BrokerAddress = NOWHERE, **settings: object) -> None:
        self.folder = folder
        self.brokers = brokers
        self.settings = Settings(data_dir=folder, broker_timeout_s=5).model_copy(update=settings)
        self.catalog_url = f"sqlite:///{folder / 'catalog.db'}"

    def open_session(self, say: Say, confirm: Confirm) -> Session:
        catalog = Catalog.open(self.catalog_url, python_functions=self.settings.runs_python_functions)
        return Session(self.settings, catalog, self.brokers, say=say, confirm=confirm)

    def service(self) -> Service:
        return Service.of(self.settings, self.open_session)

    def token(self, name: str, role: Role) -> dict[str, str]:
        """The header of a user who is added."""
        return {"Authorization": f"Bearer {UserFile.of(self.settings).add(name, role, now_ms())}"}

    def with_client(self, ask: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
        """What ``ask`` gives, who has a client of a service in this process."""

        async def run() -> Any:
            service = self.service()
            transport = httpx.ASGITransport(application(service))
            try:
                hooks = {"response": [expect_as_described]}
                async with httpx.AsyncClient(transport=transport, base_url=AT, event_hooks=hooks) as client:
                    return await ask(client)
            finally:
                service.close()

        return asyncio.run(run())

    def sql(self, text: str, **headers: str) -> httpx.Response:
        async def ask(client: httpx.AsyncClient) -> httpx.Response:
            return await client.post("/v1/sql", content=text, headers=PLAIN | headers)

        response = self.with_client(ask)
        assert isinstance(response, httpx.Response)
        return response

    @contextmanager
    def listening(self) -> Iterator[str]:
        """The address of a real server."""
        listener = listening("127.0.0.1", 0, "DOVETAIL_SERVE_BIND")
        server = Threaded(self.service())
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.ask_to_stop()
            thread.join()


async def expect_as_described(response: httpx.Response) -> None:
    """Of an answer or a refusal in JSON: it has the members that OpenAPI tells, and no other."""
    if response.headers.get("content-type") != JSON or response.request.method == "HEAD":
        return
    described: dict[int | str, Any] = {}
    for one in ROUTES:
        if one.path_regex.match(response.url.path):
            described = {200: {"model": one.response_model}, **one.responses}
    model = described.get(response.status_code, {"model": Error})["model"]
    TypeAdapter(model).validate_json(await response.aread())


class Threaded(Server):
    """A server that no signal reaches."""

    capture_signals = nullcontext  # type: ignore[assignment]

    async def startup(self, sockets: Any = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def ask_to_stop(self) -> None:
        self.loop.call_soon_threadsafe(self.stop)


def lines_of(response: httpx.Response) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in response.text.splitlines()]


def rows_of(response: httpx.Response) -> list[dict[str, Any]]:
    return [line["row"] for line in lines_of(response) if "row" in line]


def error_of(response: httpx.Response) -> dict[str, str]:
    """What is said of the error; each part is there, and none shows how the service is made."""
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    error: dict[str, str] = response.json()["error"]
    assert all(error[part] for part in ("kind", "what", "where", "fix"))
    assert "Traceback" not in response.text
    return error
