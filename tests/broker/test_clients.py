"""Every client of Kafka comes from one file, so that an encrypted cluster needs one change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import faust_settings
from tests.paths import ROOT
from tests.test_layers import PRESENT, sources

HOME = ROOT / "broker" / "clients.py"
CLIENTS = frozenset({"Consumer", "DeserializingConsumer", "Producer", "SerializingProducer", "AdminClient"})
LIBRARIES = frozenset({"confluent_kafka", "aiokafka", "kafka"})
ADDRESS = "bootstrap.servers"


def reaches_kafka(tree: ast.AST) -> Iterator[str]:
    """Where a module makes a client, or settings for one, by itself."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LIBRARIES
        for alias in node.names
        if alias.name in CLIENTS
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call | ast.ClassDef):
            for named in node.bases if isinstance(node, ast.ClassDef) else [node.func]:
                called = ast.unparse(named)
                if called in imported or (called.split(".")[0] in LIBRARIES and called.split(".")[-1] in CLIENTS):
                    yield f"{node.lineno}: {called}"
        elif isinstance(node, ast.Constant) and node.value == ADDRESS:
            yield f"{node.lineno}: {ADDRESS}"


def test_no_other_file_makes_a_client() -> None:
    paths = [path for layer in PRESENT for path in sources(layer) if path != HOME]
    found = [
        f"{path.relative_to(ROOT)}:{place}" for path in paths for place in reaches_kafka(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from confluent_kafka import Consumer\nc = Consumer({})", ["2: Consumer"]),
        ("from confluent_kafka import Producer as P\np = P({})", ["2: P"]),
        ("import confluent_kafka\na = confluent_kafka.admin.AdminClient({})", ["2: confluent_kafka.admin.AdminClient"]),
        ("from confluent_kafka import Producer\nclass P(Producer): ...", ["2: Producer"]),
        ("settings = {'bootstrap.servers': 'x'}", ["1: bootstrap.servers"]),
        ("from confluent_kafka import Consumer\ndef f(c: Consumer) -> None: c.close()", []),
    ],
)
def test_a_client_is_seen(source: str, found: list[str]) -> None:
    assert list(reaches_kafka(ast.parse(source))) == found


def test_the_test_reads_the_file_that_makes_them() -> None:
    made = {place.split()[-1] for place in reaches_kafka(ast.parse(HOME.read_text()))}
    assert made == {"Consumer", "Producer", "AdminClient", ADDRESS}


def test_a_faust_app_is_given_every_server() -> None:
    settings = faust_settings(BrokerAddress("one:9092,two:9093"))
    assert settings["broker"] == ["kafka://one:9092", "kafka://two:9093"]
