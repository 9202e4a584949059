"""What is said of a query whose operators other views keep too, by EXPLAIN and in the answer to CREATE.

Which views to compare is read of the catalog, by the shapes of what they keep: each was noted once, when the view was
made or, of a view that is older than the notes, when somebody first asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress

from dovetail.changelog.errors import DovetailError, SqlError, UnknownName
from dovetail.joins.host.activity import Activity
from dovetail.runtime.query_plan import plan_of
from dovetail.services.session.context import Context
from dovetail.sql.across_views.kept_elsewhere import KeptElsewhere, OtherView, kept_elsewhere, subplans_of, whole_of
from dovetail.sql.catalog import Query
from dovetail.sql.catalog.records import KeptShape
from dovetail.sql.compile.dataflow import stages
from dovetail.sql.engines import Engine
from dovetail.sql.fragments import Fragment
from dovetail.sql.plan.nodes import Node
from dovetail.sql.plan.state.shapes import shape
from dovetail.sql.planner import Plan

_EXPLAINED, _CREATED = 12, 2
"""So many views, of those whose shapes are met, are planned and compared."""
_NOTED_AT_ONCE = 20
"""So many views of which nothing is noted yet are planned for that: those of a catalog that is older than the notes."""


def explained_elsewhere(context: Context, plan: Plan) -> tuple[str, ...]:
    """For EXPLAIN: all that is known, a paragraph for each operator."""
    _note_older(context)
    found, left = _elsewhere(context, plan, _EXPLAINED)
    more = (f"{left} more views may keep some of it, and were not compared",) if found and left else ()
    return (*(one.readable for one in found), *more)


def created_elsewhere(context: Context, plan: Plan) -> tuple[str, ...]:
    """For the answer to CREATE: a line for each operator. What the new view keeps is noted. Raises nothing: the view
    is there already.
    """
    with suppress(DovetailError):
        context.catalog.note_subplans({one.fingerprint: _shapes(plan, one) for one in plan.fragments})
        _note_older(context)
        found, _ = _elsewhere(context, plan, _CREATED)
        return tuple(one.short(plan.name) for one in found)
    return ()


def _elsewhere(context: Context, plan: Plan, most: int) -> tuple[list[KeptElsewhere], int]:
    """What was found among ``most`` views, and how many more there are to look at."""
    wanted = {one.shape for fragment in plan.fragments for one in _shapes(plan, fragment)}
    if not wanted:
        return [], 0
    names = [name for name in context.catalog.views_keeping(wanted) if name != plan.name]
    others = [view for name in names[:most] if (view := _view(context, name)) is not None]
    return kept_elsewhere(plan, others, context.catalog), max(0, len(names) - most)


def _note_older(context: Context) -> None:
    """Note what the views keep of which that is not noted yet."""
    kept: dict[str, Collection[KeptShape]] = {}
    for name in context.catalog.views_not_noted()[:_NOTED_AT_ONCE]:
        planned = _planned(context, name)
        for query in _fragments(context, name):
            of_plan = [one for one in planned.fragments if one.name == query.name] if planned is not None else []
            kept[query.fingerprint] = [one for fragment in of_plan for one in _shapes(planned, fragment)]
    if kept:
        # Two sessions may note the same view at once: either is right.
        with suppress(SqlError):
            context.catalog.note_subplans(kept)


def _shapes(plan: Plan | None, fragment: Fragment) -> list[KeptShape]:
    """The shapes of what a fragment of ``plan`` keeps."""
    if plan is None or fragment.engine is not Engine.SPARK:
        return []
    whole = whole_of(plan)
    found = ((one, shape(one)) for one in subplans_of(fragment.output))
    return [KeptShape(form, whole is not None and whole.node == one) for one, form in found if form]


def _view(context: Context, name: str) -> OtherView | None:
    """A view at work; None for one that cannot be planned any more, which is no matter of who asks."""
    plan, definition = _planned(context, name), context.catalog.find(name)
    view = None if definition is None else definition.materialized_view
    if plan is None or view is None:
        return None
    held = tuple(one for query in _fragments(context, name) for one in _held(query, plan))
    return OtherView(name, plan, held, into=view.into is not None)


def _planned(context: Context, name: str) -> Plan | None:
    queries = _fragments(context, name)
    try:
        return plan_of(queries[-1], context.catalog) if queries else None
    except DovetailError:
        return None


def _fragments(context: Context, name: str) -> list[Query]:
    with suppress(UnknownName):
        return context.catalog.fragments(name)
    return []


def _held(query: Query, plan: Plan) -> Iterator[tuple[Node, int]]:
    """The operators of a fragment at work, with the rows that they hold."""
    fragment = next((one for one in plan.fragments if one.name == query.name), None)
    if fragment is None or fragment.engine is not Engine.SPARK:
        return
    activity = Activity.read(query.progress.get("activity", {}))
    for number, operator in enumerate(stages(fragment.output).operators):
        yield operator, sum(held.rows for held in activity.parts_of(number).values())
