"""Queries that run until they are dropped: waited for, paused, resumed, explained."""

from __future__ import annotations

import time
from collections.abc import Collection

from changelog.errors import ServiceUnavailable, SqlError, StackError
from services.session.context import Context
from services.session.result import Done, Text
from sql.catalog import Actual, Desired, Query
from sql.fragments import Engine
from sql.planner import Plan, plan_query
from sql.syntax.statements import CreateView, Explain, Pause, Resume

_POLL_S = 0.1
_SAY_AFTER_S = 5.0


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
    inner = statement.statement
    name = inner.name if isinstance(inner, CreateView) else "select"
    return Text(plan_query(name, inner, context.catalog).explain())
