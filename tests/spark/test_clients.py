"""Any Kafka client writes the inputs and reads the outputs: the lines of its pages, run as they stand there."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer

from dovetail.broker import clients
from dovetail.broker import topics as topic_admin
from dovetail.broker.address import BrokerAddress
from dovetail.broker.reader import read_topic
from dovetail.changelog.decode import Decoder
from dovetail.changelog.schema import Column, Kind, StreamSchema
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView
from tests.paths import ROOT
from tests.spark.conftest import Queries
from tests.spark.kafka import messages, records

pytestmark = pytest.mark.services
PAGES = [ROOT / "docs" / name for name in ("topics.md", "outputs.md", "dead-letters.md")]
NAMES = ("clicks", "users", "items", "visits", "rides", "orders_priced", "orders_now")
TIMED = Column("at", pa.timestamp("us", tz="UTC"))
INPUTS = {
    "clicks": StreamSchema("clicks", (Column("id", pa.int32()), Column("url", pa.string()), TIMED)),
    "users": StreamSchema("users", (Column("id", pa.int32()), Column("name", pa.string())), Kind.UPSERT, ("id",)),
    "items": StreamSchema("items", (Column("id", pa.int32()), Column("stock", pa.int32())), Kind.CHANGELOG_KV, ("id",)),
    "visits": StreamSchema("visits", (Column("city", pa.string()), Column("visitor", pa.string())), Kind.CHANGELOG),
}
HELD = {"clicks": [(1, "/home")], "users": [], "items": [(1, 5)], "visits": []}


@pytest.fixture(scope="module", autouse=True)
def kcat() -> None:
    """CI has it (.ci/run installs it); a user's machine may not, and pip cannot bring it."""
    if not shutil.which("kcat"):
        assert "CI" not in os.environ, "kcat is missing"
        pytest.skip("kcat is not on the PATH; to run these tests: apt-get install kcat")


class Page:
    """The code of the pages, with the broker and the topics of this test in place of those it names."""

    def __init__(self, broker: str, topics: dict[str, str]) -> None:
        text = "".join(page.read_text() for page in PAGES).replace("localhost:9092", broker)
        self.topics = topics
        for name, topic in topics.items():
            text = re.sub(rf"(?<=-t ){name}\b|(?<=\"){name}(?=\"|\.dead_letter)", topic, text)
        self._blocks = re.findall(r"^```(\w+)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)

    def blocks(self, language: str, name: str) -> list[str]:
        return [code for kind, code in self._blocks if kind == language and re.search(rf"{self.topics[name]}\b", code)]

    def shell(self, name: str) -> str:
        """What the kcat lines of topic ``name`` print."""
        code = self.blocks("sh", name)[0]
        return subprocess.run(["bash", "-ec", code], check=True, capture_output=True, text=True, timeout=60).stdout


def content(broker: str, schema: StreamSchema, topic: str) -> list[tuple[object, ...]]:
    ends = topic_admin.end_offsets(clients.admin(BrokerAddress(broker)), [topic])[topic]
    rows = read_topic(BrokerAddress(broker), schema, topic, ends).rows.to_pylist()
    names = [column.name for column in schema.columns if column.name != "at"]
    return [tuple(row[name] for name in names) for row in rows]


def test_kcat_and_python_write_the_inputs(broker: str, topics: Callable[..., str]) -> None:
    for language in ("sh", "python"):
        page = Page(broker, {name: topics(name) for name in NAMES})
        scope: dict[str, object] = {}
        for name, schema in INPUTS.items():
            if language == "sh":
                page.shell(name)
            else:
                exec(page.blocks("python", name)[0], scope)
                exec("producer.flush()", scope)
            assert content(broker, schema, page.topics[name]) == HELD[name]
        beat(page, language, scope)
        assert heartbeats(broker, page.topics["rides"]) == 1


def beat(page: Page, language: str, scope: dict[str, object]) -> None:
    if language == "sh":
        page.shell("rides")
    else:
        exec(page.blocks("python", "rides")[0], scope)
        exec("producer.flush()", scope)


def heartbeats(broker: str, topic: str) -> int:
    """How many there are; no record is anything else."""
    decoded = Decoder(INPUTS["visits"], ("city",)).decode(records(messages(broker, topic)))
    assert (decoded.rows.num_rows, decoded.rejected.num_rows) == (0, 0)
    return int(decoded.heartbeats.num_rows)


def test_kcat_and_python_read_the_outputs(
    broker: str, topics: Callable[..., str], queries: Queries, tmp_path: Path
) -> None:
    page = Page(broker, {"orders_priced": queries.new_name(), "orders_now": queries.new_name()})
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    orders = topics("orders")
    stream = parse_one(
        f"CREATE MUTABLE STREAM orders (order_id int, price float64) PRIMARY KEY order_id SETTINGS topic = '{orders}'"
    )
    assert isinstance(stream, CreateStream)
    catalog.create(stream, now_ms=0)
    for value in ("9.5", "9.75", '"cheap"'):
        line = f"""echo '{{"order_id":1}}|{{"order_id":1,"price":{value}}}' | kcat -b {broker} -P -t {orders} -K '|'"""
        subprocess.run(["bash", "-ec", line], check=True, timeout=60)
        formats = {"orders_priced": "changelog", "orders_now": "upsert"}
        run(catalog, queries, {page.topics[name]: output_format for name, output_format in formats.items()})

    priced = page.shell("orders_priced")
    assert any(priced in path.read_text() for path in PAGES)
    assert page.shell("orders_now").splitlines()[-1] == '{"order_id":1} {"order_id":1,"price":9.75}'
    assert "dovetail.reason=column price: expected" in dead_letters(page)
    assert printed(page.blocks("python", "orders_priced")[0]).count('"_tp_delta"') == 3


def test_kcat_and_python_read_late_rows(broker: str, topics: Callable[..., str]) -> None:
    page = Page(broker, {"rides_late": topics("late")})
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(
        page.topics["rides_late"], b'{"id":1}', headers=[("dovetail.watermark", b"2026-01-31 12:00:00.000")]
    )
    producer.flush()

    assert page.shell("rides_late") == 'dovetail.watermark=2026-01-31 12:00:00.000\n{"id":1}\n'
    settings = {"bootstrap.servers": broker, "group.id": "late-reader", "auto.offset.reset": "earliest"}
    scope: dict[str, object] = {"consumer": Consumer(settings)}
    assert printed(page.blocks("python", "rides_late")[0], scope) == "2026-01-31 12:00:00.000 b'{\"id\":1}'\n"


def run(catalog: Catalog, queries: Queries, formats: Mapping[str, str]) -> None:
    """Run queries, by name, side by side over what their input holds now; each resumes where it was."""
    plans = {name: planned(catalog, name, output_format) for name, output_format in formats.items()}
    running = {name: queries.start(plan.dataflow, name) for name, plan in plans.items()}
    for name, query in running.items():
        queries.drain(query, plans[name].dataflow)
        query.stop()


def planned(catalog: Catalog, name: str, output_format: str) -> Plan:
    text = (
        f"CREATE MATERIALIZED VIEW {name} AS SELECT order_id, price, _tp_delta FROM orders"
        f" EMIT CHANGELOG SETTINGS output_format = '{output_format}'"
    )
    view = parse_one(text)
    assert isinstance(view, CreateView)
    return plan_query(name, view, catalog)


def dead_letters(page: Page) -> str:
    code = next(code for code in page.blocks("sh", "orders_priced") if "dead_letter" in code)
    return subprocess.run(["bash", "-ec", code], check=True, capture_output=True, text=True, timeout=60).stdout


def printed(code: str, scope: dict[str, object] | None = None) -> str:
    """What a reader prints until the topic is silent."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code.replace("poll(10)", "poll(4)"), scope if scope is not None else {})
    return output.getvalue()
