"""The clients of Kafka: each one that Dovetail uses is made here, from the address of the cluster.

What all of them share is said once: how they reach the brokers, by which name the brokers know them, that they write
nothing to a log, and that what they raise is a BrokerError. Whoever uses a client adds what its task needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError, broker_errors
from dovetail.broker.timed_call import within

ClientSettings = Mapping[str, Any]
"""Settings of librdkafka, by name."""

_CLIENT_ID = "dovetail"
_CONNECT_S = 1.0
_LOG = logging.getLogger("librdkafka")
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False
_SILENT: ClientSettings = {"log_level": 0, "log.connection.close": False, "logger": _LOG}
"""What the library logs reaches us as errors too. Being fenced, which it calls fatal and logs at every level, is a part
of normal life here.
"""
QUICK_RETURN: ClientSettings = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 1000}
"""For a client that waits for a lost broker. The library's other strategy forgets the brokers when all are lost: where
one of them coordinates transactions, the next call then waits forever, whatever its time-out, also when the broker is
back.
"""


Given = ParamSpec("Given")
Found = TypeVar("Found")


def _raising(call: Callable[Given, Found]) -> Callable[Given, Found]:
    """The call of a client, which raises BrokerError."""

    @wraps(call)
    def call_checked(*given: Given.args, **named: Given.kwargs) -> Found:
        with broker_errors():
            return call(*given, **named)

    return call_checked


class TopicConsumer(Consumer):
    """All that asks a broker raises BrokerError. A message may be the notice of a fault: ``errors.fault_of``."""

    poll = _raising(Consumer.poll)
    consume = _raising(Consumer.consume)
    assign = _raising(Consumer.assign)
    committed = _raising(Consumer.committed)
    get_watermark_offsets = _raising(Consumer.get_watermark_offsets)


class TopicProducer(Producer):
    """All that asks a broker raises BrokerError, but ``produce``: it is called for single messages."""

    poll = _raising(Producer.poll)
    flush = _raising(Producer.flush)
    purge = _raising(Producer.purge)
    produce_batch = _raising(Producer.produce_batch)
    _list_topics = _raising(Producer.list_topics)
    _init_transactions = _raising(Producer.init_transactions)
    begin_transaction = _raising(Producer.begin_transaction)
    _send_offsets_to_transaction = _raising(Producer.send_offsets_to_transaction)
    commit_transaction = _raising(Producer.commit_transaction)
    abort_transaction = _raising(Producer.abort_transaction)

    def init_transactions(self, timeout: float = -1.0) -> None:
        """Once there is a connection: the library asks for the coordinator at once, and where it is not connected yet
        not again for half a second.
        """
        with suppress(BrokerError):
            self._list_topics(timeout=_CONNECT_S)
        self._init_transactions(timeout)

    def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: object, timeout: float = -1.0
    ) -> None:
        """Raises BrokerError after the time-out, which the library takes and does not keep: it waits without end for
        the coordinator of the group where that has gone, and does not always notice that it is back.
        """
        with broker_errors():
            within(timeout, lambda: self._send_offsets_to_transaction(positions, group_metadata, timeout))


class Admin(AdminClient):
    """What the functions of ``topics`` ask by. Most of its calls give a promise: ``errors.answer``."""

    list_topics = _raising(AdminClient.list_topics)
    create_topics = _raising(AdminClient.create_topics)
    create_partitions = _raising(AdminClient.create_partitions)
    delete_topics = _raising(AdminClient.delete_topics)
    describe_topics = _raising(AdminClient.describe_topics)
    describe_configs = _raising(AdminClient.describe_configs)
    incremental_alter_configs = _raising(AdminClient.incremental_alter_configs)
    describe_cluster = _raising(AdminClient.describe_cluster)
    list_offsets = _raising(AdminClient.list_offsets)
    list_consumer_groups = _raising(AdminClient.list_consumer_groups)
    list_consumer_group_offsets = _raising(AdminClient.list_consumer_group_offsets)
    delete_consumer_groups = _raising(AdminClient.delete_consumer_groups)
    alter_consumer_group_offsets = _raising(AdminClient.alter_consumer_group_offsets)


def consumer(brokers: BrokerAddress, group: str, settings: ClientSettings) -> TopicConsumer:
    """It commits what it is told to commit, and nothing by itself.

    group   a consumer that is assigned its partitions by hand has one for the broker's logs only, and never joins it
    """
    with broker_errors():
        return TopicConsumer({**_shared(brokers), "group.id": group, "enable.auto.commit": False, **settings})


def producer(brokers: BrokerAddress, settings: ClientSettings) -> TopicProducer:
    """Keys find their partitions as those of the Java client do, so that they meet the keys of other producers."""
    with broker_errors():
        return TopicProducer({**_shared(brokers), "partitioner": "murmur2_random", **settings})


def admin(brokers: BrokerAddress, settings: ClientSettings | None = None) -> Admin:
    with broker_errors():
        return Admin({**_shared(brokers), **(settings or {})})


def _shared(brokers: BrokerAddress) -> dict[str, Any]:
    return {"bootstrap.servers": brokers.servers, "client.id": _CLIENT_ID, **brokers.security.settings(), **_SILENT}


def faust_settings(brokers: BrokerAddress) -> dict[str, Any]:
    """The same for the client of a Faust app, which is aiokafka's: arguments of ``faust.App``."""
    return {"broker": [f"kafka://{server}" for server in brokers.each], "broker_client_id": _CLIENT_ID}
