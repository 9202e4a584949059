"""When two lists of brokers are one cluster."""

from __future__ import annotations

import pytest

from dovetail.broker.address import BrokerAddress


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("localhost:9092", "127.0.0.1:9092"),
        ("localhost:9092", "[::1]:9092"),
        ("LocalHost", "localhost:9092"),
        ("PLAINTEXT://kafka:9092", "kafka:9092"),
        ("a:1, b:2", "c:3,b:2"),
    ],
)
def test_one_cluster(one: str, other: str) -> None:
    assert BrokerAddress(one).meets(BrokerAddress(other))
    assert BrokerAddress(other).meets(BrokerAddress(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [("localhost:9092", "localhost:9093"), ("localhost:9092", "far:9092"), ("a:1,b:2", "a:2,b:1"), ("[::2]", "[::1]")],
)
def test_two_clusters(one: str, other: str) -> None:
    assert not BrokerAddress(one).meets(BrokerAddress(other))
