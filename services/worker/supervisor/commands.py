"""The topic of commands, read by the worker from its end on; every command is answered, in the topic of results."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from confluent_kafka import TopicPartition

from broker import clients
from broker.address import BrokerAddress
from broker.topic_shapes import TopicAdmin, TopicShape
from services.commands import COMMANDS, RESULTS

_LOG = logging.getLogger("dovetail.worker")
_DAY_MS = 24 * 3600 * 1000
# One partition: commands are executed in the order in which they were given.
_SHAPE = TopicShape(1, config={"cleanup.policy": "delete", "retention.ms": str(_DAY_MS)})
_POLL_S = 0.2
_SEND_S = 10.0


class CommandReader:
    """Executes commands on a thread of its own, one after the other."""

    def __init__(
        self,
        brokers: BrokerAddress,
        timeout_s: float,
        worker: str,
        execute: Callable[[Mapping[str, Any]], dict[str, Any]],
    ) -> None:
        self._worker = worker
        self._execute = execute
        topics = TopicAdmin(brokers, timeout_s)
        for topic in (COMMANDS, RESULTS):
            topics.create(topic, _SHAPE)
        self._consumer = clients.consumer(brokers, "dovetail.commands", {"fetch.wait.max.ms": 100})
        ends = topics.ends(COMMANDS)
        self._consumer.assign([TopicPartition(COMMANDS, partition, offset) for partition, offset in ends.items()])
        self._producer = clients.producer(brokers, {"linger.ms": 1})
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name="commands", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stopped.is_set():
            message = self._consumer.poll(_POLL_S)
            if message is not None and message.error() is None:
                self._answer(message.value() or b"")

    def _answer(self, value: bytes) -> None:
        """Anybody may write to the topic: what is no command is left alone."""
        try:
            command = orjson.loads(value)
        except orjson.JSONDecodeError:
            return
        if not isinstance(command, dict) or not isinstance(command.get("id"), str):
            return
        try:
            answer = self._execute(command)
        except Exception as failure:  # noqa: BLE001 - whatever a command meets, the next one is executed
            _LOG.exception("command %s", command.get("command"))
            answer = {"ok": False, "detail": {"error": str(failure)}}
        result = {"id": command["id"], "worker": self._worker, **answer}
        self._producer.produce(RESULTS, orjson.dumps(result, default=str))
        self._producer.flush(_SEND_S)

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._consumer.close()
