"""``POST /v1/sql`` without a broker: forms of answers, errors, bounds."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from dovetail.services.role import Role
from dovetail.services.serve.statements.arrow_stream import ARROW
from dovetail.services.serve.statements.json_lines import NDJSON
from dovetail.services.session import Session
from dovetail.services.session.context import Confirm, Say
from tests.services.serve.world import NOWHERE, PLAIN, World, error_of, lines_of, rows_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_columns_come_first_then_rows_then_the_end(world: World) -> None:
    response = world.sql("SELECT 1 AS a, 'x' AS b")
    assert response.headers["content-type"] == NDJSON
    assert lines_of(response) == [
        {
            "result": {
                "statement": 1,
                "kind": "rows",
                "columns": [{"name": "a", "type": "uint8"}, {"name": "b", "type": "string"}],
            }
        },
        {"row": {"a": 1, "b": "x"}},
        {"end": {"statement": 1, "rows": 1, "complete": True}},
    ]


def test_each_statement_has_a_result(world: World) -> None:
    found = lines_of(world.sql("CREATE VIEW one AS SELECT 1 AS a; SHOW CREATE one; SHOW VIEWS"))
    kinds = [line["result"]["kind"] for line in found if "result" in line]
    assert kinds == ["done", "text", "rows"]
    assert found[2]["result"]["text"] == "CREATE VIEW one AS SELECT 1 AS a"
    assert [line["row"]["name"] for line in found if "row" in line] == ["one"]


def test_an_error_after_the_first_result_is_the_last_line(world: World) -> None:
    response = world.sql("SELECT 1 AS a; SELECT x FROM nothing; CREATE VIEW v AS SELECT 1 AS a")
    assert response.status_code == 200
    assert lines_of(response)[-1]["error"]["what"] == 'there is no stream or view "nothing"'
    assert rows_of(world.sql("SHOW VIEWS")) == []


def test_what_goes_with_a_drop_is_agreed_to(world: World) -> None:
    world.sql("CREATE VIEW a AS SELECT 1 AS x; CREATE VIEW b AS SELECT x FROM a")

    def drop(agree: bool) -> httpx.Response:
        members = {"sql": "DROP VIEW a CASCADE", "agree": agree}
        found = world.with_client(lambda client: client.post("/v1/sql", json=members))
        assert isinstance(found, httpx.Response)
        return found

    assert '"agree": true' in error_of(drop(False))["fix"]
    assert lines_of(drop(True))[0]["result"]["kind"] == "done"


MANY = "SELECT x FROM (SELECT 1 AS a) ARRAY JOIN range(25000) AS x"


def test_arrow(world: World) -> None:
    response = world.sql(MANY, Accept=ARROW)
    assert response.headers["content-type"] == ARROW
    with pa.ipc.open_stream(response.content) as reader:
        assert reader.read_all().column("x").to_pylist() == list(range(25000))
    assert end_of(response.content) == {b"complete": b"true"}


def end_of(stream: bytes) -> dict[bytes, bytes]:
    """The metadata of the last batch of an Arrow stream."""
    with pa.ipc.open_stream(stream) as reader:
        metadata = [found for _, found in reader.iter_batches_with_custom_metadata()][-1]
    return dict(metadata)


@pytest.mark.parametrize("text", ["CREATE VIEW v AS SELECT 1 AS a", "SELECT 1; SELECT 2"])
def test_arrow_has_one_result_with_rows(world: World, text: str) -> None:
    response = world.sql(text, Accept=ARROW)
    assert (response.status_code, error_of(response)["where"]) == (400, "header Accept")
    assert rows_of(world.sql("SHOW VIEWS")) == []


def test_an_answer_has_so_many_rows_and_says_that_there_are_more(tmp_path: Path) -> None:
    world = World(tmp_path, serve_rows=1200)
    *_, last = found = lines_of(world.sql(MANY))
    assert sum("row" in line for line in found) == 1200
    assert last["end"] | {"why": ""} == {"statement": 1, "rows": 1200, "complete": False, "why": ""}
    assert "DOVETAIL_SERVE_ROWS" in last["end"]["why"]
    stream = world.sql(MANY, Accept=ARROW).content
    with pa.ipc.open_stream(stream) as reader:
        assert reader.read_all().num_rows == 1200
    assert end_of(stream)[b"complete"] == b"false"
    assert lines_of(world.sql(MANY.replace("25000", "1200")))[-1]["end"]["complete"]


def test_an_answer_has_so_many_bytes(tmp_path: Path) -> None:
    response = World(tmp_path, serve_answer_bytes=10_000).sql(MANY)
    assert len(response.content) < 25_000
    assert "DOVETAIL_SERVE_ANSWER_BYTES" in lines_of(response)[-1]["end"]["why"]


class Stuck(World):
    """Its sessions open once they are let."""

    def __init__(self, folder: Path, **settings: object) -> None:
        super().__init__(folder, NOWHERE, **settings)
        self.go_on = threading.Event()
        self.arrived = threading.Semaphore(0)

    def open_session(self, say: Say, confirm: Confirm) -> Session:
        self.arrived.release()
        self.go_on.wait()
        return super().open_session(say, confirm)

    async def at_work(self, requests: int) -> None:
        """Once so many more requests have a thread."""
        for _ in range(requests):
            await asyncio.to_thread(self.arrived.acquire)


def test_statements_end_in_time_or_are_told_of(tmp_path: Path) -> None:
    world = Stuck(tmp_path, serve_statement_s=0.2)

    async def ask(client: httpx.AsyncClient) -> tuple[httpx.Response, httpx.Response]:
        late = await client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN)
        world.go_on.set()
        return late, await client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN)

    late, after = world.with_client(ask)
    assert late.status_code == 504
    assert "within 0.2 s" in error_of(late)["what"]
    assert after.status_code == 200


def test_no_more_requests_are_at_work_than_may_be(tmp_path: Path) -> None:
    world = Stuck(tmp_path, serve_statements=3, serve_statements_per_user=2)
    users = [world.token(name, Role.READER) for name in ("ann", "bob")]

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        async def post(user: dict[str, str]) -> httpx.Response:
            return await client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN | user)

        ann, bob = users
        first = [asyncio.create_task(post(ann)) for _ in range(2)]
        await world.at_work(2)
        third = await post(ann)
        other = asyncio.create_task(post(bob))
        await world.at_work(1)
        last = await post(bob)
        world.go_on.set()
        served = await asyncio.gather(*first, other)
        return [third, last, *served, await post(ann)]

    third, last, *served = world.with_client(ask)
    assert (third.status_code, last.status_code) == (429, 503)
    for refused in (third, last):
        assert refused.headers["retry-after"] == "1"
        assert "DOVETAIL_SERVE_STATEMENTS" in error_of(refused)["fix"]
    assert [response.status_code for response in served] == [200, 200, 200, 200]


def test_whoever_accepts_no_form_of_the_answer_is_told_which_there_are(world: World) -> None:
    response = world.sql("SHOW VIEWS", Accept="text/html")
    assert (response.status_code, ARROW in error_of(response)["fix"]) == (406, True)
    assert world.sql("SHOW VIEWS", Accept="text/html, */*;q=0.1").headers["content-type"] == NDJSON


@pytest.mark.parametrize(
    ("body", "kind", "status", "said"),
    [
        ("", "text/plain", 400, "there is no statement"),
        ("SELECT 1", "multipart/form-data", 415, "the body is"),
        ("SELECT 1", "text/plain; charset=utf-16", 415, "the body is"),
        ("SELECT '\x07'", "text/plain", 400, "U+0007"),
        ("SELECT\n \x00 1", "text/plain", 400, "U+0000"),
        (b"SELECT '\xff'", "text/plain", 400, "not UTF-8"),
        ("{", "application/json", 400, "no JSON"),
        ("[]", "application/json", 400, "a JSON array"),
        ('{"sql": 1}', "application/json", 400, '"sql" is no text'),
        ('{"query": "SELECT 1"}', "application/json", 400, "has a member 'query'"),
        ("{}", "application/json", 400, 'there is no member "sql"'),
        ('{"sql": "SHOW VIEWS", "agre": true}', "application/json", 400, "'agre'"),
        ('{"sql": "SHOW VIEWS", "agree": "yes"}', "application/json", 400, "neither true nor false"),
        ('{"sql": "SELECT \\u0000"}', "application/json", 400, "U+0000"),
        ('{"sql": "SHOW VIEWS", "single": 1}', "application/json", 400, "neither true nor false"),
        ("SELECT * FROM `<img src=x>`", "text/plain", 404, "<img src=x>"),
        ("SELECT " + "(" * 5000, "text/plain", 400, ""),
    ],
)
def test_a_body_that_is_none(world: World, body: str | bytes, kind: str, status: int, said: str) -> None:
    response = world.with_client(lambda client: client.post("/v1/sql", content=body, headers={"Content-Type": kind}))
    assert isinstance(response, httpx.Response)
    assert response.status_code == status
    assert said in error_of(response)["what"]
    assert "<" not in response.text


def test_a_statement_is_taken_as_curl_sends_it(world: World) -> None:
    """``curl --data "SHOW VIEWS" ../v1/sql``. A browser would send the same type for any page's form."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    def asked(**headers: str) -> int:
        ask = world.with_client(lambda client: client.post("/v1/sql", content="SHOW VIEWS", headers=form | headers))
        assert isinstance(ask, httpx.Response)
        return ask.status_code

    assert asked() == 200
    assert asked(**{"Sec-Fetch-Mode": "cors"}) == 415
    assert asked(**{"Upgrade-Insecure-Requests": "1"}) == 415


def test_a_control_character_is_told_with_its_place(world: World) -> None:
    assert error_of(world.sql("SELECT\n 1 \x07"))["where"] == "sql, line 2, column 4"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS a; CREATE VIEW pwned AS SELECT 1 AS a",
        "WHY v WHERE 1=1; CREATE VIEW pwned AS SELECT 1 AS a",
        "/* ; */ SELECT ';' AS a;;CREATE VIEW pwned AS SELECT 1 AS a;",
        "SHOW VIEWS -- ;\n; SHOW VIEWS",
    ],
)
@pytest.mark.parametrize("path", ["/v1/sql", "/v1/explain"])
def test_of_a_single_statement_a_second_one_is_refused_before_the_first_is_run(
    world: World, text: str, path: str
) -> None:
    body = {"sql": text, "single": True}
    response = world.with_client(lambda client: client.post(path, json=body))
    assert response.status_code == 400
    assert "2 statements" in error_of(response)["what"]
    assert rows_of(world.sql("SHOW VIEWS")) == []


@pytest.mark.parametrize("text", ["SELECT ';' AS a -- ;", "SELECT ';' AS a; ", ";SELECT ';' AS a;/* ; */;"])
def test_a_single_statement_may_have_semicolons_around_it(world: World, text: str) -> None:
    response = world.with_client(lambda client: client.post("/v1/sql", json={"sql": text, "single": True}))
    assert rows_of(response) == [{"a": ";"}]


@pytest.mark.parametrize(
    "value", ["CAST('infinity' AS date)", "CAST('-infinity' AS date)", "TIMESTAMP '294247-01-10 04:00:54.775806'"]
)
def test_a_time_that_no_row_can_hold_is_null_and_the_answer_whole(world: World, value: str) -> None:
    found = lines_of(world.sql(f"SELECT {value} AS a, 1 AS b"))
    assert found[1:] == [{"row": {"a": None, "b": 1}}, {"end": {"statement": 1, "rows": 1, "complete": True}}]


def test_a_value_that_cannot_be_written_is_told_in_the_last_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.sql.expressions.evaluate.bounded", lambda column: (column, 0))
    monkeypatch.setattr("dovetail.sql.compile.duckdb.held", lambda value, _: value)
    response = world.sql("SELECT CAST('infinity' AS date) AS a")
    assert lines_of(response)[-1]["error"]["what"].startswith("polars could not take a value")
