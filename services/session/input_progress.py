"""Whether a query has answered all its input, as the runner reports it in the catalog."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.broker.query_origin import numbered
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.errors import ServiceUnavailable, SqlError
from dovetail.changelog.wording import counted
from dovetail.services.session.contents import Offsets
from dovetail.services.session.context import Context
from dovetail.sql.catalog import Actual, Desired, Query
from dovetail.sql.engines import Engine
from dovetail.sql.fragments import Fragment
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.statements import CreateView

_POLL_S = 0.1
_SAY_AFTER_S = 5.0
_STANDSTILL_S = 60.0


@dataclass(frozen=True)
class InputProgress:
    """How far a query has read: ``first_offsets`` and ``offsets``, topic → partition → offset."""

    first_offsets: Offsets
    offsets: Offsets
    rows_in: int
    rows_out: int

    @staticmethod
    def of(query: Query) -> InputProgress:
        """As the runner last reported it."""
        progress = query.progress
        counts = progress.get("counts", {})
        return InputProgress(
            _offsets(progress.get("starts")),
            _offsets(progress.get("offsets")),
            int(counts.get("rows_in", 0)),
            int(counts.get("rows_out", 0)),
        )

    def start(self, topic: str, partition: int) -> int:
        return self.first_offsets.get(topic, {}).get(partition, 0)

    def reached(self, topic: str, partition: int) -> int:
        """Where the next batch begins."""
        return self.offsets.get(topic, {}).get(partition, self.start(topic, partition))

    def includes(self, ends: Offsets) -> bool:
        return all(
            self.reached(topic, partition) >= end for topic, wanted in ends.items() for partition, end in wanted.items()
        )


def _offsets(reported: Mapping[str, Mapping[str, Any]] | None) -> dict[str, PartitionOffsets]:
    return {topic: numbered(wanted) for topic, wanted in (reported or {}).items()}


def input_ends(context: Context, part: Plan | Fragment) -> dict[str, PartitionOffsets]:
    """Where the inputs of a fragment, or of a query that is one fragment, end now."""
    return {topic: context.topics.quiescent_ends(topic) for topic in input_topics(part)}


def input_topics(part: Plan | Fragment) -> Iterable[str]:
    fragment = part if isinstance(part, Fragment) else part.fragment(part.name)
    if fragment.engine is Engine.FAUST:
        return [fragment.lookup_flow.scan.topic]
    return sorted({scan.topic for scan in fragment.dataflow.scans})


class CatchUp:
    """Whether a query has answered the input that there was when ``is_complete`` was asked first.

    Fragment by fragment, upstream first: what one has written is input of the next.
    """

    def __init__(self, context: Context, plan: Plan) -> None:
        self._context = context
        self._left = list(plan.fragments)
        self._ends: Offsets | None = None

    def is_complete(self) -> bool:
        """Raises SqlError with the reason of a fragment that has failed."""
        while self._left:
            if self._ends is None:
                self._ends = input_ends(self._context, self._left[0])
            if not reading(self._context, self._left[0].name).includes(self._ends):
                return False
            self._left.pop(0)
            self._ends = None
        return True


def await_caught_up(context: Context, plan: Plan) -> InputProgress:
    """Wait until the query has answered all input there is now; what its last fragment has read."""
    for fragment in plan.fragments:
        last = await_reading(context, fragment.name, input_ends(context, fragment))
    return last


def expect_alive(context: Context, plan: Plan) -> None:
    """Raises SqlError with the reason if a fragment has failed."""
    for fragment in plan.fragments:
        reading(context, fragment.name)


def await_upstream(context: Context, plan: Plan) -> None:
    """Wait until the views that a query reads have read their own inputs, from the first ones on."""
    running = {query.name for query in context.catalog.queries() if query.desired is Desired.RUNNING}
    for name in plan.reads:
        definition = context.catalog.get(name).definition
        if isinstance(definition, CreateView) and name in running:
            upstream = plan_query(name, definition, context.catalog)
            await_upstream(context, upstream)
            await_caught_up(context, upstream)


def reading(context: Context, name: str) -> InputProgress:
    """How far the query has read. Raises SqlError with the runner's reason if it has failed."""
    query = context.catalog.query(name)
    if query.actual is Actual.FAILED:
        raise SqlError(query.error or f'the query "{name}" failed')
    return InputProgress.of(query)


def await_reading(context: Context, name: str, ends: Offsets) -> InputProgress:
    """Wait until the query has read its inputs up to ``ends``. Raises ServiceUnavailable when it stands still."""
    moved = said = time.monotonic()
    before: InputProgress | None = None
    while True:
        now = reading(context, name)
        if now.includes(ends):
            return now
        if now != before:
            before, moved = now, time.monotonic()
        if time.monotonic() - moved > _STANDSTILL_S:
            raise ServiceUnavailable(
                f'the query "{name}" has read nothing for {_STANDSTILL_S:g} s, though there is more to read',
                where=f"state {context.catalog.query(name).actual.value}",
                fix=f"SHOW QUERIES; dovetail status; RESUME {name} if it is paused",
            )
        if time.monotonic() - said > _SAY_AFTER_S:
            said = time.monotonic()
            context.say(f"{name}: {counted(now.rows_in, 'row')} in, {now.rows_out:,} out")
        time.sleep(_POLL_S)
