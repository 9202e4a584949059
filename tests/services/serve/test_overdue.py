"""Statements end with their time and with their client, and what they take is free again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from dovetail.services.role import Role
from tests.services.serve.world import PLAIN, World, error_of

_ROWS = ", ".join(f"({row})" for row in range(100))
ENDLESS = f"WITH v AS (SELECT a FROM (VALUES {_ROWS}) AS t(a)) SELECT count(*) AS n FROM v, {{others}}".format(
    others=", ".join(f"v AS v{number}" for number in range(8))
)
"""Counts 10^18 rows."""


async def _until(holds: Callable[[], Awaitable[bool]], within_s: float) -> bool:
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while loop.time() < end:
        if await holds():
            return True
        await asyncio.sleep(0.05)
    return False


async def _working(client: httpx.AsyncClient) -> int:
    lines = (await client.get("/metrics")).text.splitlines()
    [value] = [line.split()[1] for line in lines if line.startswith("dovetail_serve_working ")]
    return int(float(value))


def test_overdue_statements_end_and_lock_nobody_out(tmp_path: Path) -> None:
    world = World(tmp_path, serve_statement_s=15)
    ann, bob = (world.token(name, Role.READER) for name in ("ann", "bob"))
    admin = world.token("eve", Role.ADMIN)

    async def ask(client: httpx.AsyncClient) -> None:
        async def post(user: dict[str, str]) -> httpx.Response:
            return await client.post("/v1/sql", content=ENDLESS, headers=PLAIN | user)

        overdue = [asyncio.create_task(post(user)) for user in (ann, bob) for _ in range(4)]
        assert await _until(lambda: _has(client, 8), 15)
        assert (await client.get("/v1/views")).status_code == 200
        assert (await client.get("/health")).status_code == 200
        for answer in await asyncio.gather(*overdue):
            assert answer.status_code == 504
            assert "DOVETAIL_SERVE_STATEMENT_S" in error_of(answer)["fix"]
        assert await _until(lambda: _has(client, 0), 60)
        again = await client.post("/v1/sql", content="SELECT 1 AS a", headers=PLAIN | ann)
        assert again.status_code == 200

    _listening(world, ask, admin)


async def _has(client: httpx.AsyncClient, working: int) -> bool:
    return await _working(client) == working


def test_a_client_that_hangs_up_takes_its_statement_along(tmp_path: Path) -> None:
    world = World(tmp_path, serve_statement_s=600)

    async def ask(client: httpx.AsyncClient) -> None:
        requests = [asyncio.create_task(client.post("/v1/sql", content=ENDLESS, headers=PLAIN)) for _ in range(2)]
        assert await _until(lambda: _has(client, 2), 60)
        for one in requests:
            one.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        assert await _until(lambda: _has(client, 0), 60)

    _listening(world, ask)


def _listening(
    world: World, ask: Callable[[httpx.AsyncClient], Awaitable[None]], user: dict[str, str] | None = None
) -> None:
    async def run(address: str) -> None:
        async with httpx.AsyncClient(base_url=address, timeout=60, headers=user) as client:
            await ask(client)

    with world.listening() as address:
        asyncio.run(run(address))
