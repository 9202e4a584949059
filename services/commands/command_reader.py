"""The topic of commands, read by a worker from its end on; every command is answered, in the topic of results."""

from __future__ import annotations

import logging

from confluent_kafka import TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin
from dovetail.dictionaries.supervised_thread import SupervisedThread
from dovetail.services.commands.command_codec import Answer, Command, CommandHandler, Outcome, answer_bytes, command_of
from dovetail.services.commands.command_topics import COMMANDS, GROUP, RESULTS, make_command_topics

_LOG = logging.getLogger("dovetail.worker")
_POLL_S = 0.2
_SEND_S = 10.0


class CommandReader:
    """Has commands executed on a thread of its own, one after the other."""

    def __init__(self, brokers: BrokerAddress, timeout_s: float, worker: str, handler: CommandHandler) -> None:
        self._worker = worker
        self._handler = handler
        topics = TopicAdmin(brokers, timeout_s)
        make_command_topics(topics)
        self._consumer = clients.consumer(brokers, GROUP, {"fetch.wait.max.ms": 100})
        ends = topics.ends(COMMANDS)
        self._consumer.assign([TopicPartition(COMMANDS, partition, offset) for partition, offset in ends.items()])
        self._producer = clients.producer(brokers, {"linger.ms": 1})
        self._thread = SupervisedThread("commands", self._read, lambda failure: None)
        self._thread.start()

    def _read(self) -> None:
        while not self._thread.closing.is_set():
            self._thread.well()
            message = self._consumer.poll(_POLL_S)
            if message is not None and message.error() is None:
                command = command_of(message.value() or b"")
                if command is not None:
                    self._answer(command)

    def _answer(self, command: Command) -> None:
        answer = Answer(command.id, self._worker, self._outcome(command))
        self._producer.produce(RESULTS, answer_bytes(answer))
        self._producer.flush(_SEND_S)

    def _outcome(self, command: Command) -> Outcome:
        try:
            return self._handler.execute(command)
        except Exception as failure:  # noqa: BLE001 - whatever a command meets, the next one is executed
            _LOG.exception("command %s", command)
            return Outcome.failed(str(failure))

    def close(self) -> None:
        self._thread.close(None)
        self._consumer.close()
