"""Changes as server-sent events, with a real broker: one reader for all, places to resume at, slow clients."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from confluent_kafka import Producer

from dovetail.broker.address import BrokerAddress
from dovetail.services.role import Role
from dovetail.services.serve.access.users import UserFile
from dovetail.services.serve.tails.places import EventPlace
from dovetail.services.session.context import silent, unasked
from dovetail.services.stack import Stack
from tests.services.conftest import leave_nothing
from tests.services.serve.world import PLAIN, World, error_of, lines_of, rows_of

pytestmark = pytest.mark.services
TAILS = 200
SSE = {"Accept": "text/event-stream"}


@pytest.fixture
def world(stack: Stack, tmp_path: Path) -> Iterator[World]:
    """With a stream ``readings``, which is dropped after the test."""
    made = World(tmp_path, BrokerAddress(stack.endpoint("kafka")), serve_tail_rows=2_000)
    with made.open_session(silent, unasked) as session:
        session.run("CREATE STREAM readings (n int64, t string) SETTINGS shards = 2")
        yield made
        leave_nothing(session)


def insert(world: World, first: int, count: int, width: int = 1) -> None:
    producer = Producer({"bootstrap.servers": world.brokers.servers})
    for n in range(first, first + count):
        producer.produce("readings", orjson.dumps({"n": n, "t": "x" * width}), str(n))
    assert producer.flush(30) == 0


@dataclass
class Heard:
    """The events of a stream, and the rows of these."""

    names: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    last_id: str = ""
    said: list[dict[str, Any]] = field(default_factory=list)

    def hear(self, event: str) -> None:
        parts = dict(line.split(": ", 1) for line in event.splitlines() if ": " in line)
        if "event" not in parts:
            return
        self.names.append(parts["event"])
        self.last_id = parts.get("id", self.last_id)
        members = orjson.loads(parts["data"])
        if parts["event"] == "rows":
            self.numbers += [row["n"] for row in members]
        else:
            self.said.append(members)


async def events(response: httpx.Response) -> AsyncIterator[str]:
    waiting = ""
    async for text in response.aiter_text():
        *whole, waiting = (waiting + text).split("\n\n")
        for event in whole:
            yield event


async def listen(client: httpx.AsyncClient, heard: Heard, rows: int, query: str = "", **headers: str) -> Heard:
    """Until so many rows have come, or the stream ends."""
    url = f"/v1/views/readings/changes{query}"
    async with client.stream("GET", url, headers=SSE | headers, timeout=60) as response:
        assert response.status_code == 200, await response.aread()
        async for event in events(response):
            heard.hear(event)
            if len(heard.numbers) >= rows:
                return heard
    return heard


async def listen_on(client: httpx.AsyncClient, heard: Heard, rows: int) -> None:
    """As ``listen``, and again where the server ends it: on a busy machine any client may be a slow one."""
    await listen(client, heard, rows)
    while len(heard.numbers) < rows:
        await listen(client, heard, rows, **{"Last-Event-ID": heard.last_id})


async def heard_start(*all_heard: Heard) -> None:
    while not all(heard.names for heard in all_heard):
        await asyncio.sleep(0.02)


def test_two_hundred_follow_one_view_and_it_is_read_once(world: World) -> None:
    async def follow(address: str) -> tuple[list[Heard], str]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
            all_heard = [Heard() for _ in range(TAILS)]
            listening = [asyncio.create_task(listen(client, heard, 300)) for heard in all_heard]
            await heard_start(*all_heard)
            metrics = (await client.get("/metrics")).text
            for first in (0, 100, 200):
                await asyncio.to_thread(insert, world, first, 100)
            await asyncio.gather(*listening)
            return all_heard, metrics

    with world.listening() as address:
        all_heard, metrics = asyncio.run(follow(address))
    assert f"dovetail_serve_tails {TAILS:.1f}" in metrics
    assert "dovetail_serve_readers 1.0" in metrics
    assert [columns["name"] for columns in all_heard[0].said[0]["columns"]] == ["n", "t"]
    for heard in all_heard:
        assert sorted(heard.numbers) == list(range(300))


def test_whoever_comes_back_gets_what_they_missed_and_nothing_twice(world: World) -> None:
    async def follow(address: str) -> list[int]:
        async with httpx.AsyncClient(base_url=address) as client:
            heard = Heard()
            first = asyncio.create_task(listen(client, heard, 10))
            await heard_start(heard)
            await asyncio.to_thread(insert, world, 0, 10)
            await first
            # As many as are not kept for those who come back: they are read from the topic.
            await asyncio.to_thread(insert, world, 10, 1_500)
            await asyncio.to_thread(insert, world, 1_510, 1_500)
            again = asyncio.create_task(listen(client, heard, 3_020, **{"Last-Event-ID": heard.last_id}))
            while heard.names.count("start") < 2:
                await asyncio.sleep(0.02)
            await asyncio.to_thread(insert, world, 3_010, 10)
            await again
            return heard.numbers

    with world.listening() as address:
        numbers = asyncio.run(follow(address))
    assert sorted(numbers) == list(range(3_020))


def test_a_server_that_was_away_is_resumed_at(world: World) -> None:
    heard = Heard()

    async def follow(address: str, rows: int, query: str, **headers: str) -> None:
        async with httpx.AsyncClient(base_url=address) as client:
            await listen(client, heard, rows, query, **headers)

    insert(world, 0, 5)
    with world.listening() as address:
        asyncio.run(follow(address, 5, "?from=beginning"))
    insert(world, 5, 5)
    with world.listening() as address:
        asyncio.run(follow(address, 10, "", **{"Last-Event-ID": heard.last_id}))
    assert sorted(heard.numbers) == list(range(10))


def test_those_who_follow_are_told_when_the_server_stops(world: World) -> None:
    async def follow(address: str, heard: Heard) -> None:
        async with httpx.AsyncClient(base_url=address) as client:
            await listen(client, heard, 1)

    async def run() -> Heard:
        heard = Heard()
        with contextlib.ExitStack() as server:
            address = server.enter_context(world.listening())
            following = asyncio.create_task(follow(address, heard))
            await heard_start(heard)
            await asyncio.to_thread(server.close)
            await following
        return heard

    heard = asyncio.run(run())
    assert heard.names == ["start", "end"]
    assert "Last-Event-ID" in heard.said[1]["fix"]


def test_a_slow_client_is_told_to_resume_and_loses_nothing(world: World) -> None:
    world.settings = world.settings.model_copy(update={"serve_tail_rows": 500})

    async def follow(address: str) -> tuple[Heard, Heard]:
        quick, slow = Heard(), Heard()
        url = httpx.URL(address)
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            with socket.create_connection((url.host, url.port or 0)) as idle:
                idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
                idle.sendall(b"GET /v1/views/readings/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await asyncio.sleep(0.5)
                listening = asyncio.create_task(listen_on(client, quick, 3_000))
                await heard_start(quick)
                for first in range(0, 3_000, 100):
                    await asyncio.to_thread(insert, world, first, 100, 4_000)
                await listening
                text = await asyncio.to_thread(all_of, idle)
            for event in text.split("\n\n"):
                slow.hear("\n".join(line for line in event.splitlines() if ": " in line))
            assert slow.names[-1] == "end"
            missing = 3_000 - len(slow.numbers)
            assert missing > 0
            while len(slow.numbers) < 3_000:
                await listen(client, slow, 3_000, **{"Last-Event-ID": slow.last_id})
        return quick, slow

    with world.listening() as address:
        quick, slow = asyncio.run(follow(address))
    assert sorted(quick.numbers) == sorted(slow.numbers) == list(range(3_000))
    assert "DOVETAIL_SERVE_TAIL_ROWS" in slow.said[1]["fix"]


def all_of(connection: socket.socket) -> str:
    """The body of an answer, to its end."""
    connection.settimeout(60)
    with http.client.HTTPResponse(connection) as response:
        response.begin()
        return response.read().decode()


def test_a_revoked_token_ends_what_it_follows(world: World) -> None:
    ann = world.token("ann", Role.READER)

    async def follow(address: str) -> Heard:
        heard = Heard()
        async with httpx.AsyncClient(base_url=address) as client:
            following = asyncio.create_task(listen(client, heard, 1, **ann))
            await heard_start(heard)
            UserFile.of(world.settings).revoke("ann")
            await following
        return heard

    with world.listening() as address:
        heard = asyncio.run(follow(address))
        assert httpx.get(f"{address}/v1/views/readings/changes", headers=SSE | ann).status_code == 401
    assert heard.said[-1]["what"] == "the token was revoked"


def test_a_view_that_changes_ends_what_follows_it(world: World) -> None:
    async def follow(address: str) -> Heard:
        heard = Heard()
        async with httpx.AsyncClient(base_url=address) as client:
            following = asyncio.create_task(listen(client, heard, 1))
            await heard_start(heard)
            statement = "ALTER STREAM readings ADD COLUMN more int64"
            assert (await client.post("/v1/sql", content=statement, headers=PLAIN)).status_code == 200
            await following
        return heard

    with world.listening() as address:
        heard = asyncio.run(follow(address))
    assert "is declared otherwise now" in heard.said[-1]["what"]


@pytest.mark.parametrize(
    ("name", "last_id", "status", "said"),
    [
        ("readngs", "", 404, "readngs"),
        ("<script>", "", 404, "script>"),
        ("%07", "", 400, "U+0007"),
        ("readings", "nonsense", 400, "is the id of no event"),
        ("readings", "AAAAAAAAAAAAAAAAAAAAAQ/0:1", 410, "has been created again"),
        ("readings", "{}/0:99", 410, "does not reach to offset 99"),
        ("readings", "{}/7:1", 410, "partition 7"),
    ],
)
def test_what_cannot_be_followed(world: World, name: str, last_id: str, status: int, said: str) -> None:
    with world.open_session(silent, unasked) as session:
        topic_id = session.context.topics.ids(["readings"])["readings"]
    headers = {"Last-Event-ID": last_id.format(topic_id)} if last_id else {}
    with world.listening() as address:
        response = httpx.get(f"{address}/v1/views/{name}/changes", headers=headers)
    assert (response.status_code, said in error_of(response)["what"]) == (status, True)


def test_no_more_follow_than_may(world: World) -> None:
    world.settings = world.settings.model_copy(update={"serve_tails": 1})

    async def follow(address: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=address) as client:
            heard = Heard()
            following = asyncio.create_task(listen(client, heard, 1))
            await heard_start(heard)
            refused = await client.get("/v1/views/readings/changes")
            following.cancel()
            return refused

    with world.listening() as address:
        refused = asyncio.run(follow(address))
    assert (refused.status_code, "DOVETAIL_SERVE_TAILS" in error_of(refused)["fix"]) == (503, True)
    assert refused.headers["retry-after"]


def test_rows_over_http_and_a_changelog_until_whoever_asks_goes_away(world: World) -> None:
    insert(world, 0, 3)
    found = world.sql("SELECT n, t FROM table(readings) ORDER BY n")
    assert rows_of(found) == [{"n": n, "t": "x"} for n in range(3)]
    printed = lines_of(world.sql("PRINT readings FROM BEGINNING LIMIT 2"))
    assert printed[0]["result"]["kind"] == "changelog"
    assert printed[-1]["end"] == {"statement": 1, "rows": 2, "complete": True}
    with world.listening() as address:
        with httpx.stream("POST", f"{address}/v1/sql", content="PRINT readings", headers=PLAIN) as response:
            assert '"changelog"' in next(response.iter_lines())
        deadline = time.monotonic() + 10
        while "dovetail_serve_working 0.0" not in httpx.get(f"{address}/metrics").text:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_changelog_ends_with_its_time(world: World) -> None:
    world.settings = world.settings.model_copy(update={"serve_statement_s": 1.0})
    *_, last = lines_of(world.sql("PRINT readings"))
    assert last["end"]["complete"] is False
    assert "within 1 s" in last["end"]["why"]


def test_rows_reach_those_who_write_over_http(world: World) -> None:
    writer = world.token("ann", Role.WRITER)
    assert world.sql("INSERT INTO readings VALUES (7, 'y')", **writer).status_code == 200
    assert rows_of(world.sql("SELECT n FROM table(readings)", **writer)) == [{"n": 7}]
    assert world.sql("DROP STREAM readings", **writer).status_code == 403


def test_places_are_written_as_they_are_read() -> None:
    for text in ("AbC-_9/0:12,1:7", "o/lx+9/"):
        assert str(EventPlace.read(text)) == text
