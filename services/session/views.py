"""CREATE VIEW and CREATE MATERIALIZED VIEW: a query, and the topic of its rows.

The name is taken in the catalog first, with a query that nobody runs yet; then what is replaced is ended, and the
topics are made; then the query is wanted running. So of two sessions that create one view at once, one has all of it,
and the other is refused before it touches a topic.

A view that is replaced goes on until its new query has shown that it starts: under another name, with a topic of its
own, since two queries in one topic would write each row twice. Where the view has written rows, and its topic stays,
the new query alters it (``services.session.alter``).
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from dovetail.broker.topic_shapes import TopicShape, config_for
from dovetail.changelog.changes import Changes
from dovetail.changelog.errors import DovetailError, SqlError, Unsupported
from dovetail.changelog.schema import Kind, StreamSchema
from dovetail.changelog.wording import counted
from dovetail.runtime.query_plan import on_trial
from dovetail.services.session import topics
from dovetail.services.session.alter.alter_query import change_query
from dovetail.services.session.alter.proposal import proposal
from dovetail.services.session.contents import answer
from dovetail.services.session.context import Context
from dovetail.services.session.dictionaries.passwords import expect_passwords_of
from dovetail.services.session.drop import await_gone, clear, expect_disposable
from dovetail.services.session.generated import ensure_clock
from dovetail.services.session.if_not_exists import defined_otherwise, exists_already
from dovetail.services.session.queries import as_created, await_running, engines_of, expect_runner, leased, warned
from dovetail.services.session.result import Done
from dovetail.services.session.rows import write_rows
from dovetail.sql.bind.clock_conditions import asks_clock
from dovetail.sql.catalog import Desired, Query, Relation
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.plan.join_order import orders_text
from dovetail.sql.plan.nodes import Scan
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.state.delta_choice import deltas_text
from dovetail.sql.planner import Plan, plan_query, stream_of
from dovetail.sql.syntax.alterations import with_setting
from dovetail.sql.syntax.statements import CreateView, Drop

_BUCKETS = "buckets"
_ORDER = "join_order"
_DELTAS = "delta_join"


def create_view(context: Context, statement: CreateView) -> Done:
    """A materialized view is a query, and the topic of its rows: one of its own name, or that of the INTO target.

    One whose query fails at its start is not created. Its topic begins empty: a query writes its history, and over
    records of an earlier one each row would stand twice.
    """
    existing = context.catalog.find(statement.name)
    if existing is not None and statement.if_not_exists:
        other = isinstance(existing.definition, CreateView) and not _same(statement, existing)
        return exists_already(existing, defined_otherwise(existing) if other else "")
    altered = existing if existing is not None and _is_alterable(statement, existing) else None
    if altered is None:
        context.catalog.expect_free(statement)
    if statement.with_data and (statement.into is not None or not statement.materialized):
        raise Unsupported(f'"{statement.name}" has no topic of its own', where="WITH DATA", fix="leave it out")
    plan = as_created(context, statement)
    ensure_clock(context, plan)
    context.catalog.expect_acyclic(statement, plan.uses)
    replaced = [query for query in context.catalog.queries() if query.view == statement.name]
    if not statement.materialized:
        return _plain_view(context, statement, plan, existing, replaced)
    if plan.constant and statement.into is None and existing is None and not asks_clock(statement.query):
        return constant_view(context, statement, plan)
    expect_endless(statement, plan, existing)
    expect_runner(context, engines_of(plan))
    expect_passwords_of(context, plan.uses)
    if existing is not None and replaced and not statement.with_data and _same(statement, existing):
        return Done(
            f"{existing.noun} {statement.name} has this query already, {replaced[-1].actual.value}; it goes on: "
            f"{_other_buckets(statement, existing)}"
            "WITH DATA at the end of the statement would start again with an empty topic"
        )
    statement = _in_order(statement, plan)
    if altered is not None and _has_rows(context, statement, plan, altered):
        return change_query(context, proposal(context, statement, "CREATE OR REPLACE", keeps_settings=False))
    context.catalog.expect_free(statement)
    return _materialized(context, statement, plan, existing, replaced)


def _in_order(statement: CreateView, plan: Plan) -> CreateView:
    """``statement`` with the order of its joins, and its delta joins, as in ``plan``: every later plan has them."""
    if plan.orders and _ORDER not in statement.settings:
        statement = with_setting(statement, _ORDER, orders_text(tuple(order.tree for order in plan.orders)))
    if plan.deltas and _DELTAS not in statement.settings:
        statement = with_setting(statement, _DELTAS, deltas_text(plan.deltas))
    return statement


def _same(statement: CreateView, existing: Relation) -> bool:
    """Whether the view has this query already: what it computes, its plan and its fingerprint do not tell in full.

    An order of joins, and delta joins, that the statement does not name are left to the view.
    """
    before = existing.definition
    left_open = {_BUCKETS, *({_ORDER, _DELTAS} - statement.settings.keys())}
    return isinstance(before, CreateView) and _meaning(before, left_open) == _meaning(statement, left_open)


def _meaning(view: CreateView, left_open: Collection[str]) -> tuple[object, ...]:
    """What makes two statements one, wherever their words stand, and whatever they say of settings ``left_open``."""
    settings = {name: value for name, value in view.settings.items() if name not in left_open}
    return repr(view.query), view.emit, settings, view.into, view.materialized, view.columns


def _other_buckets(statement: CreateView, existing: Relation) -> str:
    """How to get the buckets that the statement names, if the view has others."""
    before, wanted = existing.definition, statement.settings.get(_BUCKETS)
    if wanted is None or not isinstance(before, CreateView) or before.settings.get(_BUCKETS) == wanted:
        return ""
    return f"ALTER VIEW {statement.name} SET (buckets = {wanted}) gives it other buckets; "


def expect_endless(statement: CreateView, plan: Plan, existing: Relation | None) -> None:
    """Raises Unsupported for a query that would end at once."""
    if not plan.bounded and plan.output is not None:
        return
    if plan.constant and existing is not None:
        raise Unsupported(
            f'the query of "{statement.name}" reads nothing, and what has the name does not become a view of constants',
            fix=f"drop the {existing.noun} first: DROP {existing.noun.upper()} {existing.name}",
        )
    reads = "nothing" if plan.constant else "table(x) only"
    raise Unsupported(
        f'the query of "{statement.name}" reads {reads}, so it would end at once',
        fix="read a stream in it, or ask it as a SELECT",
    )


def constant_view(context: Context, statement: CreateView, plan: Plan) -> Done:
    """A view whose query reads nothing: its rows are written once, and no query runs for it."""
    assert plan.snapshot is not None
    _expect_topic(context, statement, plan, existing=None)
    rows = answer(context, plan.snapshot)
    stream = plan.stream()
    mine, _ = context.catalog.create(statement, now_ms=context.now_ms, uses=plan.uses, written=stream)
    try:
        if statement.with_data:
            topics.delete(context, [statement.name])
        topics.make(context, statement.name, TopicShape(config=config_for(stream.schema.kind)))
        write_rows(context, stream, Changes.of(rows).table)
    except DovetailError:
        _take_back(context, mine)
        raise
    return Done(f"created materialized view {statement.name} of {counted(rows.num_rows, 'row')}, all that it will have")


def _plain_view(
    context: Context, statement: CreateView, plan: Plan, existing: Relation | None, replaced: Sequence[Query]
) -> Done:
    context.catalog.create(statement, now_ms=context.now_ms, uses=plan.uses)
    if existing is None:
        return Done(f"created view {statement.name}")
    await_gone(context, [statement.name])
    return Done(f"replaced view {statement.name}{clear(context, [existing], replaced, with_data=False)}")


def _has_rows(context: Context, statement: CreateView, plan: Plan, existing: Relation | None) -> bool:
    """Whether there are rows in the topic of the view that those of its new query do not simply follow."""
    return context.topics.ever_written(statement.name) and (
        existing is None or not _goes_on(context, statement, plan, existing)
    )


def _is_alterable(statement: CreateView, existing: Relation) -> bool:
    """Whether the statement is one of another query for a view in a topic of its own, which it keeps."""
    before = existing.materialized_view
    alters = statement.or_replace and statement.materialized and not statement.with_data
    return alters and before is not None and before.into is None and statement.into is None


def _expect_topic(context: Context, statement: CreateView, plan: Plan, existing: Relation | None) -> None:
    """Raises where its topic holds records that the view's rows cannot follow, or that WITH DATA may not delete."""
    topic = statement.name
    if statement.with_data:
        if topic in context.topics.partitions():
            expect_disposable(context, topic, order="WITH DATA", but=statement.name)
        return
    if not _has_rows(context, statement, plan, existing):
        return
    empty = "WITH DATA at the end of the statement begins with an empty topic"
    ways = [empty] if topic in topics.own(context, [topic]) else []
    ways += ["give the view another name", f"write INTO a stream over {topic}"]
    raise Unsupported(
        f'there is a topic "{topic}" already, and it holds records',
        where=f"brokers {context.brokers}",
        fix="; or ".join(ways),
    )


def _expect_target(context: Context, statement: CreateView, plan: Plan, existing: Relation) -> None:
    """Raises where what the view has written INTO its target would stand beside the same rows of its new query."""
    before = existing.definition
    if not isinstance(before, CreateView) or before.into != statement.into or plan.output is None:
        return
    if context.topics.ever_written(plan.output.topic) and not _goes_on(context, statement, plan, existing):
        raise Unsupported(
            f'"{statement.into}" holds the rows that the view wrote as it was, and the new query would write all of its'
            " own after them",
            where="CREATE OR REPLACE .. INTO",
            fix=f"write INTO another stream; or drop the view, CREATE OR REPLACE STREAM {statement.into} .. WITH DATA, "
            "which empties it, and create the view again",
        )


def _goes_on(context: Context, statement: CreateView, plan: Plan, existing: Relation) -> bool:
    """Whether the rows of a new query simply follow those of the old one: of the same form, appended, from now on."""
    before = existing.materialized_view
    if before is None or before.into != statement.into:
        return False
    old = stream_of(context.catalog, before.name).schema
    return _form(old) == _form(plan.stream().schema) and old.kind is Kind.APPEND and _from_now_on(plan)


def _form(schema: StreamSchema) -> tuple[object, ...]:
    return [(column.name, column.type) for column in schema.columns], schema.kind, schema.primary_key


def _from_now_on(plan: Plan) -> bool:
    return all(scan.latest for scan in _inputs(plan))


def _inputs(plan: Plan) -> Iterator[Scan]:
    """What the query reads, other than what its own fragments write."""
    between = {fragment.output.topic for fragment in plan.fragments}
    for fragment in plan.fragments:
        for node in walk(fragment.output):
            if isinstance(node, Scan) and node.topic not in between:
                yield node


def _try(context: Context, statement: CreateView) -> None:
    """Raises, before anything is touched, where the query of ``statement`` does not start."""
    name = f"{statement.name}_trial_{secrets.token_hex(4)}"
    plan = plan_query(name, on_trial(statement, name), context.catalog)
    context.say(f"trying the new query of {statement.name}, which goes on as it was meanwhile")
    try:
        with leased(context, plan, queries_of(plan, statement.text)):
            return
    except SqlError as failure:
        raise SqlError(
            f'the new query of "{statement.name}" does not start, and the view goes on as it was: {failure.what}',
            where=failure.where or f"CREATE OR REPLACE, tried as {name}",
            fix=failure.fix,
        ) from failure


def _materialized(
    context: Context, statement: CreateView, plan: Plan, existing: Relation | None, replaced: Sequence[Query]
) -> Done:
    if statement.into is None:
        _expect_topic(context, statement, plan, existing)
    elif existing is not None:
        _expect_target(context, statement, plan, existing)
    if existing is not None:
        _try(context, statement)
    uses = (*plan.uses, *((statement.into,) if statement.into is not None else ()))
    *upstream, query = (replace(one, desired=Desired.PAUSED) for one in queries_of(plan, statement.text))
    seen = [] if existing is None else [existing]
    mine, _ = context.catalog.create(
        statement,
        now_ms=context.now_ms,
        uses=uses,
        query=query,
        upstream=upstream,
        seen=seen,
        written=plan.stream(),
    )
    fragments, made = [*upstream, query], list[str]()
    try:
        if existing is not None:
            await_gone(context, [statement.name])
            clear(context, [existing], replaced, with_data=False)
        if statement.with_data:
            topics.delete(context, [statement.name, *topics.dead_letter_topics(fragments)])
        _make_topics(context, plan, upstream if statement.into is not None else fragments, made)
    except DovetailError:
        if _take_back(context, mine):
            topics.delete(context, made)
        raise
    context.catalog.want(statement.name, Desired.RUNNING, now_ms=context.now_ms)
    try:
        await_running(context, statement.name)
    except SqlError:
        if _take_back(context, mine):
            await_gone(context, [statement.name])
            clear(context, [], fragments, with_data=False)
            topics.delete(context, made)
        raise
    verb = "created" if existing is None else "replaced"
    return Done(f"{verb} materialized view {statement.name}, running, topic {query.topic}{_beginning(context, plan)}")


def _beginning(context: Context, plan: Plan) -> str:
    notes = (from_now_on(plan), *warned(plan))
    return "".join(f"; {one}" for one in notes if one)


def from_now_on(plan: Plan) -> str:
    """Which inputs the query reads from their ends on, and how to have it read the rest; '' for none."""
    names = dict.fromkeys(scan.stream.name for scan in _inputs(plan) if scan.latest)
    if not names:
        return ""
    return f"it reads {', '.join(names)} from now on; add SETTINGS seek_to = 'earliest' to read from the beginning"


def _make_topics(context: Context, plan: Plan, fragments: Iterable[Query], made: list[str]) -> None:
    """Make the topics of a new query, and add to ``made`` those that were not there.

    What an earlier life of the name has left between its fragments is nobody's, and goes.
    """
    for query in fragments:
        if query.name != query.view:
            topics.delete(context, topics.own(context, [query.topic]))
        if topics.make(
            context, query.topic, topics.output_shape(plan, query.topic, context.settings.output_partitions)
        ):
            made.append(query.topic)


def _take_back(context: Context, mine: Relation) -> bool:
    """The view is not created after all; False where somebody else has replaced or dropped it meanwhile."""
    if context.catalog.find(mine.name) != mine:
        return False
    context.catalog.drop(Drop("view", mine.name), now_ms=context.now_ms)
    return True
