"""``POST /v1/views/{name}/wait``, without a broker: where topics end is given, and progress is reported by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from dovetail.services.session import Session
from dovetail.services.session.context import Confirm, Say
from dovetail.sql.catalog import Catalog, Desired
from tests.services.given_ends import AtHand, GivenEnds, create, report
from tests.services.serve.world import NOWHERE, World, error_of, lines_of


class Waited(World):
    """A view ``kept`` over a stream of one partition, which ends at 5; the view has read to 3."""

    def __init__(self, folder: Path, **settings: object) -> None:
        super().__init__(folder, NOWHERE, **settings)
        self.ends = GivenEnds()
        self.ends.given |= {"orders": {0: 5}, "kept": {0: 7}}
        catalog = self.catalog()
        create(catalog, "CREATE STREAM orders (id int64)")
        create(catalog, "CREATE MATERIALIZED VIEW kept AS SELECT id FROM orders")
        self.has_read(3)

    def catalog(self) -> Catalog:
        return Catalog.open(self.catalog_url)

    def has_read(self, offset: int) -> None:
        report(self.catalog(), "kept", {"orders": {0: offset}})

    def open_session(self, say: Say, confirm: Confirm) -> Session:
        session = super().open_session(say, confirm)
        settings, catalog = session.context.settings, session.context.catalog
        session.context = AtHand(settings, catalog, NOWHERE, say=say, confirm=confirm, given=self.ends)
        return session

    def wait(self, members: object, view: str = "kept") -> httpx.Response:
        found = self.with_client(lambda client: client.post(f"/v1/views/{view}/wait", json=members))
        assert isinstance(found, httpx.Response)
        return found


def of(offset: object, partition: str = "0", name: str = "orders") -> dict[str, Any]:
    return {"offsets": {name: {partition: offset}}, "timeout_s": 0}


@pytest.fixture
def world(tmp_path: Path) -> Waited:
    return Waited(tmp_path)


def test_the_answer_says_up_to_where_the_answers_stand(world: Waited) -> None:
    response = world.wait(of(2))
    assert (response.status_code, response.json()) == (200, {"name": "kept", "topic": "kept", "ends": {"0": 7}})
    world.has_read(5)
    assert world.wait({}).json() == response.json()


def test_a_wait_that_is_over_is_504_and_says_how_far_the_view_is(world: Waited) -> None:
    for members in (of(4), {"timeout_s": 0}):
        response = world.wait(members)
        assert response.status_code == 504
        error = error_of(response)
        assert error["kind"] == "NotIncluded"
        assert error["where"].startswith("kept has read orders[0] to 3 of 5; ")
    response = world.sql("WAIT FOR kept TO INCLUDE orders[0]@4 TIMEOUT 0")
    assert (response.status_code, error_of(response)["kind"]) == (504, "NotIncluded")
    assert lines_of(world.sql("WAIT FOR kept TO INCLUDE orders[0]@2"))[0]["result"]["text"] == (
        "kept includes orders[0]@2"
    )


@pytest.mark.parametrize(
    ("members", "what"),
    [
        ([], "the body is a JSON array"),
        ({"offset": {}}, "a member 'offset'"),
        ({"offsets": {}}, "no object with relations"),
        ({"offsets": [1]}, "no object with relations"),
        ({"offsets": {"orders": {}}}, 'no partitions of "orders"'),
        ({"offsets": {"orders": 3}}, 'no partitions of "orders"'),
        (of(1, "one"), '"one" of "orders" is no number of a partition'),
        (of(1, "-1"), '"-1" of "orders" is no number of a partition'),
        (of(1, "\u0663"), "is no number of a partition"),
        (of("1"), "is no whole number"),
        (of(True), "is no whole number"),
        (of(-1), "is no whole number"),
        (of(1.5), "is no whole number"),
        ({"timeout_s": "5"}, "no number from 0 to 27"),
        ({"timeout_s": -1}, "no number from 0 to 27"),
        ({"timeout_s": True}, "no number from 0 to 27"),
        ({"timeout_s": 28}, "no number from 0 to 27"),
        ({"timeout_s": 1e308}, "no number from 0 to 27"),
        (of(5), "there is no record orders[0]@5: orders[0] ends at 5"),
        (of(2**63), "ends at 5"),
        (of(0, "1"), "there is no orders[1]"),
        (of(0, name="kept"), '"kept" does not read "kept"'),
    ],
)
def test_what_cannot_be_waited_for_is_refused(world: Waited, members: object, what: str) -> None:
    response = world.wait(members)
    assert response.status_code == 400
    assert what in error_of(response)["what"]


def test_names_that_are_not_there(world: Waited) -> None:
    assert world.wait({}, "nothing").status_code == 404
    assert world.wait(of(0, name="ordrs")).status_code == 404
    assert 'did you mean "orders"?' in error_of(world.wait(of(0, name="ordrs")))["fix"]
    assert error_of(world.wait({}, "orders"))["what"] == '"orders" is not a materialized view'


def test_a_paused_view_is_refused_with_the_way_on(world: Waited) -> None:
    world.catalog().want("kept", Desired.PAUSED, now_ms=0)
    response = world.wait(of(4))
    assert (response.status_code, error_of(response)["fix"]) == (400, "RESUME kept; then wait again")


def test_a_client_that_goes_leaves_its_place(tmp_path: Path) -> None:
    """A wait holds a thread no longer than somebody waits, and than the time of a request."""
    world = Waited(tmp_path, serve_statement_s=600)

    async def run(address: str) -> None:
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            waits = [asyncio.create_task(client.post("/v1/views/kept/wait", json={})) for _ in range(4)]
            while await _working(client) < 4:
                await asyncio.sleep(0.02)
            assert (await client.post("/v1/views/kept/wait", json={})).status_code == 429
            assert (await client.get("/v1/functions")).status_code == 200
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            while await _working(client):
                await asyncio.sleep(0.02)
            assert (await client.post("/v1/views/kept/wait", json=of(2))).status_code == 200

    with world.listening() as address:
        asyncio.run(run(address))


async def _working(client: httpx.AsyncClient) -> int:
    lines = (await client.get("/metrics")).text.splitlines()
    [value] = [line.split()[1] for line in lines if line.startswith("dovetail_serve_working ")]
    return int(float(value))
