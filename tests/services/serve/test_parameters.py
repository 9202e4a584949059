"""``"arguments"`` of ``POST /v1/sql``: values come back as they were given, and what is none is a 400."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.services.session.context import silent, unasked
from dovetail.sql.syntax.parse import parse_one
from tests.services.serve.world import World, error_of, rows_of
from tests.sql.syntax.parameters.test_parameters import INJECTIONS, NASTY
from tests.tries import tries


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def posted(world: World, members: dict[str, Any]) -> httpx.Response:
    response = world.with_client(lambda client: client.post("/v1/sql", json=members))
    assert isinstance(response, httpx.Response)
    return response


def test_values_of_each_kind(world: World) -> None:
    sql = "SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e, ? AS f, ? AS g, ? AS h"
    given = [
        1,
        "it's",
        True,
        None,
        1.5,
        {"decimal": "-12.50"},
        {"date": "2026-01-31"},
        {"time": "2026-01-31T12:00:00.5+01:00"},
    ]
    [row] = rows_of(posted(world, {"sql": sql, "arguments": given}))
    assert row == {
        **dict(zip("abcdefg", [1, "it's", True, None, 1.5, -12.5, "2026-01-31"], strict=True)),
        "h": "2026-01-31 11:00:00.500000",
    }


def test_values_by_name(world: World) -> None:
    sql = "SELECT x FROM (SELECT 1 AS x UNION ALL SELECT 2 UNION ALL SELECT 3) WHERE x > :least AND x <> :least + 1"
    assert rows_of(posted(world, {"sql": sql, "arguments": {"least": 1}})) == [{"x": 3}]


@pytest.mark.parametrize("text", INJECTIONS)
def test_an_injection_is_a_text(world: World, text: str) -> None:
    world.sql("CREATE VIEW users AS SELECT 'ann' AS name, 1 AS id")
    sql = "SELECT id FROM table(users) WHERE name = ?; SELECT :x AS x"
    assert rows_of(posted(world, {"sql": sql.partition(";")[0], "arguments": [text]})) == []
    assert rows_of(posted(world, {"sql": "SELECT :x AS x", "arguments": {"x": text}})) == [{"x": text}]
    assert [row["name"] for row in rows_of(world.sql("SHOW VIEWS"))] == ["users"]


@pytest.mark.parametrize(
    ("sql", "arguments", "what"),
    [
        ("SELECT ? AS x", [], "fewer arguments"),
        ("SELECT ? AS x", [1, 2], "more arguments"),
        ("SELECT :x AS x", {"y": 1}, "there is no argument x"),
        ("SELECT ? AS x", [[1]], "has the type list"),
        ("SELECT ? AS x", [{"blob": "x"}], "an object is no value"),
        ("SELECT ? AS x", [{"date": "2026-02-30"}], "is no date"),
        ("SELECT ? AS x", [{"decimal": "1,5"}], "is no decimal"),
        ("SELECT ? AS x", [{"decimal": "NaN"}], "cannot be written"),
        ("SELECT ? AS x", [{"time": "noon"}], "is no time"),
        ("SELECT ? AS x", "x", "neither an array nor an object"),
        ("CREATE VIEW v AS SELECT ? AS x", [1], "CREATE VIEW has no parameters"),
        ("DROP VIEW v", [1], "more arguments"),
    ],
)
def test_what_does_not_fit_is_a_bad_request(world: World, sql: str, arguments: Any, what: str) -> None:
    response = posted(world, {"sql": sql, "arguments": arguments})
    assert response.status_code == 400
    assert what in error_of(response)["what"]
    assert error_of(response)["where"]
    assert error_of(response)["fix"]


def test_the_description_has_them(world: World) -> None:
    schema = world.with_client(lambda client: client.get("/openapi.json")).json()
    body = schema["paths"]["/v1/sql"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert [one["type"] for one in body["properties"]["arguments"]["anyOf"]] == ["array", "object"]


@settings(deadline=None, max_examples=tries(30))
@given(
    st.lists(NASTY.filter(lambda text: all(not "\ud800" <= sign <= "\udfff" for sign in text)), min_size=1, max_size=4)
)
def test_texts_come_back_as_they_are(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    session = World(tmp_path_factory.mktemp("world")).open_session(silent, unasked)
    query = f"SELECT {', '.join(f'? AS c{place}' for place in range(len(texts)))}"
    with session:
        result = session.execute(parse_one(query, arguments=texts))
    assert [column[0].as_py() for column in result.table.columns] == texts  # type: ignore[union-attr]
