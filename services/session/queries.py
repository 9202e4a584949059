"""Queries that run until they are dropped: started, waited for, paused, resumed, ended."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from broker.topic_shapes import TopicShape, config_for
from changelog.errors import DovetailError, ServiceUnavailable, SqlError, StackError, Unsupported
from changelog.schema import Kind
from services.session.context import Context
from services.session.result import Done, Text
from services.session.streams import drop, topics_of
from sql.catalog import Actual, Desired, Query
from sql.catalog.entries import queries_of
from sql.fragments import Engine
from sql.planner import Plan, plan_query
from sql.syntax.statements import CreateView, Drop, Explain, Pause, Resume, Terminate

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
    expect_runner(context, engines_of(plan))
    if existing is not None and statement.or_replace:
        drop_relation(context, Drop(existing.what, existing.name))
    made = _added(context, statement, plan)
    try:
        await_running(context, statement.name)
    except SqlError:
        drop_relation(context, Drop("view", statement.name))
        raise
    return Done(f"created materialized view {statement.name}, running, topic {made.topic}")


def _added(context: Context, statement: CreateView, plan: Plan) -> Query:
    """The view in the catalog; its topics are made before, so that those who run it find them."""
    uses = (*plan.reads, *((statement.into,) if statement.into is not None else ()))
    *upstream, query = queries_of(plan, statement.text)
    own: list[str] = []
    try:
        for made in [*upstream, query] if statement.into is None else upstream:
            own += [made.topic] if _own_topic(context, plan, made.topic) else []
        _, created = context.catalog.create(statement, now_ms=context.now_ms, uses=uses, query=query, upstream=upstream)
    except DovetailError:
        context.topics.delete(own)
        raise
    assert created is not None
    return created


def _own_topic(context: Context, plan: Plan, topic: str) -> bool:
    """Make a topic of a view; False if it was there, empty. One with records is somebody's, and a DROP deletes it."""
    made = context.topics.create(topic, output_shape(plan, topic, context.settings.output_partitions))
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


def output_shape(plan: Plan, topic: str, partitions: int = -1) -> TopicShape:
    """How the topic of a query is made; one between two of its fragments is a plain changelog."""
    last = plan.output is not None and plan.output.topic == topic
    upsert = last and plan.output is not None and plan.output.format == "upsert"
    return TopicShape(partitions=partitions, config=config_for(Kind.UPSERT if upsert else Kind.CHANGELOG))


def engines_of(plan: Plan) -> frozenset[str]:
    return frozenset(fragment.engine.value for fragment in plan.fragments)


def expect_runner(context: Context, engines: Collection[str]) -> None:
    """Raises StackError where it is known that nothing would run a query of these engines."""
    for engine in sorted(engines):
        fault = context.runner_fault(engine)
        if fault:
            component = "worker" if engine == Engine.FAUST else "spark"
            raise StackError(
                f"no query can run: {fault}",
                fix=f"dovetail up starts what is missing; dovetail logs {component} says more",
            )


def await_running(context: Context, name: str) -> None:
    """Wait until all fragments have been started. Raises SqlError with the runner's reason if one failed."""
    for query in context.catalog.fragments(name):
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
        expect_runner(context, [query.engine])
        waited = time.monotonic() - start
        if waited > context.settings.start_timeout_s:
            raise _not_taken_up(context, query, wanted)
        if time.monotonic() - said > _SAY_AFTER_S:
            said = time.monotonic()
            context.say(f"{doing}, {waited:.0f} s")
        time.sleep(_POLL_S)


def _not_taken_up(context: Context, query: Query, wanted: Actual) -> ServiceUnavailable:
    runner = "lookup worker" if query.engine == Engine.FAUST else "runner"
    return ServiceUnavailable(
        f'the {runner} did not report "{query.name}" {wanted.value} within {context.settings.start_timeout_s:g} s',
        where=f"query {query.name}",
        fix="dovetail status shows whether it runs; SHOW QUERIES shows how far the query is; "
        "DOVETAIL_START_TIMEOUT_S is the wait",
    )


def drop_relation(context: Context, statement: Drop) -> Done:
    """DROP: the queries that go are ended before the topics are deleted that they write."""
    return drop(context, statement, lambda names: await_gone(context, names))


def await_gone(context: Context, names: Iterable[str]) -> None:
    """Wait until all fragments of dropped queries are ended and cleaned up; not where their runner is not there."""
    left = set(names)
    end = time.monotonic() + context.settings.stop_timeout_s
    while time.monotonic() < end:
        dropped = [query for query in context.catalog.queries(dropped=True) if query.desired is Desired.DROPPED]
        engines = {query.engine for query in dropped if query.view in left}
        if all(context.runner_fault(engine) for engine in engines):
            return
        time.sleep(_POLL_S)


def pause(context: Context, statement: Pause) -> Done:
    query = context.catalog.want(statement.name, Desired.PAUSED, now_ms=context.now_ms)
    for fragment in context.catalog.fragments(query.view):
        expect_runner(context, [fragment.engine])
        _await(context, fragment, Actual.PAUSED, f"{fragment.name} is pausing")
    return Done(f"paused {statement.name}")


def resume(context: Context, statement: Resume) -> Done:
    """A paused query goes on; a failed one starts again from its checkpoint."""
    fragments = context.catalog.fragments(statement.name)
    expect_runner(context, {fragment.engine for fragment in fragments})
    for fragment in fragments:
        if fragment.actual is Actual.FAILED:
            context.catalog.report(fragment.id, now_ms=context.now_ms, actual=Actual.PENDING, error="")
    context.catalog.want(statement.name, Desired.RUNNING, now_ms=context.now_ms)
    await_running(context, statement.name)
    return Done(f"resumed {statement.name}")


def terminate(context: Context, statement: Terminate) -> Done:
    """The query ends for good. Its view stays as a name for the rows of its topic; a SELECT's topic goes with it."""
    fragments = context.catalog.fragments(statement.name)
    name = fragments[-1].view
    context.catalog.want(name, Desired.DROPPED, now_ms=context.now_ms)
    await_gone(context, [name])
    of_view = context.catalog.find(name) is not None
    context.topics.delete(topics_of(fragments, with_output=not of_view))
    return Done(f"terminated {name}" + (f"; its topic stays until DROP VIEW {name}" if of_view else ""))


def explain(context: Context, statement: Explain) -> Text:
    inner = statement.statement
    name = inner.name if isinstance(inner, CreateView) else "select"
    return Text(plan_query(name, inner, context.catalog).explain())
