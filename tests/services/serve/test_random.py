"""10,000 requests that are wrong, of every kind: each is told what is wrong, and nothing comes of any."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import orjson

from dovetail.services.role import Role
from tests.services.serve.world import PLAIN, World, error_of, rows_of

REQUESTS = 10_000
SEED = 20_260_131
TEXTS = (
    "SELECT a FROM one WHERE a > 1",
    "CREATE VIEW two AS SELECT 1 AS a",
    "INSERT INTO s (a) VALUES (1, 'x')",
    "SHOW DEAD LETTERS FROM v LIKE '%x%'",
    "CREATE STREAM s (a int, b string) SETTINGS mode = 'append'",
    "DROP VIEW one CASCADE WITH DATA",
    "EXPLAIN SELECT a, count() FROM one GROUP BY a EMIT CHANGELOG",
)
NAMES = ("<script>alert(1)</script>", "../../etc/passwd", "%00", "é" * 300, "one'; DROP VIEW one; --", "\u202enoitcele")
Made = tuple[str, str, bytes, dict[str, str]]
"""Method, path, body, headers."""


def posted(body: bytes, **headers: str) -> Made:
    return "POST", "/v1/sql", body, {**PLAIN, **{name.replace("_", "-"): value for name, value in headers.items()}}


def cut(chance: random.Random) -> Made:
    """A statement that ends in its middle, at a quote or parenthesis that stays open."""
    text = chance.choice(TEXTS)
    opened = chance.choice(["(", "[", "{", "'", "/*"])
    return posted(f"{text[: chance.randrange(1, len(text))]} {opened}".encode())


def shuffled(chance: random.Random) -> Made:
    """Words of statements in an order that has no meaning; the last of them is none."""
    words = chance.choice(TEXTS).split() + chance.choice(TEXTS).split()
    chance.shuffle(words)
    return posted(f"{' '.join(words)} §".encode())


def noise(chance: random.Random) -> Made:
    return posted(chance.randbytes(chance.randrange(1, 200)) + b"\xff")


def control(chance: random.Random) -> Made:
    text = chance.choice(TEXTS)
    place = chance.randrange(len(text))
    return posted(f"{text[:place]}{chr(chance.choice([0, 1, 7, 8, 11, 12, 27, 127]))}{text[place:]}".encode())


def unknown_name(chance: random.Random) -> Made:
    quoted = chance.choice(NAMES).replace("`", "")
    return posted(f"SELECT * FROM `{quoted}{chance.randrange(99)}`".encode())


def forbidden(chance: random.Random) -> Made:
    """What a reader may not do."""
    return posted(chance.choice([text for text in TEXTS if text.split()[0] in ("CREATE", "INSERT", "DROP")]).encode())


def json_noise(chance: random.Random) -> Made:
    values: list[object] = [None, 1, "x", [], {}, True, "SHOW VIEWS", {"a": "b"}]
    members = {chance.choice(["sql", "agree", "SQL", "", "until_idle"]): chance.choice(values), "more": 1}
    body = orjson.dumps(chance.choice([members, [members], chance.choice(values)]))
    if chance.random() < 0.3:
        body = body[: chance.randrange(len(body))]
    return "POST", "/v1/sql", body, {"Content-Type": "application/json"}


def headers(chance: random.Random) -> Made:
    wrong = {
        "Host": ["evil.example", "a b", "127.0.0.1@evil", "127.0.0.1:port"],
        "Origin": ["http://evil.example", "null", "https://127.0.0.1:6068", "<b>"],
        "Accept": ["text/html", "image/*;q=1", "q=x", ";;;", "application/x-ndjson;q=0"],
        "Content-Type": ["", "text/html", "multipart/form-data; boundary=x", "application/json; charset=latin-1", "/"],
        "Content-Encoding": ["gzip", "br", "identity, gzip"],
        "Authorization": ["Bearer", "Bearer x", "Basic YTpi", "Digest", "Bearer " + "x" * 4000],
        "Content-Length": ["999999999999"],
        "Sec-Fetch-Site": ["cross-site", "same-site", "elsewhere"],
    }
    name = chance.choice(list(wrong))
    return posted(b"SHOW VIEWS", **{name.replace("-", "_"): chance.choice(wrong[name])})


def places(chance: random.Random) -> Made:
    name = chance.choice(NAMES)
    path = chance.choice(["/v1/{}", "/{}", "/v1/sql/{}", "/v1/sql?x={}", "/health/{}", "/.git/{}"]).format(name)
    return chance.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]), path, b"", {}


def method(chance: random.Random) -> Made:
    return chance.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"]), "/v1/sql", b"SHOW VIEWS", {}


def large(_chance: random.Random) -> Made:
    return posted(b"SELECT 1 -- " + b"x" * 3000)


KINDS: tuple[Callable[[random.Random], Made], ...] = (
    cut,
    shuffled,
    noise,
    control,
    unknown_name,
    forbidden,
    json_noise,
    headers,
    places,
    method,
    large,
    *(control, json_noise, headers, places, method, headers, places),
)
"""Some twice: a text that has to be read as SQL takes longest."""


def test_whatever_is_wrong_is_told_and_nothing_comes_of_it(tmp_path: Path) -> None:
    world = World(tmp_path, serve_body_bytes=2048)
    assert world.sql("CREATE VIEW one AS SELECT 1 AS a").status_code == 200
    reader, chance = world.token("ann", Role.READER), random.Random(SEED)
    seen: Counter[tuple[str, int]] = Counter()

    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        for number in range(REQUESTS):
            make = KINDS[number % len(KINDS)]
            verb, path, body, given = make(chance)
            response = await client.request(verb, path, content=body, headers=reader | given)
            assert 400 <= response.status_code < 500, (number, verb, path, body, given, response.text)
            error_of(response)
            seen[make.__name__, response.status_code] += 1
        return await client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN | reader)

    after = world.with_client(ask)
    assert [row["name"] for row in rows_of(after)] == ["one"]
    assert {name for name, _ in seen} == {make.__name__ for make in KINDS}
    assert {status for _, status in seen} >= {400, 401, 403, 404, 405, 406, 413, 415, 421}
