"""A topic that somebody follows: read once, however many follow it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from http import HTTPStatus
from typing import Any

from dovetail.broker.reader import TopicReader
from dovetail.changelog.errors import DovetailError, InternalError
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.services.serve.refusals import RequestRefused
from dovetail.services.serve.statements.json_lines import columns_of
from dovetail.services.serve.tails.events import RowsEvent, rows_events
from dovetail.services.serve.tails.places import EventPlace, Offsets, same
from dovetail.services.serve.tails.tail_client import TailClient
from dovetail.services.session.context import Context
from dovetail.services.session.tail.topic_views import relation_of, topic_view

_LOG = logging.getLogger("dovetail.serve")
_LOOK_S = 1.0
_STEP_ROWS = 5_000


class FollowedTopic:
    """``topic`` from the moment on at which this was made, on a thread of its own, for all ``listeners``.

    recent     the events before ``offsets``, as many rows as may wait for a listener: who resumes there reads nothing
    followers  those who listen, and those who are catching up
    """

    def __init__(self, context: Context, name: str, most_rows: int, loop: asyncio.AbstractEventLoop) -> None:
        """Raises UnknownName. Takes its time: not for the event loop."""
        self._context = context
        self.name = name
        self._relation = relation_of(context, name)
        self.topic, self._view = topic_view(context, name, self._relation)
        self.topic_id = context.topics.ids([self.topic])[self.topic]
        self.offsets: Offsets = dict(context.topics.ends(self.topic))
        self._most_rows = most_rows
        self._loop = loop
        self._recent: deque[RowsEvent] = deque()
        self._recent_rows = 0
        self.ended: DovetailError | None = None
        self.listeners: set[TailClient] = set()
        self.followers = 0
        self.thread = SupervisedThread(f"changes of {name}", partial(self._follow, self.offsets))

    @property
    def place(self) -> EventPlace:
        return EventPlace(self.topic_id, self.offsets)

    @property
    def description(self) -> Mapping[str, Any]:
        """What the first event says."""
        view = self._view
        dialect, columns = view.rules.value, columns_of(view.schema)
        return {"name": self.name, "topic": self.topic, "dialect": dialect, "columns": columns}

    # -- the event loop

    def join(self, offsets: Offsets) -> TailClient | None:
        """A listener who has what is before ``offsets``; None where that is not recent: ``next_step`` leads nearer."""
        missed = self._since(offsets)
        if missed is None:
            return None
        listener = TailClient(self._most_rows, missed)
        if self.ended is not None:
            listener.end(self.ended)
        self.listeners.add(listener)
        return listener

    def _since(self, offsets: Offsets) -> list[RowsEvent] | None:
        if same(offsets, self.offsets):
            return []
        recent = list(self._recent)
        places = [place for place, one in enumerate(recent) if same(one.before, offsets)]
        return recent[places[0] :] if places else None

    def _publish(self, one: RowsEvent) -> None:
        self.offsets = one.after
        self._recent.append(one)
        self._recent_rows += one.rows
        while self._recent_rows > self._most_rows:
            self._recent_rows -= self._recent.popleft().rows
        for listener in self.listeners:
            listener.offer(one)

    def end(self, why: DovetailError) -> None:
        self.ended = why
        self.thread.closing.set()
        for listener in self.listeners:
            listener.end(why)

    # -- threads

    def _follow(self, offsets: Offsets) -> None:
        place = EventPlace(self.topic_id, offsets)
        looked_s = time.monotonic()
        try:
            reader = TopicReader(self._context.brokers, self.topic, dict(offsets), headed=self._view.headed)
            with closing(reader.follow(list(offsets))) as parts:
                for records in parts:
                    if self.thread.closing.is_set():
                        return
                    for one in rows_events(self._view, records, place):
                        place = EventPlace(self.topic_id, one.after)
                        self._loop.call_soon_threadsafe(self._publish, one)
                    if time.monotonic() - looked_s > _LOOK_S:
                        looked_s = time.monotonic()
                        self._expect_same()
        except DovetailError as error:
            self._loop.call_soon_threadsafe(self.end, error)
        except Exception:  # noqa: BLE001 - whatever it is: those who follow would wait forever
            _LOG.exception("the changes of %s cannot be followed", self.name)
            self._loop.call_soon_threadsafe(self.end, InternalError(f"the changes of {self.name} cannot be followed"))

    def _expect_same(self) -> None:
        """Raises RequestRefused where the rows are declared otherwise now."""
        name = self.name if self._relation is None else self._relation.name
        if self._context.catalog.find(name) != self._relation:
            raise RequestRefused(
                f'"{self.name}" was dropped, or is declared otherwise now',
                where="changes",
                fix="ask for its changes again: the first event has the columns",
                status=HTTPStatus.GONE,
            )

    def next_step(self, offsets: Offsets, ends: Offsets) -> tuple[list[RowsEvent], Offsets]:
        """Some events of the records between, and where they end."""
        reader = TopicReader(self._context.brokers, self.topic, dict(offsets), headed=self._view.headed)
        found: list[RowsEvent] = []
        reached = EventPlace(self.topic_id, offsets)
        with closing(reader.until(ends)) as parts:
            for records in parts:
                found += rows_events(self._view, records, reached)
                reached = EventPlace(self.topic_id, found[-1].after if found else offsets)
                if sum(one.rows for one in found) >= _STEP_ROWS:
                    return found, reached.offsets
        # What is left before the ends are marks of transactions, which no reader sees.
        return found, {**reached.offsets, **{one: max(end, reached.offsets.get(one, 0)) for one, end in ends.items()}}

    def expect_there(self, place: EventPlace) -> None:
        """Raises RequestRefused, 410, where the records behind ``place`` are not all there."""
        if place.topic_id != self.topic_id:
            raise _gone(f'the topic "{self.topic}" has been created again since')
        ends = self._context.topics.ends(self.topic)
        begins = self._context.topics.begins(self.topic)
        for partition, offset in place.offsets.items():
            if not offset <= ends.get(partition, -1):
                raise _gone(f'partition {partition} of "{self.topic}" does not reach to offset {offset}')
        for partition, first in begins.items():
            if place.offsets.get(partition, 0) < first:
                raise _gone(
                    f'the records of "{self.topic}" before offset {first} of partition {partition} were deleted'
                )

    def close(self) -> None:
        """Wait for the thread."""
        self.thread.close(None)


def _gone(what: str) -> RequestRefused:
    return RequestRefused(
        f"it cannot be gone on from there: {what}",
        where="header Last-Event-ID",
        fix="read what there is, FROM table(..), and start again without the header",
        status=HTTPStatus.GONE,
    )
