"""Who gets in: hosts, pages, tokens, roles."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import get_args

import httpx
import pytest
from typer.testing import CliRunner

from dovetail.changelog.errors import StackError
from dovetail.runtime.serving.foreign_requests import host_of
from dovetail.services.cli.main import app
from dovetail.services.role import Role
from dovetail.services.serve.access.first_admin import add_first_admin
from dovetail.services.serve.access.users import UserFile
from dovetail.services.serve.dependencies import TEXTS
from dovetail.services.serve.process import expect_protected
from dovetail.services.serve.routes import ROUTES
from dovetail.services.serve.security_middleware import FORM_TYPES, PAGE_HEADER, is_loopback
from dovetail.services.session.statement_table import role_of
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import Statement
from tests.services.serve.world import PLAIN, World, error_of, rows_of

AT = "127.0.0.1:6068"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:6068", "127.0.0.1.evil.example", "", "a b", "@127.0.0.1"]
)
def test_a_name_that_leads_here_and_is_not_ours_is_refused(world: World, host: str) -> None:
    response = world.sql("SHOW VIEWS", Host=host)
    assert response.status_code == 421
    assert "DOVETAIL_SERVE_HOSTS" in error_of(response)["fix"]


_LONG = "sasl.a.pwd" * 6_000
_HALF = "http://user:" + "hunter2" * 5_000 + "@host"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/health", {"Host": _LONG}),
        ("/health", {"Origin": f"http://{_LONG}"}),
        ("/health", {"Origin": _HALF}),
        (f"/page/x/{_LONG}", {}),
        (f"/page/x/{_HALF}", {}),
        (f"/{_LONG}", {}),
    ],
)
def test_what_is_repeated_of_a_request_is_cut_and_costs_nothing(
    world: World, path: str, headers: dict[str, str]
) -> None:
    began = time.process_time()
    response = world.with_client(lambda client: client.get(path, headers=headers))
    assert isinstance(response, httpx.Response)
    assert response.status_code in (401, 403, 404, 421)
    assert len(response.content) < 2_000
    assert "hunter" not in response.text
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:6068", "[::1]:6068", "sql.example", "10.1.2.3:80", "[fd00::1]"]
)
def test_our_own_names(tmp_path: Path, host: str) -> None:
    assert World(tmp_path, serve_hosts="sql.example").sql("SHOW VIEWS", Host=host).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://{AT}"},
        {"Origin": "http://127.0.0.1:8080"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_another_site_does_nothing(world: World, headers: dict[str, str], method: str) -> None:
    text = "CREATE VIEW v AS SELECT 1 AS a"
    response = world.with_client(
        lambda client: client.request(method, "/v1/sql", content=text, headers=PLAIN | headers)
    )
    assert isinstance(response, httpx.Response)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers
    assert "DOVETAIL_SERVE_ORIGINS" in error_of(response)["fix"]
    assert rows_of(world.sql("SHOW VIEWS")) == []


def test_our_own_pages(tmp_path: Path) -> None:
    world = World(tmp_path, serve_origins="https://sql.example")
    own = {"Content-Type": "application/sql", PAGE_HEADER: "1"}
    for headers in ({"Origin": f"http://{AT}", "Sec-Fetch-Site": "same-origin"}, {"Origin": "https://sql.example"}):
        assert world.sql("SHOW VIEWS", **own, **headers).status_code == 200


MARKS = (
    {"Origin": f"http://{AT}"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Mode": "navigate"},
    {"Referer": f"http://{AT}/"},
    {"Upgrade-Insecure-Requests": "1"},
)
POSTED = ("/v1/sql", "/v1/explain", "/v1/dictionaries/d/refresh", "/v1/views/d/wait")


def test_every_route_that_takes_a_body_is_among_those_that_are_tried() -> None:
    assert {one.path.replace("{name}", "d") for one in ROUTES if one.methods != {"GET"}} == set(POSTED)


@pytest.mark.parametrize("mark", MARKS, ids=str)
@pytest.mark.parametrize("path", POSTED)
def test_what_a_form_can_send_a_browser_does_not_have_done(world: World, path: str, mark: dict[str, str]) -> None:
    """Neither by its type, with the header of the page or without, nor by another one without the header."""
    text = "--=\r\nCREATE VIEW v AS SELECT 1 AS a"

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        formed = [{"Content-Type": kind, **own} for kind in FORM_TYPES for own in ({}, {PAGE_HEADER: "1"})]
        typed = [{"Content-Type": kind} for kind in ("application/sql", "application/json")]
        answers = [await client.post(path, content=text, headers=mark | one) for one in formed]
        assert {one.status_code for one in answers} == {415}
        others = [await client.post(path, content=text, headers=mark | one) for one in typed]
        assert {one.status_code for one in others} == {403}
        return [*answers, *others]

    assert all("header" in error_of(one)["where"] for one in world.with_client(ask))
    assert rows_of(world.sql("SHOW VIEWS")) == []


@pytest.mark.parametrize("kind", [one for one in FORM_TYPES if one not in TEXTS])
def test_a_form_is_refused_whoever_sends_it(world: World, kind: str) -> None:
    response = world.sql("CREATE VIEW v AS SELECT 1 AS a", **{"Content-Type": kind})
    assert response.status_code == 415
    assert "application/sql" in error_of(response)["fix"]


def test_an_answer_tells_browsers_to_do_nothing_with_it(world: World) -> None:
    headers = world.sql("SHOW VIEWS").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["cache-control"] == "no-store"


STATEMENTS = {
    Role.READER: (
        "ALTER VIEW v AS SELECT a FROM s DRY RUN",
        "EXPLAIN ALTER VIEW v AS SELECT a FROM s",
        "SELECT 1",
        "SHOW VIEWS",
        "DESCRIBE v",
        "SHOW CREATE v",
        "EXPLAIN SELECT 1",
        "EXPLAIN v",
        "EXPLAIN ANALYZE v",
        "PRINT t",
        "WHY v WHERE a = 1",
        "WAIT FOR v TO INCLUDE s[0]@1",
    ),
    Role.WRITER: (
        "INSERT INTO s VALUES (1)",
        "UPDATE s SET a = 1",
        "DELETE FROM s",
        "REPLAY v.dead_letter",
        "SYSTEM RELOAD DICTIONARIES",
    ),
    Role.ADMIN: (
        "CREATE TABLE t AS SELECT 1",
        "CREATE SCHEMA s",
        "CREATE STREAM s (a int)",
        "ALTER STREAM s ADD COLUMN b int",
        "ALTER VIEW v SET (buckets = 2)",
        "ALTER VIEW v AS SELECT a FROM s",
        "ALTER VIEW v ROLLBACK",
        "CREATE INDEX i ON s (a)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE DICTIONARY d (id string) PRIMARY KEY id SOURCE(MYSQL(TABLE 't')) LAYOUT(FLAT())",
        "CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS $$ def f(a): return a $$",
        "DROP VIEW v",
        "PAUSE v",
        "RESUME v",
        "TERMINATE v",
        "BACKUP VIEW v TO '/x'",
        "RESTORE VIEW v FROM '/x'",
    ),
}


def test_every_kind_of_statement_has_a_role() -> None:
    parsed = {role: [parse_one(text) for text in texts] for role, texts in STATEMENTS.items()}
    assert {type(one) for found in parsed.values() for one in found} == set(get_args(Statement))
    assert all(role_of(type(one)) is role for role, found in parsed.items() for one in found)


@pytest.mark.parametrize("role", Role)
def test_what_a_role_may_not_do_is_not_done(world: World, role: Role) -> None:
    header = world.token("ann", role)

    async def ask(client: httpx.AsyncClient) -> list[int]:
        texts = [text for needed, texts in STATEMENTS.items() if not role.includes(needed) for text in texts]
        answers = [await client.post("/v1/sql", content=text, headers=PLAIN | header) for text in texts]
        assert all(
            f"--role {'admin' if text in STATEMENTS[Role.ADMIN] else 'writer'}" in error_of(answer)["fix"]
            for text, answer in zip(texts, answers, strict=True)
        )
        return [answer.status_code for answer in answers]

    assert set(world.with_client(ask)) <= {403}
    assert world.sql("SELECT 1 AS a", **header).status_code == 200
    both = world.sql("SELECT 1 AS a; CREATE VIEW v AS SELECT 1 AS a", **header)
    assert both.status_code == (200 if role is Role.ADMIN else 403)


def test_without_users_everybody_may_and_with_one_nobody_else(world: World) -> None:
    assert world.sql("CREATE VIEW v AS SELECT 1 AS a").status_code == 200
    header = world.token("ann", Role.READER)
    assert world.sql("SHOW VIEWS", **header).status_code == 200
    for other in ({}, {"Authorization": "Bearer "}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer x"}):
        response = world.sql("SHOW VIEWS", **other)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert error_of(response)["where"] == "Authorization"


def test_a_revoked_token_is_worth_nothing_at_once(world: World) -> None:
    ann, _ = world.token("ann", Role.READER), world.token("bob", Role.READER)

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        before = await client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN | ann)
        UserFile.of(world.settings).revoke("ann")
        return [before, await client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN | ann)]

    before, after = world.with_client(ask)
    assert (before.status_code, after.status_code) == (200, 401)
    assert "dovetail user add" in error_of(after)["fix"]


def test_the_last_user_who_goes_opens_no_door(world: World) -> None:
    world.token("ann", Role.ADMIN)
    UserFile.of(world.settings).revoke("ann")
    assert world.sql("SHOW VIEWS").status_code == 401


def test_a_file_of_users_that_goes_opens_no_door(world: World) -> None:
    ann = world.token("ann", Role.ADMIN)

    async def ask(client: httpx.AsyncClient) -> list[int]:
        codes = [(await client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN | ann)).status_code]
        UserFile.of(world.settings).path.unlink()
        return [*codes, (await client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN)).status_code]

    assert world.with_client(ask) == [200, 401]


def test_a_first_admin_is_added_where_nobody_is(tmp_path: Path) -> None:
    """Once: a server that is started again, and one that has users, are left as they are."""
    world = World(tmp_path, serve_first_admin="ann", serve_bind="0.0.0.0", serve_unprotected="on")
    add_first_admin(world.settings)
    file = tmp_path / "first-admin-token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = file.read_text().strip()
    assert world.sql("SHOW VIEWS").status_code == 401
    assert world.sql("CREATE VIEW v AS SELECT 1 AS a", Authorization=f"Bearer {token}").status_code == 200
    add_first_admin(world.settings)
    assert file.read_text().strip() == token
    UserFile.of(world.settings).revoke("ann")
    add_first_admin(world.settings)
    assert UserFile.of(world.settings).read() == ()


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
def test_a_file_of_users_that_is_named_and_not_there_is_an_error(tmp_path: Path, bind: str) -> None:
    """At start it is told; `dovetail user add` makes it."""
    file = tmp_path / "users" / "named.json"
    file.parent.mkdir()
    world = World(tmp_path, serve_users=file, serve_bind=bind, serve_unprotected="on")
    with pytest.raises(StackError, match="DOVETAIL_SERVE_USERS") as refused:
        expect_protected(world.settings)
    assert "dovetail user add" in refused.value.fix
    world.token("ann", Role.ADMIN)
    expect_protected(world.settings)


@pytest.mark.parametrize("named", [True, False])
def test_a_file_of_users_that_comes_and_goes_never_opens_the_door(tmp_path: Path, *, named: bool) -> None:
    """Nobody gets in while it is away, and those that it names once it is back."""
    file, away = tmp_path / "users.json", tmp_path / "away.json"
    world = World(tmp_path, serve_users=file) if named else World(tmp_path)
    users = UserFile.of(world.settings)
    ann = world.token("ann", Role.ADMIN)
    if named:
        users.path.rename(away)

    async def ask(client: httpx.AsyncClient) -> list[tuple[int, str]]:
        found = []
        for step in ("", "goes", "is made a folder", "comes back"):
            match step:
                case "goes" if users.path.exists():
                    users.path.rename(away)
                case "is made a folder":
                    users.path.mkdir()
                case "comes back":
                    users.path.rmdir()
                    away.rename(users.path)
            for header in (ann, {}):
                response = await client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN | header)
                found.append((response.status_code, "" if response.is_success else error_of(response)["what"]))
        return found

    found = world.with_client(ask)
    assert [code for code, _ in found[-2:]] == [200, 401]
    assert all(code in (401, 503) and "file of users" in what for code, what in found[2:6])
    assert found[0][0] == (401 if named else 200)


def test_a_file_of_users_that_is_damaged_opens_no_door(world: World) -> None:
    UserFile.of(world.settings).path.write_text('{"users": [{"name": "ann", "role": "king"}]}')
    response = world.sql("SHOW VIEWS")
    assert response.status_code == 503
    assert "serve-users.json" in error_of(response)["where"]


def test_a_token_is_shown_once_and_kept_nowhere(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(world.folder))
    added = CliRunner().invoke(app, ["user", "add", "ann", "--role", "writer"])
    token = added.stdout.strip()
    file = UserFile.of(world.settings).path
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token not in file.read_text()
    assert world.sql("SHOW VIEWS", Authorization=f"Bearer {token}").status_code == 200
    listed = CliRunner().invoke(app, ["user", "list", "-o", "json"])
    assert {name: json.loads(listed.stdout)[name] for name in ("user", "role")} == {"user": "ann", "role": "writer"}
    again = CliRunner().invoke(app, ["user", "add", "ann", "--role", "reader"])
    assert (again.exit_code, "dovetail user revoke ann" in again.stderr) == (1, True)
    assert CliRunner().invoke(app, ["user", "revoke", "anne"]).exit_code == 1
    revoked = CliRunner().invoke(app, ["user", "revoke", "ann"])
    assert revoked.exit_code == 0
    assert "no user remains, so no one can sign in: dovetail user add NAME --role admin" in revoked.stderr
    refused = world.sql("SHOW VIEWS", Authorization=f"Bearer {token}")
    assert refused.status_code == 401
    assert error_of(refused)["fix"] == "make one: dovetail user add NAME --role admin"
    made = CliRunner().invoke(app, ["user", "add", "bob", "--role", "reader"])
    assert world.sql("SHOW VIEWS", Authorization=f"Bearer {made.stdout.strip()}").status_code == 200
    assert "dovetail user add NAME --role reader" in error_of(world.sql("SHOW VIEWS"))["fix"]


@pytest.mark.parametrize("name", ["", "-x", "a b", "<b>", "a" * 65, "a\n"])
def test_a_name_that_no_user_has(world: World, name: str) -> None:
    with pytest.raises(StackError, match="cannot be the name of a user"):
        UserFile.of(world.settings).add(name, Role.READER, 0)


def test_it_listens_beyond_the_machine_for_users_and_with_tls_only(tmp_path: Path) -> None:
    world = World(tmp_path, serve_bind="0.0.0.0")
    with pytest.raises(StackError, match="without users or TLS"):
        expect_protected(world.settings)
    world.token("ann", Role.READER)
    with pytest.raises(StackError, match="without TLS"):
        expect_protected(world.settings)
    (tmp_path / "c").touch()
    half = world.settings.model_copy(update={"serve_tls_certificate": tmp_path / "c"})
    with pytest.raises(StackError, match="one is set"):
        expect_protected(half)
    expect_protected(half.model_copy(update={"serve_tls_key": tmp_path / "c"}))
    expect_protected(world.settings.model_copy(update={"serve_unprotected": "on"}))
    expect_protected(World(tmp_path).settings)


def test_addresses() -> None:
    assert [
        one for one in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "::", "10.0.0.1", "name") if is_loopback(one)
    ] == [
        "localhost",
        "127.0.0.2",
        "::1",
    ]
    assert [host_of(one) for one in ("A:1", "[::1]:80", "a/b", "a@b", "a:x", "")] == [
        "a",
        "::1",
        None,
        None,
        None,
        None,
    ]
