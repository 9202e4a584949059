"""The clients of Kafka: each one that Dovetail uses is made here, from the address of the cluster.

What all of them share is said once: how they reach the brokers, by which name the brokers know them, and that they
write nothing to a log. Whoever uses a client adds what its task needs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from dovetail.broker.address import BrokerAddress

ClientSettings = Mapping[str, Any]
"""Settings of librdkafka, by name."""

_CLIENT_ID = "dovetail"
_LOG = logging.getLogger("librdkafka")
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False
_SILENT: ClientSettings = {"log_level": 0, "log.connection.close": False, "logger": _LOG}
"""What the library logs reaches us as errors too. Being fenced, which it calls fatal and logs at every level, is a part
of normal life here.
"""
QUICK_RETURN: ClientSettings = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 1000}
"""For a client that waits for a lost broker. The library's other strategy forgets the brokers when all are lost: where
one of them coordinates transactions, the next call then waits for ever, whatever its time-out, also when the broker is
back.
"""


def consumer(brokers: BrokerAddress, group: str, settings: ClientSettings) -> Consumer:
    """It commits what it is told to commit, and nothing by itself.

    group   a consumer that is assigned its partitions by hand has one for the broker's logs only, and never joins it
    """
    return Consumer({**_shared(brokers), "group.id": group, "enable.auto.commit": False, **settings})


class FencedProducer(Producer):
    """Where it is fenced while it calls those back who wait for their messages, it says so.

    The library goes on calling back with its exception pending. Python then knows of nothing but a callback that has
    "returned a result with an exception set", which would pass for a defect.
    """

    def poll(self, *timeout: float) -> int:
        with _own_failure():
            return super().poll(*timeout)

    def flush(self, *timeout: float) -> int:
        with _own_failure():
            return super().flush(*timeout)

    def commit_transaction(self, *timeout: float) -> None:
        with _own_failure():
            super().commit_transaction(*timeout)

    def abort_transaction(self, *timeout: float) -> None:
        with _own_failure():
            super().abort_transaction(*timeout)


@contextmanager
def _own_failure() -> Iterator[None]:
    try:
        yield
    except SystemError as overtaken:
        cause = overtaken.__cause__
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if not isinstance(cause, KafkaException):
            raise
        raise cause from None


def producer(brokers: BrokerAddress, settings: ClientSettings) -> Producer:
    """Keys find their partitions as those of the Java client do, so that they meet the keys of other producers."""
    return FencedProducer({**_shared(brokers), "partitioner": "murmur2_random", **settings})


def admin(brokers: BrokerAddress, settings: ClientSettings | None = None) -> AdminClient:
    return AdminClient({**_shared(brokers), **(settings or {})})


def _shared(brokers: BrokerAddress) -> dict[str, Any]:
    return {"bootstrap.servers": brokers.servers, "client.id": _CLIENT_ID, **brokers.security.settings(), **_SILENT}


def faust_settings(brokers: BrokerAddress) -> dict[str, Any]:
    """The same for the client of a Faust app, which is aiokafka's: arguments of ``faust.App``."""
    return {"broker": [f"kafka://{server}" for server in brokers.each], "broker_client_id": _CLIENT_ID}
