"""Queries that run until they are dropped: started, waited for, paused, resumed, ended."""

from __future__ import annotations

import time
from collections.abc import Iterable

from changelog.dead_letter import topic_of as dead_letter_topic
from changelog.errors import DovetailError, ServiceUnavailable, SqlError, StackError, Unsupported
from changelog.schema import Kind
from services.session.context import Context
from services.session.kafka_topics import TopicShape, config_for
from services.session.result import Done, Text
from services.session.streams import drop
from sql.catalog import Actual, Desired, Query
from sql.query import Plan, plan_query
from sql.statements import CreateView, Drop, Explain, Pause, Resume, Terminate

_POLL_S = 0.1
_SAY_AFTER_S = 5.0


def create_view(context: Context, statement: CreateView) -> Done:
    """A materialized view is a query, and the topic of its rows: one of its own name, or that of the INTO target.

    One whose query fails at its start is not created.
    """
    existing = context.catalog.find(statement.name)
    if existing is not None and statement.if_not_exists:
        return Done(f"{existing.what} {statement.name} exists already")
    if not statement.materialized:
        return _plain_view(context, statement)
    plan = plan_query(statement.name, statement, context.catalog)
    if plan.bounded or plan.output is None:
        raise Unsupported(
            f'the query of "{statement.name}" reads table(x) only, so it would end at once',
            fix="read a stream in it, or ask it as a SELECT",
        )
    expect_runner(context)
    if existing is not None and statement.or_replace:
        drop_relation(context, Drop(existing.what, existing.name))
    made = _added(context, statement, plan)
    try:
        await_running(context, made)
    except SqlError:
        drop_relation(context, Drop("view", statement.name))
        raise
    return Done(f"created materialized view {statement.name}, running, topic {made.topic}")


def _added(context: Context, statement: CreateView, plan: Plan) -> Query:
    """The view in the catalog; its topic is made before, so that the runner finds it."""
    uses = (*plan.reads, *((statement.into,) if statement.into is not None else ()))
    query = query_of(plan, statement.text)
    own = statement.into is None and _own_topic(context, plan, query.topic)
    try:
        _, made = context.catalog.create(statement, now_ms=context.now_ms, uses=uses, query=query)
    except DovetailError:
        context.topics.delete([query.topic] if own else [])
        raise
    assert made is not None
    return made


def _own_topic(context: Context, plan: Plan, topic: str) -> bool:
    """Make the topic of a view; False if it was there, empty. One with records is somebody's, and a DROP deletes it."""
    made = context.topics.create(topic, output_shape(plan, context.settings.output_partitions))
    if not made and any(context.topics.ends(topic).values()):
        raise SqlError(
            f'there is a topic "{topic}" already, and it holds records',
            where=f"brokers {context.brokers}",
            fix=f"give the view another name, write INTO a stream over {topic}, or delete the topic",
        )
    return made


def _plain_view(context: Context, statement: CreateView) -> Done:
    plan = plan_query(statement.name, statement, context.catalog)
    context.catalog.create(statement, now_ms=context.now_ms, uses=plan.reads)
    return Done(f"created view {statement.name}")


def query_of(plan: Plan, text: str) -> Query:
    """The entry of the catalog that the runner acts on."""
    assert plan.output is not None
    return Query(name=plan.name, sql=text, plan=plan.explain(), fingerprint=plan.fingerprint, topic=plan.output.topic)


def output_shape(plan: Plan, partitions: int = -1) -> TopicShape:
    kind = Kind.UPSERT if plan.output is not None and plan.output.format == "upsert" else Kind.CHANGELOG
    return TopicShape(partitions=partitions, config=config_for(kind))


def expect_runner(context: Context) -> None:
    """Raises StackError where it is known that nothing would run a query."""
    fault = context.runner_fault()
    if fault:
        raise StackError(
            f"no query can run: {fault}", fix="dovetail up starts what is missing; dovetail logs spark says more"
        )


def await_running(context: Context, query: Query) -> None:
    """Wait until the runner has started ``query``. Raises SqlError with the runner's reason if it failed."""
    _await(context, query, Actual.RUNNING, f"{query.name} is starting")


def _await(context: Context, query: Query, wanted: Actual, doing: str) -> None:
    start = time.monotonic()
    said = start
    while True:
        now = context.catalog.query(query.name)
        if now.actual is wanted:
            return
        if now.actual is Actual.FAILED and wanted is not Actual.PAUSED:
            raise SqlError(now.error or f'the query "{query.name}" failed')
        expect_runner(context)
        waited = time.monotonic() - start
        if waited > context.settings.start_timeout_s:
            raise _not_taken_up(context, query, wanted)
        if time.monotonic() - said > _SAY_AFTER_S:
            said = time.monotonic()
            context.say(f"{doing}, {waited:.0f} s")
        time.sleep(_POLL_S)


def _not_taken_up(context: Context, query: Query, wanted: Actual) -> ServiceUnavailable:
    return ServiceUnavailable(
        f'the runner did not report "{query.name}" {wanted.value} within {context.settings.start_timeout_s:g} s',
        where=f"query {query.name}",
        fix="dovetail status shows whether it runs; SHOW QUERIES shows how far the query is; "
        "DOVETAIL_START_TIMEOUT_S is the wait",
    )


def drop_relation(context: Context, statement: Drop) -> Done:
    """DROP: the queries that go are ended before the topics are deleted that they write."""
    return drop(context, statement, lambda names: await_gone(context, names))


def await_gone(context: Context, names: Iterable[str]) -> None:
    """Wait until the runner has ended dropped queries and cleaned up after them; not where there is no runner."""
    left = set(names)
    patience_s = 0.0 if context.runner_fault() else context.settings.stop_timeout_s
    end = time.monotonic() + patience_s
    while left:
        dropped = [query for query in context.catalog.queries(dropped=True) if query.desired is Desired.DROPPED]
        left &= {query.name for query in dropped}
        if not left or time.monotonic() > end:
            return
        time.sleep(_POLL_S)


def pause(context: Context, statement: Pause) -> Done:
    query = context.catalog.want(statement.name, Desired.PAUSED, now_ms=context.now_ms)
    expect_runner(context)
    _await(context, query, Actual.PAUSED, f"{query.name} is pausing")
    return Done(f"paused {statement.name}")


def resume(context: Context, statement: Resume) -> Done:
    """A paused query goes on; a failed one starts again from its checkpoint."""
    expect_runner(context)
    query = context.catalog.query(statement.name)
    if query.actual is Actual.FAILED:
        context.catalog.report(query.id, now_ms=context.now_ms, actual=Actual.PENDING, error="")
    query = context.catalog.want(statement.name, Desired.RUNNING, now_ms=context.now_ms)
    await_running(context, query)
    return Done(f"resumed {statement.name}")


def terminate(context: Context, statement: Terminate) -> Done:
    """The query ends for good. Its view stays as a name for the rows of its topic; a SELECT's topic goes with it."""
    query = context.catalog.want(statement.name, Desired.DROPPED, now_ms=context.now_ms)
    await_gone(context, [statement.name])
    of_view = context.catalog.find(statement.name) is not None
    context.topics.delete([dead_letter_topic(query.name)] if of_view else [dead_letter_topic(query.name), query.topic])
    return Done(f"terminated {query.name}" + (f"; its topic stays until DROP VIEW {query.name}" if of_view else ""))


def explain(context: Context, statement: Explain) -> Text:
    inner = statement.statement
    name = inner.name if isinstance(inner, CreateView) else "select"
    return Text(plan_query(name, inner, context.catalog).explain())
