"""What may be believed of the queries in the catalog: their runners write it, and a dead one writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from dovetail.runtime.sole_holder import LEASE_S
from dovetail.services.generators import declared
from dovetail.services.live_workers import live_workers
from dovetail.sql.catalog import Actual, Catalog, Desired, Query
from dovetail.sql.engines import Engine

DOWN = "down"
FINISHED = "finished"
_FURTHEST_MS = int(2 * LEASE_S * 1000)
"""A lease that ends later was written before the clock was set back: a runner that lives has renewed it since."""
_LONG_S = 60
_AT_REST = (Actual.FAILED, Actual.PAUSED)
"""What is so whether or not a runner is there."""


@dataclass(frozen=True)
class QueryStatus:
    """How a query is.

    state  as its runner says; ``down`` where that is not there, ``finished`` of a generator that has made all its rows
    why    where it is not well
    """

    query: Query
    state: str
    why: str = ""

    @property
    def healthy(self) -> bool:
        """Whether it is as its user wants it."""
        return self.state in (self.query.desired.value, FINISHED)

    @property
    def shown_state(self) -> str:
        """The state; where its user has asked for another since, that too."""
        desired = self.query.desired
        on_its_way = not self.healthy and (desired is not Desired.RUNNING or self.state == Actual.PAUSED)
        return f"{self.state}, to be {desired.value}" if on_its_way else self.state

    @property
    def is_stable(self) -> bool:
        """Whether only its user can change how it is."""
        return self.healthy or self.query.actual is Actual.FAILED


def query_statuses(catalog: Catalog, now_ms: int) -> list[QueryStatus]:
    """Of all living queries, in order of creation."""
    away = unserved(catalog, now_ms)
    return [query_status(query, away) for query in catalog.queries()]


def unserved(catalog: Catalog, now_ms: int) -> Set[str]:
    """The engines whose queries nobody runs: neither the runner nor a worker has given a sign of life for a while."""
    lease = catalog.leadership(Engine.SPARK.value)
    away = set()
    if lease is None or not now_ms < lease.until_ms <= now_ms + _FURTHEST_MS:
        away |= {engine.value for engine in Engine.of("spark")}
    if not live_workers(catalog, now_ms):
        away.add(Engine.FAUST.value)
    return away


def query_status(query: Query, away: Set[str]) -> QueryStatus:
    if query.engine in away and query.actual not in _AT_REST:
        return QueryStatus(query, DOWN, f"no {Engine(query.engine).process} has given a sign of life for 10 s")
    return QueryStatus(query, FINISHED if _has_finished(query) else query.actual.value, _why(query))


def _has_finished(query: Query) -> bool:
    """Whether it is a generator, at work, that has no more rows to make."""
    if not query.generates or (query.actual, query.desired) != (Actual.RUNNING, Desired.RUNNING):
        return False
    _, most = declared(query.sql)
    return most is not None and query.progress.get("counts", {}).get("rows_out", 0) >= most


def _why(query: Query) -> str:
    if not query.next_try_ms:
        return query.error or _under_way(query)
    at = datetime.fromtimestamp(query.next_try_ms / 1000, UTC)
    return f"{query.error}\n  next:  it is started again at {at:%H:%M:%S} UTC"


def _under_way(query: Query) -> str:
    """Of a batch that takes long; '' of one that does not."""
    under_way_s = query.progress.get("under_way_s", 0)
    return f"a batch has been under way for {under_way_s} s" if under_way_s >= _LONG_S else ""


def account(unwell: Iterable[QueryStatus]) -> str:
    """A line for each, with its reason."""
    return "\n".join(f"{one.query.name} is {one.state}" + (f": {one.why}" if one.why else "") for one in unwell)


def await_stable(look: Callable[[], list[QueryStatus]], wait: Callable[[list[QueryStatus]], bool]) -> list[QueryStatus]:
    """The standings once all queries that are to run do, or have failed; or once ``wait`` is false of what is left."""
    while True:
        found = [one for one in look() if one.query.desired is Desired.RUNNING]
        left = [one for one in found if not one.is_stable]
        if not left or not wait(left):
            return found
