"""Commands given to the lookup workers, and the wait for their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_listener import TopicListener
from dovetail.broker.topic_shapes import TopicAdmin
from dovetail.broker.topic_writer import TopicWriter
from dovetail.services.commands.command_codec import Answer, Command, answer_of, command_bytes
from dovetail.services.commands.command_topics import COMMANDS, GROUP, RESULTS, make_command_topics

_POLL_S = 0.1


@dataclass(frozen=True)
class CommandAnswers:
    """All answers to a command, and the workers that were expected to answer and did not in time."""

    given: tuple[Answer, ...]
    silent: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Answer, ...]:
        return tuple(answer for answer in self.given if not answer.outcome.ok)


class Commander:
    """Gives commands and waits for the answers."""

    def __init__(self, brokers: BrokerAddress, topics: TopicAdmin, writer: TopicWriter, timeout_s: float) -> None:
        self._brokers = brokers
        self._topics = topics
        self._writer = writer
        self._timeout_s = timeout_s

    def give(self, command: Command, workers: Callable[[], Collection[str]]) -> CommandAnswers:
        """Send ``command``; return when every one of ``workers`` has answered, or after the time.

        ``workers`` is asked again while it waits: one that has gone meanwhile is not waited for. Raises
        ServiceUnavailable where the broker does not answer.
        """
        make_command_topics(self._topics)
        expected = set(workers())
        with self._results() as results:
            self._writer.send(COMMANDS, None, command_bytes(command))
            given: dict[str, Answer] = {}
            end = time.monotonic() + self._timeout_s
            while not expected <= given.keys() and time.monotonic() < end:
                for answer in results(command.id):
                    given[answer.worker] = answer
                expected &= {*workers(), *given}
        return CommandAnswers(tuple(given[name] for name in sorted(given)), tuple(sorted(expected - given.keys())))

    @contextmanager
    def _results(self) -> Iterator[Callable[[str], list[Answer]]]:
        """The answers to a command that are written from now on."""
        with closing(
            TopicListener(self._brokers, RESULTS, self._topics.ends(RESULTS), group=GROUP, wait_ms=20)
        ) as results:
            yield lambda command_id: _answers(results, command_id)


def _answers(results: TopicListener, command_id: str) -> list[Answer]:
    answers = map(answer_of, results.values(100, _POLL_S))
    return [answer for answer in answers if answer is not None and answer.command_id == command_id]
