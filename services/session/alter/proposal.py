"""Another query for a view that is there: both planned, and their columns compared."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.wording import articled
from dovetail.services.session.alter.fitting_columns import column_changes, columns
from dovetail.services.session.context import Context
from dovetail.sql.catalog import Actual, Desired, Query, Relation
from dovetail.sql.catalog.written_streams import as_text
from dovetail.sql.plan.nodes import Scan
from dovetail.sql.plan.properties import walk
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.alterations import with_setting
from dovetail.sql.syntax.statements import CreateView

_OF_THE_OLD_QUERY = ("join_order", "delta_join")
"""Settings that were chosen for the joins of the query as it is."""


@dataclass(frozen=True)
class Proposal:
    """``definition`` and ``before``: the view as it is, and its plan; ``proposed`` and ``after`` as it would be."""

    relation: Relation
    query: Query
    definition: CreateView
    before: Plan
    proposed: CreateView
    after: Plan

    @property
    def name(self) -> str:
        return self.after.name

    @property
    def from_now_on(self) -> set[str]:
        """The topics that the new query would read from their ends on."""
        return {scan.topic for scan in scans_of(self.after) if scan.latest}

    @property
    def latest(self) -> set[str]:
        """Those of them that the view does not read yet."""
        return self.from_now_on - {scan.topic for scan in scans_of(self.before)}

    @property
    def columns(self) -> list[str]:
        """A line for each column that is added, dropped or changed."""
        return list(column_changes(self.before.stream(), self.after.stream()))

    @property
    def relation_after(self) -> Relation:
        """The view of the catalog, as it would be."""
        return replace(self.relation, ddl=self.proposed.text, written_text=as_text(self.after.stream()))


def proposal(context: Context, view: CreateView, where: str, *, keeps_settings: bool = True) -> Proposal:
    """``view`` as a statement proposes it, with the INTO that it has.

    keeps_settings  also with the settings that it has and the statement does not name

    Raises SqlError where the view could not have this query.
    """
    relation, definition = expect_materialized(context, view.name, where)
    for name, value in definition.settings.items() if keeps_settings else ():
        if name not in (*view.settings, *_OF_THE_OLD_QUERY):
            view = with_setting(view, name, value)
    proposed = replace(view, into=definition.into)
    after = plan_query(view.name, proposed, context.catalog)
    context.catalog.expect_acyclic(proposed, after.uses)
    if after.bounded or after.output is None:
        raise Unsupported(
            f'the new query of "{view.name}" reads table(x) only, so it would end at once',
            where=where,
            fix="read a stream in it",
        )
    before = plan_query(view.name, definition, context.catalog)
    return Proposal(relation, context.catalog.query(view.name), definition, before, proposed, after)


def gained_and_lost(changes: Changes) -> tuple[int, int]:
    """How many rows come, and how many go."""
    return int(changes.insertions.deltas.sum()), -int(changes.retractions.deltas.sum())


def columns_of(plan: Plan) -> dict[str, pa.DataType]:
    return columns(plan.stream())


def expect_materialized(context: Context, name: str, where: str = "ALTER VIEW") -> tuple[Relation, CreateView]:
    relation = context.catalog.get(name)
    definition = relation.definition
    if not isinstance(definition, CreateView):
        raise SqlError(f'"{name}" is {articled(relation.noun)}, not a view', where=where, fix="SHOW VIEWS lists views")
    if not definition.materialized:
        raise Unsupported(
            f'"{name}" is not materialized: it has no state of its own',
            where=where,
            fix="alter the materialized views that read it",
        )
    return relation, definition


def expect_running(query: Query) -> None:
    """Raises SqlError where it does not do its work: it would have to come to the end of a batch first."""
    if query.unmade or query.actual is Actual.PENDING:
        why, fix = "is just being made, restored or started", "wait until it is running: SHOW QUERIES shows it"
    elif query.desired is Desired.PAUSED:
        why, fix = "is paused", f"RESUME {query.view}, and alter it then"
    elif query.actual is Actual.FAILED:
        why = f"has failed: {query.error}"
        fix = f"fix that, RESUME {query.view}, and alter it then; or CREATE OR REPLACE .. WITH DATA, an empty topic"
    elif query.actual not in (Actual.RUNNING, Actual.PACKING):
        why, fix = f"is {query.actual.value}", "wait until it is running: SHOW QUERIES shows what it waits for"
    else:
        return
    raise SqlError(f'"{query.name}" {why}', where="ALTER VIEW", fix=fix)


def scans_of(plan: Plan) -> list[Scan]:
    return [node for one in plan.fragments for node in walk(one.output) if isinstance(node, Scan)]
