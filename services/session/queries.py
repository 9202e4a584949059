"""Queries that run until they are dropped, or as long as somebody answers for them: waited for, paused, resumed,
explained.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from dovetail.changelog.errors import ServiceUnavailable, SqlError, StackError, UnknownName, Unsupported
from dovetail.changelog.work.supervised_thread import PeriodicThread
from dovetail.runtime.leases import RENEWED_EVERY_S, lease_from_now
from dovetail.services.session.context import Context
from dovetail.services.session.drop import await_gone, topics_of_select
from dovetail.services.session.result import Done, Text
from dovetail.services.session.topics import output_shape, sizes
from dovetail.sql.catalog import Actual, Desired, Query
from dovetail.sql.engines import Engine
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.statements import CreateView, Explain, ExplainView, Pause, Resume, Select

_POLL_S = 0.03
_SAY_AFTER_S = 5.0


def engines_of(plan: Plan) -> frozenset[str]:
    return frozenset(fragment.engine.value for fragment in plan.fragments)


def expect_runner(context: Context, engines: Collection[str]) -> None:
    """Raises StackError where it is known that nothing would run a query of these engines."""
    for engine in sorted(engines):
        fault = context.runner_fault(engine)
        if fault:
            raise StackError(
                f"no query can run: {fault}",
                fix=f"dovetail up starts what is missing; dovetail logs {Engine(engine).component} says more",
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
    process = Engine(query.engine).process
    return ServiceUnavailable(
        f'the {process} did not report "{query.name}" {wanted.value} within {context.settings.start_timeout_s:g} s',
        where=f"query {query.name}",
        fix="dovetail status shows whether it runs; SHOW QUERIES shows how far the query is; "
        "DOVETAIL_START_TIMEOUT_S is the wait",
    )


@contextmanager
def leased(context: Context, plan: Plan, queries: Sequence[Query]) -> Iterator[None]:
    """The queries of ``plan`` at work, with topics of their own, all gone at the end; also where this process is killed
    meanwhile.

    One partition, so that rows are shown in their order. Raises as ``await_running`` does.
    """
    lease_ms = lease_from_now()
    *upstream, last = (replace(query, desired=Desired.PAUSED, lease_ms=lease_ms) for query in queries)
    # In the catalog before there is a topic: whoever finds the lease run out knows what to delete.
    context.catalog.add_query(last, now_ms=context.now_ms, upstream=upstream)
    try:
        with _renewed(context, last.name):
            for query in upstream:
                context.topics.create(query.topic, output_shape(plan, query.topic, context.settings.output_partitions))
            context.topics.create(last.topic, output_shape(plan, last.topic, partitions=1))
            context.catalog.want(last.name, Desired.RUNNING, now_ms=context.now_ms)
            await_running(context, last.name)
            yield
    finally:
        with suppress(UnknownName):
            context.catalog.want(last.name, Desired.DROPPED, now_ms=context.now_ms)
        await_gone(context, [last.name])
        context.topics.delete(topics_of_select([*upstream, last]))


def _renewed(context: Context, name: str) -> PeriodicThread:
    """Answers for a query, again and again, as long as this process lives: a catalog that does not answer now may do so
    before the lease runs out.
    """
    return PeriodicThread(f"lease of {name}", RENEWED_EVERY_S, lambda: context.catalog.renew(name, lease_from_now()))


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


def explain(context: Context, statement: Explain) -> Text:
    return _explained(context, as_created(context, statement.statement))


def as_created(context: Context, statement: Select | CreateView) -> Plan:
    """The plan that a statement gets when it is run now: the joins of a materialized view in an order that fits what
    its inputs hold.
    """
    name = statement.name if isinstance(statement, CreateView) else "select"
    ordered = isinstance(statement, CreateView) and statement.materialized
    return plan_query(name, statement, context.catalog, sizes=sizes(context) if ordered else None)


def _explained(context: Context, plan: Plan) -> Text:
    return Text("\n\n".join([plan.explain(), *warned(plan)]))


def explain_view(context: Context, statement: ExplainView) -> Text:
    """The plan of a view as it would be made now, but for the order of its joins, which stays as it is."""
    relation = context.catalog.get(statement.name)
    if not isinstance(relation.definition, CreateView):
        raise Unsupported(
            f'"{relation.name}" is no view: no plan makes its rows', where="EXPLAIN", fix=f"DESCRIBE {relation.name}"
        )
    return _explained(context, plan_query(relation.name, relation.definition, context.catalog))


def warned(plan: Plan) -> tuple[str, ...]:
    """The warnings of a plan, as lines."""
    return tuple(f"warning: {one}" for one in plan.warnings)
