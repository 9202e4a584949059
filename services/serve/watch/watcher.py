"""Looks at all queries every few seconds, and keeps what it has seen for an hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.changelog.errors import DovetailError, UnknownName
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.runtime.clock import now_ms
from dovetail.services.generators import generator_of
from dovetail.services.liveness import QueryStatus, query_statuses
from dovetail.services.serve.watch.metrics_window import MetricsWindow
from dovetail.services.serve.watch.query_sample import Ends, QuerySample, offsets_of
from dovetail.services.session import Session
from dovetail.sql.catalog import Actual

_HOUR_S = 3600.0
_MOST_HOURS = 500
"""Of more queries only the last two readings are kept."""
_POINTS = 60
_LAST_LOOK_S = 5.0
_TOPIC_SAMPLES = 6
"""Of a topic there is no chart: the rate over these is that of the moment."""


@dataclass
class WatchedQuery:
    """error, error_ms   the last one that it had, and when that was seen first; it may have passed since"""

    status: QueryStatus
    hour: MetricsWindow
    error: str = ""
    error_ms: int = 0


class Watcher:
    """``every_s``: between two looks, on a thread of its own. Whoever asks is given what the last look has found."""

    def __init__(self, open_session: Callable[[], Session], every_s: float) -> None:
        self._open = open_session
        self.every_s = every_s
        self._sample_count = max(int(_HOUR_S / every_s), 2)
        self._watched: dict[str, WatchedQuery] = {}
        self._topics: dict[str, MetricsWindow] = {}
        self._trouble = ""
        self._thread = SupervisedThread("watcher", self._watch, self._failed)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._thread.close(_LAST_LOOK_S)

    def document(self) -> dict[str, Any]:
        """All queries as they were at the last look, with their rates over the hour in a few points."""
        watched = dict(self._watched)
        return {
            "now_ms": now_ms(),
            "every_s": self.every_s,
            "trouble": self._trouble,
            "queries": [_members(one) for one in watched.values()],
            "topics": {name: _rate(hour) for name, hour in dict(self._topics).items()},
        }

    def series(self, name: str) -> dict[str, Any] | None:
        """The hour of a query; None where there is none of this name."""
        found = self._watched.get(name)
        return None if found is None else {"name": name, "now_ms": now_ms(), "series": found.hour.samples().series()}

    def _watch(self) -> None:
        with closing(self._open()) as session:
            while not self._thread.closing.is_set():
                self.look(session)
                self._trouble = ""
                self._thread.mark_healthy()
                self._thread.closing.wait(self.every_s)

    def _failed(self, failure: Exception) -> None:
        self._trouble = str(failure)

    def look(self, session: Session) -> None:
        at_ms = now_ms()
        # A query with a lease is a SELECT that somebody reads: it goes with its reader.
        found = [one for one in query_statuses(session.context.catalog, at_ms) if not one.query.lease_ms]
        ends = _ends(session, {topic for one in found for topic in offsets_of(one.query)})
        self._topics = {topic: self._of_topic(topic, sum(of.values()), at_ms) for topic, of in ends.items()}
        self._watched = {one.query.name: self._noted(one, number, ends, at_ms) for number, one in enumerate(found)}

    def _of_topic(self, topic: str, ended: int, at_ms: int) -> MetricsWindow:
        found = self._topics.get(topic, MetricsWindow(_TOPIC_SAMPLES))
        found.add(QuerySample(at_ms, ended=ended))
        return found

    def _noted(self, status: QueryStatus, number: int, ends: Ends, at_ms: int) -> WatchedQuery:
        """A query of the same name that was made anew begins anew."""
        query = status.query
        known = self._watched.get(query.name)
        if known is None or known.status.query.id != query.id:
            known = WatchedQuery(status, MetricsWindow(self._sample_count if number < _MOST_HOURS else 2))
        known.hour.add(QuerySample.of(query, ends, at_ms))
        error = _error(status)
        if error and error != known.error:
            known.error, known.error_ms = error, at_ms
        known.status = status
        return known


def _ends(session: Session, topics: set[str]) -> Ends:
    """Of those topics that answer: a lag that is not known is not 0."""
    found: dict[str, Mapping[int, int]] = {}
    for topic in sorted(topics):
        try:
            found[topic] = session.context.topics.ends(topic)
        except UnknownName:
            continue
        except DovetailError:
            return found
    return found


def _error(status: QueryStatus) -> str:
    """What keeps a query from its work. One that goes into a pack says how far it is, which is no error."""
    return "" if status.state == Actual.PACKING.value else status.why


def _rate(hour: MetricsWindow) -> float:
    """Records per second."""
    rates = hour.samples().rates("ended", 1)
    return float(rates[0]) if len(rates) else float("nan")


def _members(one: WatchedQuery) -> dict[str, Any]:
    query = one.status.query
    members: dict[str, Any] = {
        "name": query.name,
        "view": query.view,
        "engine": query.engine,
        "topic": query.topic,
        "state": one.status.shown_state,
        "well": one.status.healthy,
        "error": one.error,
        "error_ms": one.error_ms,
        "failing": bool(_error(one.status)),
    }
    samples = one.hour.samples()
    members |= samples.now() | generator_of(query) | {"idle": bool(samples.idle()[-1])}
    if query.generates:
        members["rows_out_per_s"] = samples.rate_of_late("rows_out")
    recent = np.nan_to_num(samples.rates("rows_out", _POINTS)).tolist()
    return members | {"recent": recent}
