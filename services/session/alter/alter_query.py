"""ALTER VIEW v AS SELECT ..: the view goes on in its topic with another query.

The new query runs beside the old one, into a topic of its own, until it has read as much. Then both stand still for a
moment, the difference of their rows is written to the topic of the view, and the view goes on from the checkpoint of
the new query (``runtime.succession``). Readers of the topic see that difference, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.producer_queue import Outgoing, OutgoingRecords
from dovetail.broker.registry.client import schemas_of
from dovetail.changelog.changes import Changes
from dovetail.changelog.encode import Encoded, Forms, encode
from dovetail.changelog.errors import ServiceUnavailable, SqlError, StackError, Unsupported
from dovetail.changelog.schema import Included, Kind, RecordPart
from dovetail.changelog.wording import counted
from dovetail.runtime import succession
from dovetail.runtime.query_plan import BEGIN_AT, plan_of_successor, successor_name
from dovetail.services.session.alter.dead_letters import exchanged_dead_letters
from dovetail.services.session.alter.fitting_columns import unfit_columns
from dovetail.services.session.alter.proposal import (
    Proposal,
    columns_of,
    expect_materialized,
    expect_running,
    gained_and_lost,
    proposal,
)
from dovetail.services.session.alter.readers import expect_read_alike, readers_by_watermark
from dovetail.services.session.context import Context
from dovetail.services.session.generated import ensure_clock
from dovetail.services.session.input_progress import InputProgress, await_reading, input_ends, input_topics
from dovetail.services.session.queries import await_running, expect_runner, leased, pause
from dovetail.services.session.result import Done
from dovetail.services.session.verification.batch import expect_recomputable
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.engines import Engine
from dovetail.sql.planner import Plan
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import AlterQuery, CreateView, Pause, Rollback

_WHERE = "ALTER VIEW .. AS"
_ROLLBACK = "ALTER VIEW .. ROLLBACK"
_KEPT_MS = 24 * 3_600_000
"""How long a former query may be had again."""
_KEY = "_record_key"


def alter_query(context: Context, statement: AlterQuery) -> Done:
    """Raises SqlError where the view cannot have the query, or where that fails; the view goes on as it was then."""
    return change_query(context, proposal(context, statement.view, _WHERE))


def change_query(context: Context, proposed: Proposal) -> Done:
    """The view goes on in its topic as it is proposed. Raises SqlError as ``alter_query``."""
    name = proposed.name
    if proposed.before.fingerprint == proposed.after.fingerprint:
        context.catalog.redefine(context.catalog.get(name), proposed.proposed.text)
        return Done(f"{name} has this query already, and goes on")
    _expect_alterable(context, proposed)
    _expect_readers(context, proposed)
    expect_runner(context, {Engine.SPARK.value})
    ensure_clock(context, proposed.after)
    expect_running(proposed.query)
    successor = successor_name(name)
    plan = plan_of_successor(successor, proposed.proposed, context.catalog)
    [query] = queries_of(plan, proposed.proposed.text)
    query = replace(query, topic=successor, progress={BEGIN_AT: _begin_at(context, proposed)})
    context.say(f"{name} goes on while its new query reads {', '.join(plan.reads)}")
    with leased(context, plan, [query]):
        await_reading(context, successor, input_ends(context, plan))
        changes = _succeed(context, proposed, successor)
    state = "running"
    try:
        await_running(context, name)
    except (ServiceUnavailable, StackError) as failure:
        # It has the new query, which goes on by itself.
        state = f"to go on once it can: {failure.what}"
    added, taken = gained_and_lost(changes)
    return Done(f"altered view {name}, {state}: {counted(added, 'row')} added, {taken:,} taken back")


def roll_back(context: Context, statement: Rollback) -> Done:
    """The change is one as any other: the next ROLLBACK would take it back. Raises SqlError a day after the change."""
    relation, _ = expect_materialized(context, statement.name, _ROLLBACK)
    former = relation.former
    if former is None or context.now_ms - former.altered_ms > _KEPT_MS:
        when = "has the query that it was created with" if former is None else "got its query more than a day ago"
        fix = f"ALTER VIEW {relation.name} AS SELECT .. gives it another"
        raise SqlError(f'"{relation.name}" {when}', where=_ROLLBACK, fix=fix)
    view = replace(relation, ddl=former.ddl).definition
    assert isinstance(view, CreateView)
    done = alter_query(context, AlterQuery(view))
    return Done(f"{done.text}; ROLLBACK once more gives it the query that it had until now")


def _succeed(context: Context, proposed: Proposal, successor: str) -> Changes:
    """Both stand still, and the one takes the place of the other; the changes of the view's rows."""
    view, catalog = proposed.name, context.catalog
    query = catalog.query(successor)
    succession.begin(catalog, view, successor)
    try:
        _expect_unchanged(context, proposed)
        pause(context, Pause(view))
        read = InputProgress.of(catalog.query(view)).offsets
        topics = set(input_topics(proposed.after))
        await_reading(context, successor, {topic: ends for topic, ends in read.items() if topic in topics})
        pause(context, Pause(successor))
        changes = _difference(context, proposed, successor)
        difference = OutgoingRecords(proposed.after.stream().topic, _records(context, proposed.after, changes))
        outgoing: list[Outgoing | OutgoingRecords] = [difference]
        outgoing += exchanged_dead_letters(context, view, successor)
        succession.write_difference(context.brokers, successor, outgoing, context.settings.broker_wait_s)
    except BaseException as failure:
        # A broker that did not answer may have taken the difference all the same.
        if not (succession.settle(catalog, context.brokers, query) and isinstance(failure, ServiceUnavailable)):
            raise
    else:
        succession.settle(catalog, context.brokers, query)
    return changes


def _difference(context: Context, proposed: Proposal, successor: str) -> Changes:
    """What turns the records of the view's topic into those of its successor's, each with the key that it has there."""
    stream = proposed.after.stream()
    before, after = (_keyed_rows(context, stream, topic) for topic in (stream.topic, successor))
    changes = Changes.between(before, after)
    if stream.schema.kind is Kind.APPEND and not changes.only_insertions:
        _, lost = gained_and_lost(changes)
        raise Unsupported(
            f'"{proposed.name}" is append-only, and its new query would take back {counted(lost, "row")}',
            where=_WHERE,
            fix="ALTER VIEW .. DRY RUN shows them; create a view of another name, or CREATE OR REPLACE .. WITH DATA",
        )
    return changes


def _keyed_rows(context: Context, stream: Stream, topic: str) -> pa.Table:
    schema = replace(stream.schema, included=(Included(_KEY, pa.binary(), RecordPart.KEY),))
    names = (*(column.name for column in schema.columns), _KEY)
    return context.read(schema, topic, context.topics.quiescent_ends(topic), columns=names).rows.select(names)


def _records(context: Context, plan: Plan, changes: Changes) -> Encoded:
    """Retractions first. Of a topic of upserts the last row of each key, or a tombstone."""
    sink = plan.dataflow.sink
    forms = Forms(sink.value_format, sink.key_format, schemas_of(context.brokers))
    upserts = sink.format == "upsert"
    taken, added = _one_by_one(changes.retractions), _one_by_one(changes.insertions)
    if upserts:
        taken = taken.filter(pc.invert(pc.is_in(taken.column(_KEY), added.column(_KEY))))
    keys, values = [], []
    for rows in (taken, added):
        made = encode(rows.drop_columns([_KEY]), sink.columns, (), sink.updating and not upserts, forms=forms)
        keys.append(rows.column(_KEY).combine_chunks().cast(pa.large_binary()))
        values.append(pa.nulls(len(made), pa.large_binary()) if upserts and rows is taken else made.value_column)
    return Encoded(pa.concat_arrays(keys), pa.concat_arrays(values))


def _one_by_one(changes: Changes) -> pa.Table:
    """A row for each time that it comes, or goes."""
    deltas = changes.deltas
    rows = changes.rows.take(pa.array(np.repeat(np.arange(len(deltas)), np.abs(deltas))))
    return Changes.with_deltas(rows, np.repeat(np.sign(deltas), np.abs(deltas))).table


def _begin_at(context: Context, proposed: Proposal) -> Mapping[str, Mapping[int, int]]:
    """Where the view began to read what a new query would read from now on. Raises Unsupported where the new query
    could not read what the view has read: it is gone from a topic.
    """
    starts = InputProgress.of(proposed.query).first_offsets
    for topic in input_topics(proposed.after):
        begins = context.topics.begins(topic)
        gone = sum(max(begins.get(partition, 0) - start, 0) for partition, start in starts.get(topic, {}).items())
        if gone:
            raise Unsupported(
                f'{counted(gone, "record")} that "{proposed.name}" has read of {topic} are gone, and its new query '
                "could not read them",
                where=_WHERE,
                fix="create a view of another name, which begins with what is there",
            )
    return {topic: starts[topic] for topic in proposed.from_now_on if topic in starts}


def _expect_alterable(context: Context, proposed: Proposal) -> None:
    """Raises Unsupported for what cannot be changed with the topic kept."""
    name, before, after = proposed.name, proposed.before, proposed.after
    for plan in (before, after):
        expect_recomputable(plan, _WHERE)
    again = (
        "see the difference by DRY RUN; a view of another name, or CREATE OR REPLACE .. WITH DATA, can have this query"
    )
    if differing := unfit_columns(before.stream(), after.stream()):
        raise Unsupported(
            f'the records of "{name}" would have another form: {differing}',
            where=_WHERE,
            fix=again,
        )
    if proposed.definition.into is not None:
        raise Unsupported(
            f'"{name}" writes INTO {proposed.definition.into}, where others may write', where=_WHERE, fix=again
        )
    if len(before.fragments) > 1 or len(after.fragments) > 1:
        raise Unsupported(
            f'"{name}" is a query of several fragments, and these are not altered', where=_WHERE, fix=again
        )
    if after.dataflow.snapshots:
        raise Unsupported(
            f'the new query of "{name}" joins a table(x) as it was at a start, and that would be another one',
            where=_WHERE,
            fix=again,
        )
    if after.dataflow.sink.format == "debezium":
        raise Unsupported(f'the envelopes of "{name}" are not altered', where=_WHERE, fix=again)


def _expect_readers(context: Context, proposed: Proposal) -> None:
    """Raises Unsupported with the views and queries that could not go on over the rows that the view would have."""
    if proposed.before.stream() != proposed.after.stream():
        by = "by a column that goes or changes, or by *"
        expect_read_alike(context.catalog, proposed.relation_after, columns_of(proposed.after), _WHERE, by)
    tells_time = bool(proposed.after.stream().upstream_watermarks)
    if tells_time and (late := readers_by_watermark(context.catalog, proposed.relation)):
        raise Unsupported(
            f'{", ".join(late)} goes by the watermark of "{proposed.name}", and would take rows that are added '
            "behind it for late ones",
            where=_WHERE,
            fix=f"drop {', '.join(late)} first, and create it again over the new rows",
        )


def _expect_unchanged(context: Context, proposed: Proposal) -> None:
    if context.catalog.get(proposed.name).definition != proposed.definition:
        raise SqlError(
            f'another process has just changed "{proposed.name}"', fix="look at it, and run the statement again"
        )
    _expect_readers(context, proposed)
