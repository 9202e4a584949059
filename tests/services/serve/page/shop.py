"""A stack with everything, and a shop in it: what the page shows in the tests, and on its pictures."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from confluent_kafka import Producer

from dovetail.runtime.clock import now_ms
from dovetail.services.role import Role
from dovetail.services.serve.access.users import UserFile
from dovetail.services.stack import Stack, temporary_stack
from tests.services.stack.test_stack import state_of

EVERYTHING = ("kafka", "redis", "registry", "spark", "worker", "serve")
_NAMES = {Role.READER: "rita", Role.WRITER: "will", Role.ADMIN: "ada"}
MARKUP = "<b>bold</b>"
_PRODUCTS = [
    ("tea", "Tea of the hills"),
    ("cup", "Cup, blue"),
    ("pot", "Pot, cast iron"),
    ("odd", "<img src=x onerror=x>"),
]
_STATEMENTS = """
CREATE STREAM orders (
  id int64, product string, amount float64, at datetime64(3), WATERMARK FOR at AS at - INTERVAL '2' SECOND
);
CREATE STREAM parcels (id int64, weight float64);
CREATE DICTIONARY products (product string, name string) PRIMARY KEY product
SOURCE(SQLITE(PATH '{database}' TABLE 'products'))
LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'products' MAX_HOT_KEY_COUNT 1000));
CREATE MATERIALIZED VIEW sales AS SELECT product, count() AS n, sum(amount) AS total FROM orders GROUP BY product;
CREATE MATERIALIZED VIEW large AS SELECT product, total FROM sales WHERE total > 100;
CREATE MATERIALIZED VIEW named AS
SELECT s.product AS product, s.n AS n, p.name AS name FROM sales AS s LEFT JOIN products AS p ON s.product = p.product;
CREATE VIEW `{markup}` AS SELECT id FROM orders WHERE amount > 50;
"""


@dataclass(frozen=True)
class Shop:
    """The address of its server, tokens by role, the stack that runs it, and the database of its products."""

    address: str
    tokens: dict[Role, str]
    stack: Stack
    database: Path

    def sql(self, text: str) -> None:
        """Raises AssertionError where a statement is refused."""
        headers = {"Authorization": f"Bearer {self.tokens[Role.ADMIN]}"}
        answer = httpx.post(f"{self.address}/v1/sql", json={"sql": text, "agree": True}, headers=headers, timeout=120)
        assert answer.status_code == 200, answer.text
        assert '{"error"' not in answer.text, answer.text

    def end_server(self) -> None:
        """Its supervisor starts it again, at the same port."""
        [pid] = [one.pid for one in self.stack.status() if one.name == "serve" and one.pid is not None]
        os.kill(pid, signal.SIGKILL)

    @contextmanager
    def without_server(self) -> Iterator[None]:
        """It stays away until the end: its supervisor, which would start it within a second, is halted."""
        supervisor = state_of(self.stack).supervisor.pid
        os.kill(supervisor, signal.SIGSTOP)
        try:
            self.end_server()
            yield
        finally:
            os.kill(supervisor, signal.SIGCONT)

    def spoil(self, topic: str, value: bytes) -> None:
        """A record that another program has written."""
        producer = Producer({"bootstrap.servers": self.stack.endpoint("kafka")})
        producer.produce(topic, value)
        assert producer.flush(30) == 0

    def order(self, *orders: tuple[int, str, float]) -> None:
        """Rows of now."""
        rows = ", ".join(f"({number}, '{product}', {amount}, now64(3))" for number, product, amount in orders)
        self.sql(f"INSERT INTO orders (id, product, amount, at) VALUES {rows}")


@contextmanager
def opened_shop(folder: Path, **settings: object) -> Iterator[Shop]:
    """It is served for as long as the block runs."""
    database = folder / "products.db"
    with sqlite3.connect(database) as made:
        made.execute("CREATE TABLE products (product TEXT PRIMARY KEY, name TEXT)")
        made.executemany("INSERT INTO products VALUES (?, ?)", _PRODUCTS)
    made.close()
    chosen = {"serve_watch_s": 0.5, "start_timeout_s": 180, "serve_statement_s": 180, "buckets": 1, **settings}
    with temporary_stack(folder / "stack", EVERYTHING, **chosen) as stack:
        users = UserFile.of(stack.settings)
        tokens = {role: users.add(_NAMES[role], role, now_ms()) for role in Role}
        shop = Shop(stack.endpoint("serve"), tokens, stack, database)
        shop.sql(_STATEMENTS.format(database=database, markup=MARKUP))
        shop.order((1, "tea", 5.0), (2, "cup", 120.0), (3, "tea", 7.5), (4, "odd", 1.0))
        yield shop
