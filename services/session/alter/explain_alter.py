"""EXPLAIN ALTER VIEW v AS SELECT ..: what another query of a view would read, and who would see the change."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from dovetail.services.session.alter.proposal import Proposal, columns_of, proposal, scans_of
from dovetail.services.session.context import Context
from dovetail.services.session.input_progress import input_topics
from dovetail.services.session.live.backlog import Backlog, duration_text
from dovetail.services.session.queries import warned
from dovetail.services.session.result import Text, counted
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.statements import CreateView, ExplainAlter


def explain_alter(context: Context, statement: ExplainAlter) -> Text:
    """Columns, plan, records to read and the views below, each under its heading; nothing is run."""
    proposed = proposal(context, statement.view, "EXPLAIN ALTER")
    parts = {
        "columns": proposed.columns or ["as they are"],
        "plan": list(_plan_difference(proposed)) or ["as it is"],
        "to read": list(_to_read(context, proposed)),
        "views below": list(_below(context, proposed)) or ["none"],
    }
    told = ["\n".join([heading, *(f"  {line}" for line in lines)]) for heading, lines in parts.items()]
    return Text("\n\n".join([*told, *warned(proposed.after)]))


def _plan_difference(proposed: Proposal) -> Iterator[str]:
    """All lines of both plans, those of one of them marked."""
    before, after = (plan.explain().splitlines() for plan in (proposed.before, proposed.after))
    return (line for line in list(unified_diff(before, after, lineterm="", n=len(before)))[3:])


def _to_read(context: Context, proposed: Proposal) -> Iterator[str]:
    """The records of each input, and how long they take at the rate of the query that runs."""
    topics = sorted(input_topics(proposed.after))
    ends = context.topics.all_ends(topics)
    records = 0
    for topic in topics:
        begins = ends[topic] if topic in proposed.latest else context.topics.begins(topic)
        count = sum(end - begins.get(partition, 0) for partition, end in ends[topic].items())
        records += count
        yield f"{topic}: {counted(count, 'record')}"
    done = Backlog.of([proposed.query], context.topics.all_ends(proposed.query.progress.get("starts", {})))
    if done is not None and done.read and records:
        worked_s = (context.now_ms - proposed.query.created_ms) / 1000
        yield f"at most {duration_text(worked_s * records / done.read)}, at the mean rate of {proposed.name} until now"


def _below(context: Context, proposed: Proposal) -> Iterator[str]:
    """Each view that reads this one, and which of the columns that it reads would go or change."""
    before, after = columns_of(proposed.before), columns_of(proposed.after)
    changed = {name for name, kind in before.items() if after.get(name) != kind}
    for view in _readers(context, proposed.name):
        read = sorted(changed & _columns_read(context, view, proposed.name))
        yield f"{view.name}: " + (f"reads {', '.join(read)}, and could not go on" if read else "goes on")


def _readers(context: Context, name: str) -> Iterator[CreateView]:
    """The materialized views that read ``name``, themselves or through views that only stand for a query."""
    for user in context.catalog.users(name):
        if user.materialized_view is not None:
            yield user.materialized_view
        elif isinstance(user.definition, CreateView):
            yield from _readers(context, user.name)


def _columns_read(context: Context, reader: CreateView, view: str) -> set[str]:
    plan = plan_query(reader.name, reader, context.catalog)
    return {column for scan in scans_of(plan) if scan.stream.name == view for _, column in scan.columns}
