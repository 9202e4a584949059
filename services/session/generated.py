"""Streams whose rows are generated: their queries, and the clock, which is made with the first query that asks it."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.broker.topic_shapes import TopicShape, config_for
from dovetail.changelog.errors import DovetailError
from dovetail.services.session import topics
from dovetail.services.session.context import Context
from dovetail.services.session.queries import await_running, expect_runner
from dovetail.sql.catalog import Desired, Query
from dovetail.sql.clock_table import CLOCK, clock
from dovetail.sql.engines import Engine
from dovetail.sql.planner import Plan
from dovetail.sql.stream_settings import kept_text
from dovetail.sql.syntax.statements import CreateStream, Drop


def _generating_query(context: Context, statement: CreateStream) -> Query:
    """What writes the rows of the stream, once there is a place for them. Raises StackError where nothing would run
    it.
    """
    expect_runner(context, {Engine.DATAGEN.value})
    return Query(
        statement.name,
        sql=kept_text(statement),
        plan="",
        fingerprint="",
        topic=statement.topic or statement.name,
        engine=Engine.DATAGEN.value,
        desired=Desired.PAUSED,
    )


def enter(context: Context, statement: CreateStream, place: Callable[[], bool]) -> bool:
    """A stream with a topic of its own, and what writes its rows where they are generated; neither where ``place``
    fails, which sees to the topic. What that answers.
    """
    query = _generating_query(context, statement) if statement.generated else None
    context.catalog.create(statement, now_ms=context.now_ms, query=query)
    try:
        made = place()
    except DovetailError:
        context.catalog.drop(Drop("stream", statement.name), now_ms=context.now_ms)
        raise
    if query is not None:
        context.catalog.want(query.name, Desired.RUNNING, now_ms=context.now_ms)
        await_running(context, query.name)
    return made


def ensure_clock(context: Context, plan: Plan) -> None:
    """Where ``plan`` reads the clock, and nobody has made it yet. It stays: queries to come go by it, too."""
    if CLOCK not in plan.reads or context.catalog.find(CLOCK) is not None:
        return
    context.say(f"creating {CLOCK}, the table of one row that conditions on the time go by")
    shape = TopicShape(1, config=config_for(clock().kind))
    enter(context, clock(), lambda: topics.make(context, CLOCK, shape))
