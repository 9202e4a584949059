"""WHY v WHERE ..: the records behind rows of a view; WHY NOT: what became of those that are about them.

Everything is computed from the topics as they are now: nothing is kept for it, and nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import SEQUENCE
from dovetail.changelog.wording import counted
from dovetail.joins.dataflow.graph import TopicScan
from dovetail.joins.dataflow.lookup import LookupTarget
from dovetail.services.session.context import Context
from dovetail.services.session.result import Rows
from dovetail.services.session.why.topic_inputs import TopicInputs
from dovetail.services.session.why.uncounted import Uncounted
from dovetail.sql.engines import Engine
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.fragments import Fragment
from dovetail.sql.plan.nodes import LookupTable, Scan
from dovetail.sql.plan.properties import walk
from dovetail.sql.planner import Plan, meeting_plan, plan_query
from dovetail.sql.query_settings import moment_ms
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateView, Why
from dovetail.sql.trace.answer import Traced, condition_terms, traced
from dovetail.sql.trace.demand import Demand
from dovetail.sql.trace.history import History
from dovetail.sql.trace.ledger import Ledger

_WIDE = ("values",)
_SHOWN = 100


def why(context: Context, statement: Why) -> Rows:
    """LINES: of WHY without ``reason``. Raises SqlError for what is no view, Unsupported for what is not traced."""
    definition = _view(context, statement.view)
    plan = plan_query(statement.view, definition, context.catalog)
    meeting, dialect = meeting_plan(statement.view, definition, context.catalog)
    terms = condition_terms(_in_rules(statement, dialect.rules).where, meeting, dialect)
    uncounted = Uncounted.of(context, plan)
    inputs = TopicInputs(
        context, _columns_read(plan), uncounted, _since_ms(statement, context.now_ms), statement.absent
    )
    found = traced(meeting, terms, inputs)
    for note in (*found.notes, *uncounted.doubts, *inputs.notes):
        context.say(note)
    # Of rows that are made of records before the moment the topic of the view knows, and this answer does not.
    if not statement.since:
        written = _written(plan, terms, inputs)
        if written != found.rows.num_rows:
            context.say(_differing(plan, found.rows.num_rows, written))
    return _answer(statement, found)


def _since_ms(statement: Why, now_ms: int) -> int | None:
    """Raises SqlError for what is no moment."""
    if not statement.since:
        return None
    ms = moment_ms(statement.since)
    if ms is None:
        raise SqlError(f"{statement.since!r} is no moment", where="SINCE", fix="'2026-01-31 12:00:00' (UTC), or '-2h'")
    return ms if ms >= 0 else now_ms + ms


def _view(context: Context, name: str) -> CreateView:
    definition = context.catalog.get(name).materialized_view
    if definition is None:
        raise SqlError(
            f'"{name}" is not a materialized view', where="WHY", fix="SHOW VIEWS lists them; FROM table(x) shows rows"
        )
    return definition


def _in_rules(statement: Why, rules: Rules) -> Why:
    """The statement with its condition as the dialect of the view reads it."""
    if not statement.text or rules is Rules.TIMEPLUS:
        return statement
    again = parse_one(statement.text, rules, statement.arguments)
    assert isinstance(again, Why)
    return again


def _columns_read(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Topic → the columns that the view reads: in a record it looks at no other."""
    read: dict[str, dict[str, None]] = {}
    for fragment in plan.fragments:
        for scan in _scans(fragment):
            names = (*scan.columns, *scan.stream.primary_key, scan.stream.version)
            read.setdefault(scan.topic, {}).update(dict.fromkeys(name for name in names if name and name != SEQUENCE))
    return {topic: tuple(names) for topic, names in read.items()}


def _scans(fragment: Fragment) -> Sequence[TopicScan]:
    return fragment.dataflow.scans if fragment.engine is Engine.SPARK else (fragment.lookup_flow.scan,)


def _written(plan: Plan, terms: Sequence[Expr], inputs: TopicInputs) -> int:
    """How many such rows the topic of the view holds."""
    stream = plan.stream()
    names = tuple((column.name, column.name) for column in stream.schema.columns)
    scan = Scan(plan.name, stream.schema, stream.topic, stream.rules, names)
    return int(History(inputs, Ledger()).rows(scan, Demand(tuple(terms)), None).num_rows)


def _differing(plan: Plan, made: int, written: int) -> str:
    tables = [node for one in plan.fragments for node in walk(one.output) if isinstance(node, LookupTable)]
    cached = dict.fromkeys(node.name for node in tables if node.target is LookupTarget.DICTIONARY)
    refresh = "".join(f"; a worker may go by what it has cached: dovetail dictionary refresh {name}" for name in cached)
    return (
        f"{plan.stream().topic} holds {counted(written, 'row')} of these, and the records of now make {made:,}: the "
        f"view is about to write, or has answered when others were there{refresh}"
    )


def _answer(statement: Why, found: Traced) -> Rows:
    """The first lines of each input: of an aggregate there may be as many as its inputs have records."""
    count = found.rows.num_rows
    lines = _first_of_each(found.behind.drop_columns(["reason"]) if count else found.lost, _SHOWN)
    note = f"{statement.view} has no such row"
    if count:
        note = f"of {counted(count, 'row')} of {statement.view}"
        if statement.absent:
            note = f"the records {note}; why not: there {'is one' if count == 1 else 'are some'}"
    if more := (found.behind if count else found.lost).num_rows - lines.num_rows:
        note += f"; the first {_SHOWN} of each input, {more:,} more: a narrower condition, or SINCE, leaves fewer"
    return Rows(lines, note, _WIDE)


def _first_of_each(lines: pa.Table, most: int) -> pa.Table:
    """At most so many lines of each stream, in their order."""
    seen: Counter[str] = Counter()
    kept: list[int] = []
    for place, stream in enumerate(lines.column("stream").to_pylist()):
        seen[stream] += 1
        if seen[stream] <= most:
            kept.append(place)
    return lines.take(pa.array(kept, pa.int64()))
