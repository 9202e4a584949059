"""The siege: records, requests and statements by a reader, while somebody asks for the health of the server."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import orjson

from dovetail.runtime.clock import now_ms
from dovetail.services.role import Role
from dovetail.services.serve.access.users import UserFile
from dovetail.services.session import Session
from dovetail.services.stack import Stack, temporary_stack
from tests.repeated import repeated
from tests.services.serve.test_random import KINDS as REQUESTS
from tests.siege import loot, records, statements
from tests.siege.account import Account
from tests.siege.fortress import fortress
from tests.siege.raw_http import exchange

_TABLES = (
    "CREATE STREAM numbers (a int, d decimal(10, 2)); CREATE STREAM texts (a int, b string);"
    "CREATE STREAM times (t datetime64(3), a int); CREATE VIEW v AS SELECT a FROM numbers;"
    "INSERT INTO numbers VALUES (1, 1.5), (2, NULL), (NULL, 0); INSERT INTO texts VALUES (1, 'x'), (2, 'y')"
)
_STATEMENT_S = 2.0
_ANSWER_S = 60.0
_PLACE_S = 5.0
"""How long the place of a statement may be taken after its end: a second, on a machine with nothing else to do."""


@dataclass(frozen=True)
class Size:
    """How much is sent; ``records`` of each format."""

    requests: int
    statements: int
    records: int
    seed: int = 1


def run(folder: Path, size: Size, say: Callable[[str], None]) -> Account:
    outside = folder / "outside"
    loot.laid(outside)
    with temporary_stack(folder / "data", ("kafka", "registry")) as stack:
        _fill(stack, size)
        say(f"{size.records} records of each of {len(records.FORMATS)} formats are there")
        token = UserFile.of(stack.settings).add("reader", Role.READER, now_ms())
        registry = stack.endpoint("registry")
        served = {"brokers": stack.endpoint("kafka"), "schema_registry_url": registry, "serve_port": 0}
        with fortress(stack.settings.data_dir, outside, serve_statement_s=_STATEMENT_S, **served) as at:
            besieger = Besieger(at.address, {"Authorization": f"Bearer {token}"}, Account(), random.Random(size.seed))
            besieger.tell("SELECT a FROM table(numbers)")
            mark = at.mark()
            with repeated(besieger.ask_for_health, 0.1):
                besieger.attack(size, outside, say)
            account = besieger.account
            account.ended = at.process.poll()
            addresses = frozenset({stack.endpoint("kafka"), registry.removeprefix("http://")})
            account.opened = at.trespasses(mark, addresses=addresses)
    return account


def _fill(stack: Stack, size: Size) -> None:
    broker = stack.endpoint("kafka")
    with Session.open(stack.settings) as session:
        session.run(_TABLES)
        for record_format in records.FORMATS:
            records.create(session, record_format)
            good = records.good(session, broker, record_format)
            records.send(broker, record_format, good, size.records, random.Random(f"{size.seed}{record_format}"))


@dataclass(frozen=True)
class Besieger:
    """Who sends what a stranger may send, as a reader with a token."""

    address: str
    token: Mapping[str, str]
    account: Account
    chance: random.Random

    def attack(self, size: Size, outside: Path, say: Callable[[str], None]) -> None:
        for record_format in records.FORMATS:
            self.tell(f"SELECT * FROM table({records.topic_of(record_format)})")
            self.tell(f"SELECT count(*) FROM table({records.topic_of(record_format)})")
        say(f"records are read, {dict(self.account.answers)}")
        for number in range(size.requests):
            self.send(*REQUESTS[number % len(REQUESTS)](self.chance))
        say(f"requests are answered, {dict(self.account.answers)}")
        for _ in range(size.statements):
            self.tell(statements.statement(self.chance, outside))
        say(f"statements are answered, {dict(self.account.answers)}")

    def tell(self, sql: str) -> None:
        self.send("POST", "/v1/sql", orjson.dumps({"sql": sql}), {"Content-Type": "application/json"})

    def send(self, verb: str, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        request = f"{verb} {path} {dict(headers)} {body!r}"
        self.account.take(request, lambda: self._exchange(verb, path, body, headers))

    def _exchange(self, verb: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        """The answer; of a request that has no place, once a place is free: one is asked for after the other."""
        until_s = time.monotonic() + _PLACE_S
        while True:
            status, text = exchange(self.address, verb, path, body, {**self.token, **headers}, _ANSWER_S)
            if status != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > until_s:
                return status, text
            time.sleep(0.05)

    def ask_for_health(self) -> None:
        before_s = time.monotonic()
        self.account.take("health", lambda: exchange(self.address, "GET", "/health", b"", {}, _ANSWER_S))
        self.account.health_s.append(time.monotonic() - before_s)
