"""The topic of commands, read by a worker from its end on; every command is answered, in the topic of results."""

from __future__ import annotations

import logging

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_listener import TopicListener
from dovetail.broker.topic_shapes import TopicAdmin
from dovetail.broker.topic_writer import TopicWriter
from dovetail.changelog.work.supervised_thread import SupervisedThread
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
        self._commands = TopicListener(brokers, COMMANDS, topics.ends(COMMANDS), group=GROUP, wait_ms=100)
        self._writer = TopicWriter(brokers, _SEND_S)
        self._thread = SupervisedThread("commands", self._read)
        self._thread.start()

    def _read(self) -> None:
        while not self._thread.closing.is_set():
            values = self._commands.values(1, _POLL_S)
            self._thread.mark_healthy()
            for value in values:
                command = command_of(value)
                if command is not None:
                    self._answer(command)

    def _answer(self, command: Command) -> None:
        answer = Answer(command.id, self._worker, self._outcome(command))
        self._writer.send(RESULTS, None, answer_bytes(answer))

    def _outcome(self, command: Command) -> Outcome:
        try:
            return self._handler.execute(command)
        except Exception as failure:  # noqa: BLE001 - whatever a command meets, the next one is executed
            _LOG.exception("command %s", command)
            return Outcome.failed(str(failure))

    def close(self) -> None:
        self._thread.close(None)
        self._commands.close()
