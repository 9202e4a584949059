"""The readings of one query over the last hour, and what they come to."""

from __future__ import annotations

import threading
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from dovetail.services.serve.watch.query_sample import QuerySample

Floats = npt.NDArray[np.float64]
_PLACE = {field.name: place for place, field in enumerate(fields(QuerySample))}
_SECOND_MS = 1000.0
_LATE_MS = 10_000.0
_IDLE_MS = 10_000.0
"""After its last input a query's figures stand for so long: who sends a record now and then sees how long it took."""


class MetricsWindow:
    """The last ``most`` readings. One thread adds them; others may ask for those that there are at any time."""

    def __init__(self, most: int) -> None:
        self._rows: Floats = np.full((most, len(_PLACE)), np.nan)
        self._added = 0
        self._lock = threading.Lock()

    def add(self, sample: QuerySample) -> None:
        with self._lock:
            self._rows[self._added % len(self._rows)] = astuple(sample)
            self._added += 1

    def samples(self) -> QuerySamples:
        """Those up to now; none that is added later is among them."""
        with self._lock:
            most = len(self._rows)
            return QuerySamples(
                self._rows[: self._added].copy() if self._added <= most else np.roll(self._rows, -self._added, axis=0)
            )


@dataclass(frozen=True)
class QuerySamples:
    """QueryReadings of one query, older ones first: a row each, a column for each figure."""

    rows: Floats

    def column(self, name: str) -> Floats:
        """The readings of one figure."""
        return self.rows[:, _PLACE[name]]

    def last(self, name: str) -> float:
        return float(self.rows[-1, _PLACE[name]])

    def rates(self, name: str, points: int | None = None) -> Floats:
        """Of a count, per second, between readings; between as many as leave no more than ``points`` rates, if told.

        A count that falls begins anew: nothing is known of the time between.
        """
        counts, at_ms = self.column(name), self.column("at_ms")
        if points is not None and len(counts) > points + 1:
            chosen = np.linspace(0, len(counts) - 1, points + 1).astype(np.int64)
            counts, at_ms = counts[chosen], at_ms[chosen]
        grown, passed_s = np.diff(counts), np.diff(at_ms) / _SECOND_MS
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where((grown >= 0) & (passed_s > 0), grown / passed_s, np.nan)

    def rate_of_late(self, name: str) -> float:
        """Of a count, per second, over the last 10 s: of what reports it less often than it is looked at."""
        first = int(np.searchsorted(self.column("at_ms"), self.last("at_ms") - _LATE_MS))
        return _last(QuerySamples(self.rows[max(min(first, len(self.rows) - 2), 0) :]).rates(name, 1))

    def idle(self) -> npt.NDArray[np.bool_]:
        """At each reading: whether all input was answered, and none had been for 10 s. False if not known."""
        at_ms, read = self.column("at_ms"), self.column("read")
        moved = np.append(np.zeros(min(len(read), 1), np.bool_), read[1:] != read[:-1])
        since_ms = at_ms - np.maximum.accumulate(np.where(moved, at_ms, -np.inf))
        return (read >= self.column("ended")) & (since_ms >= _IDLE_MS)

    def latencies(self) -> Floats:
        """At each reading: how long the first record has waited that was not answered then, and a batch on top of it.

        As exact as readings are close: a record counts from the reading that saw it first. NaN where that is not known,
        and while the query is idle: then no record waits.
        """
        at_ms, ended, read = self.column("at_ms"), self.column("ended"), self.column("read")
        # Ends that are not known stand where the ones before were: ends never go back while a topic is the same.
        known = np.fmax.accumulate(ended) if len(ended) else ended
        first = np.minimum(np.searchsorted(known, read, side="right"), np.arange(len(at_ms)))
        waited = np.where(read < ended, at_ms - at_ms[first], 0.0)
        return np.where(np.isnan(read) | self.idle(), np.nan, waited + np.nan_to_num(self.column("batch_ms")))

    def now(self) -> dict[str, float]:
        """The last reading, with its rates, lag and latency."""
        rates = {f"{name}_per_s": float(_last(self.rates(name))) for name in ("rows_in", "rows_out")}
        metrics = {name: self.last(name) for name in _PLACE if name not in ("ended", "read")}
        lag = self.last("ended") - self.last("read")
        return metrics | rates | {"lag": lag, "latency_ms": float(_last(self.latencies()))}

    def series(self) -> dict[str, list[Any]]:
        """Figure → its values at ``at_ms``, for a chart; rates are those up to each reading."""
        metrics = {name: self.column(name) for name in _PLACE if name not in ("ended", "read")}
        metrics |= {f"{name}_per_s": np.append(np.nan, self.rates(name)) for name in ("rows_in", "rows_out")}
        metrics |= {"lag": self.column("ended") - self.column("read"), "latency_ms": self.latencies()}
        return {name: values.tolist() for name, values in metrics.items()} | {"idle": self.idle().tolist()}


def _last(values: Floats) -> float:
    return float(values[-1]) if len(values) else float("nan")
