"""What a page asks: listings, relations, plans, the graph, and the description of it all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from dovetail.services.role import Role
from dovetail.services.serve.roles_page import role_of_paths
from dovetail.services.serve.routes import ROUTES
from dovetail.services.serve.routes.listings import LISTINGS, path_of
from dovetail.services.serve.security_middleware import OPEN_PATHS, PAGE
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream
from tests.docs.pages import Page, code_of
from tests.services.serve.world import PLAIN, World, error_of

VIEWS = "CREATE VIEW paid AS SELECT id FROM orders WHERE id > 0; CREATE VIEW large AS SELECT id FROM paid WHERE id > 9"
QUERY = "SELECT id, count() AS n FROM orders GROUP BY id"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """With two views of a stream, which has no topic."""
    made = World(tmp_path)
    stream = parse_one("CREATE STREAM orders (id int64, `<b>` string)")
    assert isinstance(stream, CreateStream)
    catalog = Catalog.open(made.catalog_url)
    catalog.create(stream, now_ms=0)
    catalog.close()
    assert made.sql(VIEWS).status_code == 200
    return made


def get(world: World, path: str, **headers: str) -> httpx.Response:
    response = world.with_client(lambda client: client.get(path, headers=headers))
    assert isinstance(response, httpx.Response)
    return response


def explained(world: World, text: str) -> httpx.Response:
    response = world.with_client(lambda client: client.post("/v1/explain", content=text, headers=PLAIN))
    assert isinstance(response, httpx.Response)
    return response


def test_listings(world: World) -> None:
    found = get(world, "/v1/views").json()
    columns = ["name", "topic", "state", "backlog", "read", "time left", "reads", "used by", "definition"]
    assert [column["name"] for column in found["columns"]] == columns
    assert [row["name"] for row in found["rows"]] == ["paid", "large"]
    assert [row["name"] for row in get(world, "/v1/views?like=la%25").json()["rows"]] == ["large"]
    assert [path_of(what) for what in LISTINGS][-1] == "/v1/dead-letters"
    assert error_of(get(world, "/v1/views?like=%07"))["where"] == "parameter like, line 1, column 1"


def test_a_relation_and_markup_in_it(world: World) -> None:
    response = get(world, "/v1/relations/orders")
    found = response.json()
    assert (found["kind"], found["read_by"], found["reads"]) == ("stream", ["large", "paid"], [])
    assert [column["column"] for column in found["columns"]] == ["id", "<b>", "_tp_time"]
    assert "<" not in response.text
    plain = get(world, "/v1/relations/paid").json()
    assert (plain["reads"], plain["columns"]) == (["orders"], [{"column": "id", "type": "int64"}])
    assert error_of(get(world, "/v1/relations/ordrs"))["kind"] == "UnknownName"


def test_the_graph(world: World) -> None:
    found = get(world, "/v1/graph").json()
    assert [(node["name"], node["kind"]) for node in found["nodes"]] == [
        ("orders", "stream"),
        ("paid", "view"),
        ("large", "view"),
    ]
    # Whoever reads a plain view reads what that is made of.
    edges = [("orders", "paid"), ("orders", "large"), ("paid", "large")]
    assert found["edges"] == [{"from": used, "to": user} for used, user in edges]


def test_a_plan_as_a_tree(world: World) -> None:
    found = explained(world, QUERY).json()
    [fragment] = found["fragments"]
    assert fragment["engine"] == "spark"
    lines: list[str] = []

    def walk(node: dict[str, Any]) -> None:
        lines.append(node["node"])
        for below in node["inputs"]:
            walk(below)

    walk(fragment["plan"])
    assert lines == [re.sub(r"^[│├└─ ]+", "", text) for text in found["text"].splitlines()]
    assert explained(world, f"EXPLAIN {QUERY}").json() == found
    assert "the plan of one query" in error_of(explained(world, "SHOW VIEWS"))["what"]
    assert error_of(get(world, "/v1/views/paid/plan"))["kind"] == "UnknownName"


def test_everything_but_health_asks_who_asks(world: World) -> None:
    world.token("ann", Role.READER)

    async def ask(client: httpx.AsyncClient) -> dict[str, int]:
        return {path: (await client.request(*path.split())).status_code for path in role_of_paths()}

    answers = world.with_client(ask)
    open_paths = {f"GET {path}" for path in (*OPEN_PATHS, f"{PAGE}{{folder}}/{{file}}")}
    assert {path for path, status in answers.items() if status != 401} == open_paths
    assert {path for path, role in role_of_paths().items() if role is None} == open_paths


def test_the_description_has_every_route(world: World) -> None:
    found = get(world, "/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    operations = {(path, method) for path, methods in found["paths"].items() for method in methods}
    assert operations == {(one.path, method.lower()) for one in ROUTES for method in one.methods or ()}
    for path, methods in found["paths"].items():
        for operation in methods.values():
            named = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path))
            assert operation["summary"]
            answers = operation["responses"]["200"]["content"].items()
            assert all(content["schema"] for kind, content in answers if kind == "application/json")
    sql = found["paths"]["/v1/sql"]["post"]
    assert set(sql["requestBody"]["content"]) == {"text/plain", "application/sql", "application/json"}
    assert sql["responses"]["4XX"]["content"]["application/json"]["schema"]["$ref"] == "#/components/schemas/Error"
    assert "security" not in found["paths"]["/health"]["get"]
    assert found["paths"]["/v1/dictionaries/{name}/refresh"]["post"]["security"] == [{"token": ["writer"]}]


def test_the_page_has_every_route_and_no_other() -> None:
    documented = {code_of(row[0])[0] for row in Page.of("docs/serve.md").rows("path", "answer")}
    assert documented == set(role_of_paths())


def test_the_graph_of_fragments_and_topics(world: World) -> None:
    """Of two fragments only the one that reads the topic hangs on the stream; a lookup, on the one that looks up."""
    catalog = Catalog.open(world.catalog_url)
    stream = parse_one("CREATE STREAM raw (id int64) SETTINGS topic = 'elsewhere'")
    assert isinstance(stream, CreateStream)
    catalog.create(stream, now_ms=0)
    for name in ("paid.1", "paid"):
        catalog.add_query(Query(name, "", "", "", topic=name, view="paid"), now_ms=0)
    for query, topic in zip(catalog.queries(), ("orders", "paid.1"), strict=True):
        catalog.report(query.id, now_ms=1, progress={"starts": {topic: {"0": 0}}})
    catalog.close()
    found = get(world, "/v1/graph?detail=fragments").json()
    kinds = {node["name"]: node["kind"] for node in found["nodes"]}
    assert kinds == {
        "orders": "stream",
        "raw": "stream",
        "elsewhere": "topic",
        "paid.1": "fragment",
        "paid": "view",
        "large": "view",
    }
    edges = [(edge["from"], edge["to"]) for edge in found["edges"]]
    assert ("elsewhere", "raw") in edges
    assert ("orders", "paid.1") in edges
    assert ("paid.1", "paid") in edges
    assert ("orders", "paid") not in edges
    refused = error_of(get(world, "/v1/graph?detail=all"))
    assert refused["fix"] == "one of: relations, fragments"


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: one.path)
def test_each_path_refuses_a_parameter_that_it_does_not_know(world: World, route: APIRoute) -> None:
    known = [one.alias for one in route.dependant.query_params]
    wrong = f"{known[0]}_" if known else "x"
    path = re.sub(r"{\w+}", "paid", route.path)
    (method,) = {*(route.methods or ())}
    answer = world.with_client(lambda client: client.request(method, f"{path}?{wrong}=1"))
    error = error_of(answer)
    assert (answer.status_code, error["what"]) == (400, f"there is no parameter {wrong}")
    fix = f'did you mean "{known[0]}"?' if known else f"leave it out: {method} {path} takes none"
    assert error["fix"] == fix


def test_the_head_of_an_answer_is_that_of_get(world: World) -> None:
    paths = ("/", "/health", "/v1/views", "/v1/nothing", "/v1/views?lik=1", "/v1/sql")

    async def ask(client: httpx.AsyncClient) -> list[list[int]]:
        return [[(await client.request(verb, path)).status_code for verb in ("HEAD", "GET")] for path in paths]

    assert world.with_client(ask) == [[status, status] for status in (200, 200, 200, 404, 400, 405)]


def test_no_page_comes_from_elsewhere(world: World) -> None:
    assert {get(world, path).status_code for path in ("/docs", "/redoc", "/docs/oauth2-redirect")} == {404}


def test_a_parameter_is_given_once(world: World) -> None:
    assert error_of(get(world, "/v1/views?like=a&like=b"))["what"] == "the parameter like is given twice"
