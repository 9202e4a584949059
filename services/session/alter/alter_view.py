"""ALTER VIEW v SET (buckets = n): its query goes on with its state cut into another number of buckets.

The statement changes the definition and waits; whoever runs the query finds the number, and does the rest. So a session
or a runner that is killed meanwhile changes nothing in what comes of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dovetail.changelog.errors import ServiceUnavailable, SqlError, UnknownName, Unsupported
from dovetail.changelog.wording import counted
from dovetail.services.session.alter.proposal import expect_materialized, expect_running
from dovetail.services.session.context import Context
from dovetail.services.session.queries import expect_runner
from dovetail.services.session.result import Done
from dovetail.sql.catalog import Actual, Query, Relation
from dovetail.sql.engines import Engine
from dovetail.sql.query_settings import checked
from dovetail.sql.syntax.alterations import with_setting
from dovetail.sql.syntax.statements import AlterView, CreateView

_POLL_S = 0.1
_SAY_AFTER_S = 5.0


def alter_view(context: Context, statement: AlterView) -> Done:
    """A number that cannot be reached leaves the view as it was. Raises SqlError with the reason then."""
    if statement.if_exists and context.catalog.named(statement.name) is None:
        return Done(f"there is no view {statement.name}")
    buckets = _buckets(statement)
    view, definition = expect_materialized(context, statement.name)
    queries = _expect_buckets(context, view)
    if all(query.progress.get("buckets") == buckets for query in queries) and _named(definition) in (None, buckets):
        return Done(f"{view.name} has {counted(buckets, 'bucket')} already")
    expect_runner(context, {Engine.SPARK.value})
    # One that is under way may be taken back, or get another number, however it stands.
    if not any(_named(definition) not in (None, query.progress.get("buckets")) for query in queries):
        for query in queries:
            expect_running(query)
    after = with_setting(definition, "buckets", buckets)
    context.catalog.redefine(view, after.text)
    try:
        for query in queries:
            _await_rescaled(context, query, buckets)
    except SqlError:
        _take_back(context, view, after, queries)
        raise
    return Done(f"altered view {view.name}: {counted(buckets, 'bucket')}, running")


def _buckets(statement: AlterView) -> int:
    settings = checked(statement.settings)
    others = [name for name in statement.settings if name != "buckets"]
    if others:
        raise Unsupported(
            f"{others[0]} is part of what the query computes, and is not altered",
            where="ALTER VIEW",
            fix="CREATE OR REPLACE the view; of a view that goes on, the number of buckets is altered",
        )
    return settings.number("buckets") or 1


def _named(definition: CreateView) -> int | None:
    return checked(definition.settings).number("buckets")


def _expect_buckets(context: Context, view: Relation) -> list[Query]:
    """The queries of the view that have buckets."""
    fragments = context.catalog.fragments(view.name)
    found = [query for query in fragments if query.engine == Engine.SPARK]
    if not found:
        raise Unsupported(
            f'"{view.name}" is a lookup view: its work is shared by the partitions of its input, not by buckets',
            where="ALTER VIEW",
            fix="give the topic that it reads more partitions, and start more lookup workers",
        )
    return found


def _await_rescaled(context: Context, query: Query, buckets: int) -> None:
    """Raises SqlError where the runner could not do it, ServiceUnavailable where it does not begin to."""
    last_seen = said = time.monotonic()
    while True:
        now = context.catalog.query(query.name)
        if now.actual is Actual.RUNNING and now.progress.get("buckets") == buckets:
            return
        if (why := _refused(now.progress, buckets)) or now.actual is Actual.FAILED:
            raise SqlError(f'"{query.name}" could not be rescaled, and is as it was: {why or now.error}')
        expect_runner(context, [query.engine])
        if now.actual is Actual.RESCALING:
            last_seen = time.monotonic()
        if time.monotonic() - last_seen > context.settings.start_timeout_s:
            raise ServiceUnavailable(
                f'"{query.name}" is {now.actual.value}, and not rescaled yet',
                where=f"query {query.name}",
                fix="it is rescaled by itself once it can be: SHOW QUERIES shows how far it is",
            )
        if time.monotonic() - said > _SAY_AFTER_S:
            said = time.monotonic()
            context.say(f"{query.name} is {now.actual.value} {now.error}")
        time.sleep(_POLL_S)


def _refused(progress: Mapping[str, Any], buckets: int) -> str:
    found = progress.get("not_rescaled", {})
    return str(found["why"]) if found.get("buckets") == buckets else ""


def _take_back(context: Context, view: Relation, after: CreateView, queries: list[Query]) -> None:
    """The definition as it was, unless somebody has changed it since; the query goes on by it."""
    with suppress(SqlError):
        context.catalog.redefine(replace(view, ddl=after.text), view.ddl)
    deadline_s = time.monotonic() + context.settings.start_timeout_s
    with suppress(UnknownName):
        for query in queries:
            while _is_on_its_way_back(context.catalog.query(query.name)) and time.monotonic() < deadline_s:
                time.sleep(_POLL_S)


def _is_on_its_way_back(query: Query) -> bool:
    return query.actual is Actual.RESCALING or bool(query.progress.get("not_rescaled"))
