"""Streams whose rows are generated: their queries, and the clock, which is made with the first query that asks it."""

from __future__ import annotations

from dovetail.broker.topic_shapes import TopicShape, config_for
from dovetail.services.session import topics
from dovetail.services.session.context import Context
from dovetail.services.session.queries import await_running, expect_runner
from dovetail.sql.catalog import Desired, Query
from dovetail.sql.clock_table import CLOCK, clock
from dovetail.sql.engines import Engine
from dovetail.sql.planner import Plan
from dovetail.sql.stream_settings import kept_text
from dovetail.sql.syntax.statements import CreateStream


def generating_query(context: Context, statement: CreateStream) -> Query:
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


def begin(context: Context, query: Query) -> None:
    """The place is there."""
    context.catalog.want(query.name, Desired.RUNNING, now_ms=context.now_ms)
    await_running(context, query.name)


def ensure_clock(context: Context, plan: Plan) -> None:
    """Where ``plan`` reads the clock, and nobody has made it yet. It stays: queries to come go by it, too."""
    if CLOCK not in plan.reads or context.catalog.find(CLOCK) is not None:
        return
    context.say(f"creating {CLOCK}, the table of one row that conditions on the time go by")
    statement = clock()
    _, query = context.catalog.create(statement, now_ms=context.now_ms, query=generating_query(context, statement))
    topics.make(context, CLOCK, TopicShape(1, config=config_for(statement.kind)))
    if query is not None:
        begin(context, query)
