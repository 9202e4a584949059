"""One look at the broker for the sources of all queries: which topics have grown.

Each source runs in a process of its own. It tells the watch how far it knows its topics, and is answered when one of
them ends elsewhere, or after the time that it wants to wait. So twenty silent queries ask the broker as often as one
does, and neither their sources nor Spark have anything to do. Where many topics have grown, those sources are answered
first that have waited for longest, and the others when it is their turn (``Turns``).

    source → watch   length, JSON of an ``EndsQuestion``
    watch → source   length, JSON of an ``EndsAnswer``; an empty one: ask the broker yourself

A topic that is not there is left to the sources that read it; and while the broker does not answer, each asks by itself
and waits as long as its query does.
"""

from __future__ import annotations

import json
import logging
import os
import selectors
import shutil
import socket
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError
from dovetail.broker.topics import Offsets
from dovetail.changelog.errors import UnknownName
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.runtime.processes.forked import LENGTH, received
from dovetail.spark_jobs.source.idle import as_json
from dovetail.spark_jobs.source.topic_ends import NO_ANSWER, PAUSE_S, ends_now, ids_now, unanswered_now
from dovetail.spark_jobs.source.turns import Turns
from dovetail.spark_jobs.state.checkpoint import JsonOffsets

_LOG = logging.getLogger("dovetail.runner")
_LOOK_S = 0.05
_GONE_S = 5.0
"""A broker that comes back may not know its topics at once."""
_PATIENCE_S = 30.0
_APART_S = 5.0
_END_S = 1.0
_LONGEST_TURN_S = 1.0
_BACKLOG = 128


@dataclass(frozen=True)
class EndsQuestion:
    """source   by which name ``EndsWatch.silence`` knows who asks
    known    the ends that it has been told; None: it wants to know those of now
    wait_s   how long it waits for others
    """

    source: str
    topics: tuple[str, ...]
    known: JsonOffsets | None
    wait_s: float


@dataclass(frozen=True)
class EndsAnswer:
    """ids      of the topics
    slow_s   for how long the broker has been waited for, all in all: no silence of the topics
    """

    ends: JsonOffsets
    ids: dict[str, str]
    slow_s: float


@dataclass
class _Waiting:
    question: EndsQuestion
    number: int
    deadline_s: float


class EndsWatch:
    """Looks for as long as somebody waits. ``close`` ends it."""

    def __init__(self, brokers: BrokerAddress, longest_turn_s: float = _LONGEST_TURN_S) -> None:
        self._brokers = brokers
        self._folder = Path(tempfile.mkdtemp(prefix="dovetail-ends-"))
        self.address = str(self._folder / "watch")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.address)
        self._listener.listen(_BACKLOG)
        self._waker, self._wakened = socket.socketpair()
        self._sources = selectors.DefaultSelector()
        for opened in (self._listener, self._wakened):
            self._sources.register(opened, selectors.EVENT_READ)
        self._waiting: dict[socket.socket, _Waiting] = {}
        self._names: dict[socket.socket, str] = {}
        self._questions = 0
        self._silent: dict[str, int] = {}
        self._held: set[str] = set()
        self._apart: dict[str, float] = {}
        self._leaderless: set[str] = set()
        """Of the topics, when the broker was asked last why it has no answer."""
        self._gone: dict[str, float] = {}
        """Since when the broker says that a topic is not there."""
        self._refused = False
        self._slow_s = 0.0
        self._turns = Turns(os.cpu_count() or 1, longest_turn_s)
        self._thread = SupervisedThread("ends of topics", self._serve)
        self._thread.start()

    def silence(self, source: str) -> int | None:
        """While ``source`` waits, for its topics to grow or for its turn: a number that no other wait of it has."""
        return self._silent.get(source) if self._thread.is_healthy else None

    def hold(self, source: str) -> None:
        """Have ``source`` begin no batch any more: whatever it asks next, it waits, until ``release`` or its end."""
        self._held.add(source)

    def release(self, source: str) -> None:
        self._held.discard(source)

    def share(self, cores: int) -> None:
        """Have no more batches under way at once than there are cores for their tasks."""
        self._turns.at_once = max(cores, 1)

    def close(self) -> None:
        self._waker.close()
        # It may be waiting for a broker that is away; what it would tell is wanted no longer.
        self._thread.close(_END_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        next_look_s = 0.0
        while True:
            pause_s = max(next_look_s - time.monotonic(), 0) if self._waiting else None
            due = False
            for key, _ in self._sources.select(pause_s):
                if key.fileobj is self._wakened:
                    self._end()
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    due |= self._take(key.fileobj)
            if self._waiting and (due or time.monotonic() >= next_look_s):
                self._look()
                self._thread.mark_healthy()
                next_look_s = time.monotonic() + _LOOK_S

    def _accept(self) -> None:
        """Where no descriptor is free those that are here go on, and who has come waits."""
        try:
            self._sources.register(self._listener.accept()[0], selectors.EVENT_READ)
        except OSError as failure:
            if not self._refused:
                _LOG.warning("a source cannot be answered: %s", failure)
            self._refused = True
            time.sleep(_LOOK_S)
        else:
            self._refused = False

    @property
    def is_healthy(self) -> bool:
        """Whether it looks at the topics, where somebody waits for that."""
        return self._thread.is_healthy and not self._refused

    def gone_topic(self, topics: Iterable[str]) -> str:
        """One of ``topics`` that the broker has said for a while is not there; '' for none."""
        now_s = time.monotonic()
        return next((topic for topic in topics if now_s - self._gone.get(topic, now_s) > _GONE_S), "")

    def _end(self) -> None:
        for key in list(self._sources.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._sources.close()

    def _take(self, source: socket.socket) -> bool:
        """Take a question; whether it is to be answered at once."""
        try:
            fields = _received(source)
        except OSError:
            self._forget(source)
            return False
        question = EndsQuestion(**{**fields, "topics": tuple(fields["topics"])})
        self._names[source] = question.source
        self._turns.end(question.source)
        self._questions += 1
        self._waiting[source] = _Waiting(question, self._questions, time.monotonic() + question.wait_s)
        return question.known is None

    def _forget(self, source: socket.socket) -> None:
        if waiting := self._waiting.pop(source, None):
            self._silent.pop(waiting.question.source, None)
        if name := self._names.pop(source, None):
            self._turns.end(name)
            self._held.discard(name)
        self._sources.unregister(source)
        source.close()

    def _look(self) -> None:
        began_s = time.monotonic()
        self._apart = {topic: until_s for topic, until_s in self._apart.items() if until_s > began_s}
        wanted = {topic for waiting in self._waiting.values() for topic in waiting.question.topics}
        ends, ids = self._current_ends(sorted(wanted - self._apart.keys()))
        now_s = time.monotonic()
        if now_s - began_s > PAUSE_S:
            self._slow_s += now_s - began_s
        known = as_json(ends)
        for source, waiting in list(self._waiting.items()):
            topics = waiting.question.topics
            if waiting.question.source in self._held:
                self._silent[waiting.question.source] = waiting.number
                continue
            if any(topic not in known for topic in topics):
                self._answer(source, waiting, {})
                continue
            of_source = {topic: known[topic] for topic in topics}
            grown = of_source != waiting.question.known
            if self._turns.begin(waiting.question.source, now_s) if grown else now_s >= waiting.deadline_s:
                found = EndsAnswer(of_source, {topic: ids[topic] for topic in topics}, self._slow_s)
                self._answer(source, waiting, asdict(found))
            else:
                self._silent[waiting.question.source] = waiting.number

    def _current_ends(self, wanted: list[str]) -> tuple[Offsets, dict[str, str]]:
        """The ends and ids of those topics that the broker has an answer for; the others are left alone for a while."""
        ends: Offsets = {}
        ids: dict[str, str] = {}
        until_s = time.monotonic() + _APART_S
        if self._leaderless:
            wanted = self._led(wanted, until_s)
        # All at once; one after the other where one of them is not there.
        for names in (wanted, *([topic] for topic in wanted)):
            try:
                found_ends, found_ids = self._ends_and_ids(names)
            except UnknownName:
                if names != wanted or len(wanted) == 1:
                    self._apart |= dict.fromkeys(names, until_s)
                    self._note_gone(names)
                continue
            except NO_ANSWER:
                if (led := self._led(wanted, until_s)) != wanted:
                    return self._current_ends(led)
                self._apart |= dict.fromkeys(wanted, until_s)
                break
            for topic in self._gone.keys() & names:
                del self._gone[topic]
            ends |= found_ends
            ids |= found_ids
            if names == wanted:
                break
        return ends, ids

    def _led(self, wanted: list[str], until_s: float) -> list[str]:
        """Those topics that are there and have a leader, as far as the broker says. To ask for the ends of one without
        takes as long as an election may, and the others are not to wait. Of one that has just been deleted the
        partitions are known still, and asking for their ends says nothing of it.
        """
        self._leaderless, absent = set(), set[str]()
        with suppress(BrokerError):
            self._leaderless, absent = unanswered_now(self._brokers, wanted)
        self._note_gone(absent)
        self._apart |= dict.fromkeys(self._leaderless | absent, until_s)
        return [topic for topic in wanted if topic not in self._leaderless | absent]

    def _note_gone(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._gone.setdefault(topic, time.monotonic())

    def _ends_and_ids(self, names: list[str]) -> tuple[Offsets, Mapping[str, str]]:
        return (ends_now(self._brokers, names), ids_now(self._brokers, names)) if names else ({}, {})

    def _answer(self, source: socket.socket, waiting: _Waiting, answer: dict[str, object]) -> None:
        del self._waiting[source]
        self._silent.pop(waiting.question.source, None)
        try:
            _send(source, answer)
        except OSError:
            self._forget(source)


@lru_cache(maxsize=4)
def ends_watch(brokers: BrokerAddress) -> EndsWatch:
    """The one of this process."""
    return EndsWatch(brokers)


class WatchedEnds:
    """What a source asks of the watch at ``address``."""

    def __init__(self, address: str, source: str, topics: Iterable[str]) -> None:
        self._address = address
        self._source = source
        self._topics = tuple(topics)
        self._connection: socket.socket | None = None

    def ask(self, known: JsonOffsets | None = None, wait_s: float = 0.0) -> EndsAnswer | None:
        """The ends now; with ``known``, once they are others, or after a wait. None: the watch has no answer."""
        question = EndsQuestion(self._source, self._topics, known, wait_s)
        try:
            if self._connection is None:
                self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._connection.connect(self._address)
            # A watch that stands still answers nobody: the broker is asked then.
            self._connection.settimeout(wait_s + _PATIENCE_S)
            _send(self._connection, asdict(question))
            answer = _received(self._connection)
        except OSError:
            self.close()
            return None
        return EndsAnswer(**answer) if answer else None

    def close(self) -> None:
        """Wait no longer; the next question opens another connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def _send(connection: socket.socket, fields: Mapping[str, object]) -> None:
    message = json.dumps(fields).encode()
    connection.sendall(LENGTH.pack(len(message)) + message)


def _received(connection: socket.socket) -> dict[str, Any]:
    """Raises OSError where the other side has gone."""
    found: dict[str, Any] = json.loads(received(connection, *LENGTH.unpack(received(connection, LENGTH.size))))
    return found
