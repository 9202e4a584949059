"""WAIT FOR v TO INCLUDE orders[0]@123: who has written a record waits until a view has answered it.

Nothing is told to the query: what its runner reports in the catalog is looked at, and where topics end.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.errors import ServiceUnavailable, SqlError
from dovetail.changelog.work.interruption import expect_wanted
from dovetail.runtime import succession
from dovetail.services.liveness import query_status, unserved
from dovetail.services.session.contents import Offsets
from dovetail.services.session.context import Context
from dovetail.services.session.input_progress import InputProgress
from dovetail.services.session.result import Done
from dovetail.services.session.wait.inclusion import Inclusion
from dovetail.services.session.wait.input_chain import ChainedQuery, InputChain
from dovetail.sql.catalog import Actual, Desired, Query
from dovetail.sql.syntax.statements import WaitFor

TIMEOUT_S = 60.0
_WHERE = "WAIT FOR"
_POLL_S = 0.1
_SAY_AFTER_S = 5.0
_LISTED = 3


class NotIncluded(ServiceUnavailable):
    """A view has not answered within the time of a WAIT FOR; it goes on, and may do so later."""


@dataclass(frozen=True)
class AnswerEnds:
    """What was waited for is in ``topic``, that of the view, before ``ends``."""

    topic: str
    ends: PartitionOffsets


def wait_for(context: Context, statement: WaitFor) -> Done:
    await_included(context, statement)
    return Done(f"{statement.view} includes {_readable(statement)}")


def await_included(context: Context, statement: WaitFor) -> AnswerEnds:
    """Raises SqlError for what will never be: an input that the view does not read, an offset that is not there, a
    query that is paused or has failed; NotIncluded when the time is over.
    """
    chain = InputChain.of(context.catalog, statement.view)
    wanted = _wanted(context, chain, statement)
    inclusion = Inclusion(chain, wanted, context.topics, lambda one: InputProgress.of(_query(context, one)))
    start = said = time.monotonic()
    within_s = TIMEOUT_S if statement.timeout_s is None else statement.timeout_s
    while not inclusion.is_complete():
        expect_wanted()
        _expect_going(context, chain, inclusion)
        left_s = start + within_s - time.monotonic()
        if left_s <= 0:
            raise _overdue(context, chain, inclusion, f"{_readable(statement)} within {within_s:g} s")
        if time.monotonic() - said > _SAY_AFTER_S:
            said = time.monotonic()
            context.say("; ".join(_left(context, chain, inclusion)))
        time.sleep(min(_POLL_S, left_s))
    for view in chain.waits:
        context.say(f"rows of {view} that wait for a watermark are not in its topic yet")
    return AnswerEnds(chain.topic, inclusion.ends)


def _readable(statement: WaitFor) -> str:
    return ", ".join(one.readable for one in statement.offsets) or "all that its inputs held"


# -- what is waited for


def _wanted(context: Context, chain: InputChain, statement: WaitFor) -> Offsets:
    """Topic → partition → the offset behind the record. Of what is open in a transaction nobody knows yet whether it is
    a record: it is waited for too.
    """
    if not statement.offsets:
        return {topic: context.topics.written_ends(topic) for topic in chain.sources}
    ends: dict[str, PartitionOffsets] = {}
    wanted: dict[str, dict[int, int]] = {}
    for place in statement.offsets:
        topic = chain.topic_of(context.catalog, place.name)
        if topic not in ends:
            ends[topic] = context.topics.written_ends(topic)
        _expect_there(place.readable, f"{place.name}[{place.partition}]", place.partition, place.offset, ends[topic])
        of_topic = wanted.setdefault(topic, {})
        of_topic[place.partition] = max(place.offset + 1, of_topic.get(place.partition, 0))
    _expect_read(context, chain, wanted)
    return wanted


def _expect_there(place: str, name: str, partition: int, offset: int, ends: PartitionOffsets) -> None:
    """Raises SqlError for a partition, or a record, that is not there: it may never come."""
    if partition not in ends:
        count = len(ends)
        there = "one partition, 0" if count == 1 else f"{count} partitions, 0 to {count - 1}"
        raise SqlError(f"there is no {name}", where=f"{_WHERE}, {place}", fix=f"its topic has {there}")
    if offset >= ends[partition]:
        last = f"the last record is at {ends[partition] - 1} at most" if ends[partition] else "it has no record yet"
        raise SqlError(
            f"there is no record {place}: {name} ends at {ends[partition]}",
            where=_WHERE,
            fix=f"{last}; write first, then wait for the offset that the broker has given to the record",
        )


def _expect_read(context: Context, chain: InputChain, wanted: Mapping[str, PartitionOffsets]) -> None:
    """Raises SqlError for a record that was there before each reader of its topic began to read."""
    for topic, offsets in wanted.items():
        readers = [query for query in chain.between([topic]) if topic in query.reads]
        progresses = [InputProgress.of(_query(context, query)) for query in readers]
        if not all(topic in progress.first_offsets for progress in progresses):
            continue
        for partition, end in offsets.items():
            begin = min(progress.start(topic, partition) for progress in progresses)
            if begin >= end:
                name = f"{chain.names_of(topic)}[{partition}]"
                raise SqlError(
                    f"{readers[0].view} has begun to read {name} at {begin}, and never includes {end - 1}",
                    where=_WHERE,
                    fix=f"wait for {name}@{begin}, or a later one",
                )


# -- how far it is


def _query(context: Context, one: ChainedQuery) -> Query:
    """Raises UnknownName where it was dropped meanwhile."""
    return context.catalog.query(one.name)


def _expect_going(context: Context, chain: InputChain, inclusion: Inclusion) -> None:
    """Raises SqlError where the query that is waited for comes no further unless somebody says so."""
    if inclusion.waits_for is None:
        return
    query = _query(context, inclusion.waits_for)
    failed = query.actual is Actual.FAILED
    # One that is being created is to be paused as well, until it is wanted for the first time.
    paused = query.desired is Desired.PAUSED and (query.actual is Actual.PAUSED or not query.unmade)
    if not failed and (not paused or succession.is_under_way(context.catalog, query.view)):
        return
    read_by = "" if query.view == chain.view else f", which {chain.view} reads,"
    reason = f": {query.error}" if failed and query.error else ""
    mended = "fix that, then " if failed else ""
    raise SqlError(
        f'"{query.view}"{read_by} {"has failed" if failed else "is paused"}',
        where=f"{'; '.join(_left(context, chain, inclusion))}{reason}",
        fix=f"{mended}RESUME {query.view}; then wait again",
    )


def _left(context: Context, chain: InputChain, inclusion: Inclusion) -> list[str]:
    """What is waited for, in words."""
    query = inclusion.waits_for
    if query is None:
        return []
    missing = inclusion.missing()
    if not missing:
        return [f"{query.name} has read it, and a transaction of {query.writes} is open"]
    lines = [
        f"{query.name} has read {chain.names_of(topic)}[{partition}] to {reached:,} of {end:,}"
        + ("" if context.topics.ends(topic).get(partition, 0) >= end else ", where an open transaction hides the rest")
        for topic, partition, reached, end in missing[:_LISTED]
    ]
    more = len(missing) - _LISTED
    return [*lines, f"and {more:,} more partitions"] if more > 0 else lines


def _overdue(context: Context, chain: InputChain, inclusion: Inclusion, awaited: str) -> NotIncluded:
    where, fix = "; ".join(_left(context, chain, inclusion)), "wait again, or longer: TIMEOUT 300"
    query = inclusion.waits_for
    if query is not None:
        now = query_status(_query(context, query), unserved(context.catalog, context.now_ms))
        where += f"; {query.view} is {now.shown_state}" + (f": {now.why}" if now.why else "")
        if not now.healthy:
            fix = f"dovetail status shows what runs, SHOW QUERIES how {query.view} is; then wait again"
    return NotIncluded(f"{chain.view} does not include {awaited}", where=where, fix=fix)
