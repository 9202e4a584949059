"""What a registry is sent that it cannot use: each is answered, says what is wrong, and leaves it at work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dovetail.runtime.settings import Settings
from dovetail.services.registry.application import registry_application
from dovetail.services.registry.store import SchemaStore
from dovetail.services.registry.subjects import Subjects
from tests.broker.registry.hostile_imports import HOSTILE_NAMES, polyglot
from tests.tries import tries

AT = "http://127.0.0.1:8081"
Ask = Callable[..., httpx.Response]
DEEP = '{"type":"array","items":' * 900 + '"int"' + "}" * 900


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    store = SchemaStore(tmp_path_factory.mktemp("registry") / "schemas.db")
    app = registry_application(Subjects(store), Settings())

    def request(method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url=AT) as client:
                content = body if isinstance(body, bytes | None) else orjson.dumps(body)
                headers = {"Content-Type": "application/json"} | more.pop("headers", {})
                return await client.request(method, path, content=content, headers=headers, **more)

        return asyncio.run(run())

    yield request
    store.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/nowhere", None, 404),
        ("PATCH", "/subjects", None, 405),
        ("POST", "/schemas/ids/1", None, 405),
        ("GET", "/schemas/ids/999999", None, 40403),
        ("GET", "/schemas/ids/x", None, 40403),
        ("GET", "/schemas/ids/-1", None, 40403),
        ("GET", "/schemas/ids/" + "9" * 400, None, 40403),
        ("GET", "/subjects/none/versions", None, 40401),
        ("GET", "/subjects/none/versions/0", None, 40401),
        ("DELETE", "/subjects/none", None, 40401),
        ("GET", "/config/none", None, 40408),
        ("PUT", "/config", {"compatibility": "SIDEWAYS"}, 42203),
        ("PUT", "/config", {}, 42203),
        ("POST", "/subjects/s/versions", b"", 422),
        ("POST", "/subjects/s/versions", b"{", 422),
        ("POST", "/subjects/s/versions", b"\xff\xfe", 422),
        ("POST", "/subjects/s/versions", [], 422),
        ("POST", "/subjects/s/versions", {}, 42201),
        ("POST", "/subjects/s/versions", {"schema": 5}, 42201),
        ("POST", "/subjects/s/versions", {"schema": "nonsense"}, 42201),
        ("POST", "/subjects/s/versions", {"schema": '"nowhere"'}, 42201),
        ("POST", "/subjects/s/versions", {"schema": '{"type":"record"}'}, 42201),
        ("POST", "/subjects/s/versions", {"schema": '{"type":"enum","name":"e","symbols":["x","x"]}'}, 42201),
        ("POST", "/subjects/s/versions", {"schema": "[[[]]]"}, 42201),
        ("POST", "/subjects/s/versions", {"schema": DEEP}, 42201),
        ("POST", "/subjects/s/versions", {"schema": '"int"', "schemaType": "XML"}, 42201),
        ("POST", "/subjects/s/versions", {"schema": '"int"', "ruleSet": {"domainRules": []}}, 42201),
        ("POST", "/subjects/s/versions", {"schema": '"int"', "references": "x"}, 42201),
        ("POST", "/subjects/s/versions", {"schema": '"int"', "references": [{"name": "x"}]}, 42201),
        (
            "POST",
            "/subjects/s/versions",
            {"schema": '"int"', "references": [{"name": "x", "subject": "none", "version": 1}]},
            40401,
        ),
        ("POST", "/subjects/s/versions", {"schema": '{"type":5}', "schemaType": "JSON"}, 42201),
        ("POST", "/subjects/s/versions", {"schema": "message A {", "schemaType": "PROTOBUF"}, 42201),
        (
            "POST",
            "/subjects/s/versions",
            {"schema": 'syntax="proto3"; import "../../etc/passwd"; message A {}', "schemaType": "PROTOBUF"},
            42201,
        ),
        ("POST", "/subjects/s/versions", b" " * (2 << 20), 413),
    ],
)
def test_bad_requests_are_answered(ask: Ask, method: str, path: str, body: Any, code: int) -> None:
    answer = ask(method, path, body)
    assert answer.json()["error_code"] == code
    assert answer.json()["message"]
    assert str(code).startswith(str(answer.status_code))
    assert ask("GET", "/health").json() == {"subjects": 0}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "x"])
def test_a_form_of_a_page_is_not_taken(ask: Ask, kind: str) -> None:
    for method, path, body in (("POST", "/subjects/s/versions", {"schema": '"int"'}), ("PUT", "/config", {})):
        answer = ask(method, path, body, headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["error_code"]) == (415, 415)
        assert "application/vnd.schemaregistry.v1+json" in answer.json()["message"]
    assert ask("GET", "/health").json() == {"subjects": 0}


@pytest.mark.parametrize("kind", ["application/vnd.schemaregistry.v1+json", "application/json; charset=utf-8"])
def test_types_of_json_are_taken(ask: Ask, kind: str) -> None:
    body = {"schema": '"nowhere"'}
    assert ask("POST", "/subjects/s/versions", body, headers={"Content-Type": kind}).status_code == 422


def test_a_page_of_another_site_gets_nothing(ask: Ask) -> None:
    foreign = ask("PUT", "/config", {"compatibility": "NONE"}, headers={"Origin": "http://evil.example"})
    rebound = ask("GET", "/subjects", headers={"Host": "evil.example"})
    assert (foreign.status_code, rebound.status_code) == (403, 421)


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    path=st.sampled_from(
        [
            "/subjects/s",
            "/subjects/s/versions",
            "/config/s",
            "/compatibility/subjects/s/versions/latest",
            "/schemas/ids/1",
        ]
    ),
    body=st.one_of(
        st.binary(max_size=40),
        st.dictionaries(
            st.sampled_from(["schema", "schemaType", "references", "compatibility", "metadata"]),
            st.recursive(
                st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=8),
                lambda inner: (
                    st.lists(inner, max_size=2)
                    | st.dictionaries(st.sampled_from(["type", "name", "fields", "items"]), inner, max_size=3)
                ),
                max_leaves=8,
            ).map(lambda value: value if isinstance(value, str) else orjson.dumps(value).decode()),
        ),
    ),
)
@settings(max_examples=tries(75), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nonsense_is_never_a_defect_of_the_registry(ask: Ask, method: str, path: str, body: Any) -> None:
    answer = ask(method, path, body)
    assert answer.status_code < 500
    assert answer.status_code < 400 or answer.json()["message"]


def test_names_of_imports_are_paths_of_schemas_and_nothing_that_is_run(ask: Ask, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    whole = {"schemaType": "PROTOBUF", "schema": 'syntax="proto3"; import "b.proto"; message A { M b = 1; }'}
    part = {"schemaType": "PROTOBUF", "schema": polyglot(mark)}
    assert ask("POST", "/subjects/part/versions", part).status_code == 200
    paths = ("/subjects/whole/versions", "/subjects/part", "/compatibility/subjects/part/versions")
    for name in HOSTILE_NAMES:
        body = whole | {"references": [{"name": name, "subject": "part", "version": 1}]}
        assert [ask("POST", path, body).json()["error_code"] for path in paths] == [42201] * 3, name
    body = whole | {"references": [{"name": "b.proto", "subject": "part", "version": 1}]}
    assert ask("POST", "/subjects/whole/versions", body).status_code == 200
    assert not mark.exists()
