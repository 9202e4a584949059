"""EXPLAIN ALTER VIEW v AS SELECT ..: what another query of a view would read, and who would see the change."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from dovetail.changelog.schema import Kind
from dovetail.changelog.wording import counted
from dovetail.services.session.alter.proposal import Proposal, columns_of, proposal, scans_of
from dovetail.services.session.alter.readers import changed_readers, users_of
from dovetail.services.session.context import Context
from dovetail.services.session.input_progress import input_topics
from dovetail.services.session.live.backlog import Backlog, duration_text
from dovetail.services.session.queries import warned
from dovetail.services.session.result import Text
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.statements import CreateView, ExplainAlter


def explain_alter(context: Context, statement: ExplainAlter) -> Text:
    """Columns, plan, records to read and who reads the view, each under its heading; nothing is run."""
    proposed = proposal(context, statement.view, "EXPLAIN ALTER")
    parts = {
        "columns": proposed.columns or ["as they are"],
        "plan": list(_plan_difference(proposed)) or ["as it is"],
        "to read": list(_to_read(context, proposed)),
        "views below": list(_below(context, proposed)) or ["none"],
        "consumer groups": list(_groups(context, proposed)) or ["none"],
    }
    sections = ["\n".join([heading, *(f"  {line}" for line in lines)]) for heading, lines in parts.items()]
    return Text("\n\n".join([*sections, *warned(proposed.after)]))


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
    read = 0 if done is None else done.read
    took_s = Backlog(read, read + records).seconds_left(proposed.query.worked_s)
    if took_s:
        yield f"at most {duration_text(took_s)}, at the mean rate of {proposed.name} while it had records to read"


def _below(context: Context, proposed: Proposal) -> Iterator[str]:
    """Each view that reads this one, itself or through others, and whether it could go on as it is."""
    changed = changed_readers(context.catalog, proposed.relation_after, columns_of(proposed.after))
    for user in users_of(context.catalog, proposed.relation):
        if (reader := user.materialized_view) is None:
            continue
        if user.name in changed:
            yield f"{user.name}: {_read_otherwise(context, proposed, reader)}, and could not go on"
        else:
            yield f"{user.name}: goes on"


def _groups(context: Context, proposed: Proposal) -> Iterator[str]:
    """Each group that reads the topic of the view, and how much of it is to come before the difference."""
    topic = proposed.before.stream().topic
    ends = context.topics.ends(topic) if topic in context.topics.partitions() else {}
    for group, offsets in (context.topics.groups(topic) if ends else {}).items():
        behind = sum(max(ends.get(partition, 0) - offset, 0) for partition, offset in offsets.items())
        before = f"after {counted(behind, 'record')} that it has yet to read"
        yield f"{group}: gets {_difference_as_read(proposed)}, {before}"


def _difference_as_read(proposed: Proposal) -> str:
    """What the difference is to whoever reads the topic."""
    match proposed.before.stream().schema.kind:
        case Kind.UPSERT:
            return "the rows of the keys that change, and tombstones of those that go"
        case Kind.APPEND:
            return "the rows that are added"
        case _:
            return "-1 and +1 of the rows that change"


def _read_otherwise(context: Context, proposed: Proposal, reader: CreateView) -> str:
    """The columns that go or change and that a view reads; or that it reads whatever there is."""
    before, after = columns_of(proposed.before), columns_of(proposed.after)
    plan = plan_query(reader.name, reader, context.catalog)
    read = {column for scan in scans_of(plan) if scan.stream.name == proposed.name for _, column in scan.columns}
    lost = sorted(name for name in read if name in before and after.get(name) != before[name])
    return f"reads {', '.join(lost)}" if lost else "reads all columns, or a view that does"
