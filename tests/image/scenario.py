"""What is done with the stack from outside, and the changelogs that must come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx
import orjson

from tests.image.engine import Engine
from tests.spark.kafka import Value, send, values

_REQUEST_S = 180.0
VIEWS = ("named", "priced")
_STATEMENTS = """
CREATE STREAM orders (id int64, customer int64, product int64, region string)
  PRIMARY KEY (id) SETTINGS mode = 'versioned_kv';
CREATE STREAM customers (id int64, name string)
  PRIMARY KEY (id) SETTINGS mode = 'versioned_kv';
CREATE DICTIONARY products (id int64, price decimal(10, 2)) PRIMARY KEY id
  SOURCE(MYSQL(HOST 'mysql' USER 'dovetail' PASSWORD '{DOVETAIL_MYSQL_PASSWORD}' DB 'dovetail' TABLE 'products'))
  LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'products'));
CREATE DICTIONARY regions (id string, tax int32) PRIMARY KEY id
  SOURCE(CLICKHOUSE(HOST 'clickhouse' USER 'dovetail' PASSWORD '{DOVETAIL_CLICKHOUSE_PASSWORD}' DB 'dovetail'
    TABLE 'regions'))
  LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'regions'));
CREATE DICTIONARY currencies (id string, currency string) PRIMARY KEY id
  SOURCE(FILE(PATH 'currencies.csv' FORMAT 'CSVWithNames')) LAYOUT(HASHED());
CREATE MATERIALIZED VIEW named AS
  SELECT orders.id AS id, customers.name AS name FROM orders JOIN customers ON orders.customer = customers.id
  SETTINGS seek_to = 'earliest';
CREATE MATERIALIZED VIEW priced AS
  SELECT orders.id AS id, price, tax, currency FROM orders
    LEFT JOIN products ON orders.product = products.id
    LEFT JOIN regions ON orders.region = regions.id
    LEFT JOIN currencies ON orders.region = currencies.id
  SETTINGS seek_to = 'earliest', join_algorithm = 'direct';
"""
Row = tuple[object, ...]
"""The columns of a view, and the delta."""


@dataclass(frozen=True)
class Step:
    """What is written: customers and orders by key, None for a deletion; and what each view adds to its changelog."""

    customers: Mapping[int, Value] = field(default_factory=dict)
    orders: Mapping[int, Value] = field(default_factory=dict)
    changes: Mapping[str, list[Row]] = field(default_factory=dict)


def order(number: int, customer: int, product: int, region: str) -> dict[str, object]:
    return {"id": number, "customer": customer, "product": product, "region": region}


BEFORE = (
    Step(
        customers={1: {"id": 1, "name": "Ann"}, 2: {"id": 2, "name": "Bob"}},
        orders={10: order(10, 1, 1, "eu"), 11: order(11, 2, 2, "us"), 12: order(12, 3, 9, "eu")},
        changes={
            "named": [(10, "Ann", 1), (11, "Bob", 1)],
            "priced": [(10, 1.5, 20, "EUR", 1), (11, 2.25, 7, "USD", 1), (12, None, 20, "EUR", 1)],
        },
    ),
    Step(
        customers={1: {"id": 1, "name": "Anna"}, 3: {"id": 3, "name": "Cyd"}},
        changes={"named": [(10, "Ann", -1), (10, "Anna", 1), (12, "Cyd", 1)]},
    ),
)
"""While the stack is new."""
AFTER_AN_END = (
    Step(
        customers={2: None},
        orders={10: None, 11: order(11, 3, 1, "us"), 13: order(13, 1, 2, "nowhere")},
        changes={
            "named": [(10, "Anna", -1), (11, "Bob", -1), (11, "Cyd", 1), (13, "Anna", 1)],
            "priced": [
                *((10, 1.5, 20, "EUR", -1), (11, 2.25, 7, "USD", -1)),
                *((11, 1.5, 7, "USD", 1), (13, 2.25, None, None, 1)),
            ],
        },
    ),
)
"""Once all containers were told to end, and others were made over their volumes."""
AFTER_A_CUT = (
    Step(
        customers={3: {"id": 3, "name": "Cy"}},
        orders={12: order(12, 3, 2, "us")},
        changes={
            "named": [(11, "Cyd", -1), (11, "Cy", 1), (12, "Cyd", -1), (12, "Cy", 1)],
            "priced": [(12, None, 20, "EUR", -1), (12, 2.25, 7, "USD", 1)],
        },
    ),
)
"""Once they were all killed."""


class Scenario:
    """say  takes lines of progress"""

    def __init__(self, engine: Engine, say: Callable[[str], None]) -> None:
        self._engine = engine
        self._say = say
        self._seen: Counter[str] = Counter()

    def prepare(self) -> None:
        """The tables and the file of the sources, the streams, the dictionaries and the views."""
        self._fill_sources()
        # In a text of SQL a backslash means the character behind it.
        passwords = {name: value.replace("\\", r"\\") for name, value in self._engine.variables.items()}
        answer = self._post("/v1/sql", _STATEMENTS.format_map(passwords).encode(), "text/plain")
        assert answer.is_success, answer.text
        last = orjson.loads(answer.text.splitlines()[-1])
        assert "end" in last, last

    def play(self, steps: tuple[Step, ...]) -> None:
        """Write each step, wait until the views include it, and compare what they have added."""
        brokers = f"127.0.0.1:{self._engine.variables['DOVETAIL_KAFKA_PORT']}"
        for step in steps:
            for topic, rows in {"customers": step.customers, "orders": step.orders}.items():
                send(brokers, topic, rows.values(), keys=[str(key).encode() for key in rows])
            for view in VIEWS:
                self._wait(view)
                found = values(brokers, view)
                added = Counter(tuple(row.values()) for row in found[self._seen[view] :])
                self._seen[view] = len(found)
                expected = Counter(step.changes.get(view, []))
                assert added == expected, f"{view} added {added}, and should have added {expected}"
                self._say(f"{view}: {added.total()} rows more, as expected")

    def _fill_sources(self) -> None:
        self._engine.within(
            *("mysql", "sh", "-c", 'MYSQL_PWD="$MYSQL_PASSWORD" mysql --host=127.0.0.1 --user=dovetail dovetail'),
            text="CREATE TABLE products (id bigint PRIMARY KEY, price decimal(10, 2));"
            "INSERT INTO products VALUES (1, 1.50), (2, 2.25);",
        )
        variables = self._engine.variables
        for statement in (
            "CREATE TABLE dovetail.regions (id String, tax Int32) ENGINE = MergeTree ORDER BY id",
            "INSERT INTO dovetail.regions VALUES ('eu', 20), ('us', 7)",
        ):
            address = f"http://127.0.0.1:{variables['DOVETAIL_CLICKHOUSE_HTTP_PORT']}/"
            login = ("dovetail", variables["DOVETAIL_CLICKHOUSE_PASSWORD"])
            httpx.post(address, content=statement, auth=login, timeout=_REQUEST_S).raise_for_status()
        file = "/var/lib/dovetail/files/currencies.csv"
        self._engine.within("worker", "sh", "-c", f"cat > {file}", text="id,currency\neu,EUR\nus,USD\n")

    def _wait(self, view: str) -> None:
        answer = self._post(f"/v1/views/{view}/wait", b"{}", "application/json")
        assert answer.is_success, answer.text

    def _post(self, path: str, content: bytes, kind: str) -> httpx.Response:
        token = self._engine.within("serve", "cat", "/var/lib/dovetail/first-admin-token").strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        address = f"http://127.0.0.1:{self._engine.variables['DOVETAIL_SERVE_PORT']}"
        return httpx.post(address + path, content=content, headers=headers, timeout=_REQUEST_S)
