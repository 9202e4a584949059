"""A view computed again as a batch, and compared with what its topic holds."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from broker.reader import read_topic
from broker.topics import PartitionOffsets
from changelog.changes import DELTA, Changes
from changelog.errors import SqlError, Unsupported
from services.session.contents import Offsets, answer
from services.session.context import Context
from services.session.input_progress import InputProgress, await_reading, await_upstream, input_ends
from sql.fragments import Engine
from sql.planner import Plan, plan_query, recompute
from sql.syntax.statements import CreateView

DIFFERENCE = "difference"
TIMES = "times"
_ATTEMPTS = 10


@dataclass(frozen=True)
class Verification:
    """``difference``: rows that the topic lacks or has too many of, after the columns ``difference`` and ``times``."""

    view: str
    expected: int
    found: int
    difference: pa.Table

    @property
    def holds(self) -> bool:
        return not self.difference.num_rows


def verify(context: Context, view: str) -> Verification:
    """Compare the net content of a view's topic with its SELECT over the contents of its inputs.

    Both as of the same moment: the query has read its inputs to their ends, and these stand still meanwhile. Raises
    Unsupported for a view whose rows depend on the order of arrival.
    """
    plan = _view_plan(context, view)
    processed, ends, written = _standing_still(context, plan)
    context.say(f"{view}: recomputing from {', '.join(plan.reads)}")
    first_offsets: Offsets = {topic: {p: processed.start(topic, p) for p in offsets} for topic, offsets in ends.items()}
    definition = context.catalog.get(view).definition
    assert isinstance(definition, CreateView)
    expected = answer(context, recompute(view, definition, context.catalog), first_offsets, ends)
    stream = plan.stream()
    names = tuple(column.name for column in stream.schema.columns)
    columns = tuple(dict.fromkeys((*names, *stream.schema.primary_key)))
    found = read_topic(context.brokers, stream.schema, stream.topic, written, columns=columns).rows.select(names)
    return Verification(
        view, expected.num_rows, found.num_rows, difference(expected.cast(found.schema, safe=False), found)
    )


def _view_plan(context: Context, view: str) -> Plan:
    definition = context.catalog.get(view).definition
    if not isinstance(definition, CreateView) or not definition.materialized:
        raise SqlError(f'"{view}" is not a materialized view', where="verify", fix="SHOW VIEWS lists them")
    plan = plan_query(view, definition, context.catalog)
    if _joined_once(plan):
        raise Unsupported(
            f'each row of "{view}" was joined once, with what was there when it came: no batch can tell what that was',
            where="verify",
            fix="views whose joins keep both sides can be verified",
        )
    return plan


def _joined_once(plan: Plan) -> bool:
    """Whether some rows were joined with what was there when they came, and are not changed later."""
    return any(fragment.engine is Engine.FAUST or fragment.dataflow.answers_once for fragment in plan.fragments)


def _standing_still(context: Context, plan: Plan) -> tuple[InputProgress, Offsets, PartitionOffsets]:
    """What the query has read, to its inputs' ends, and where its output ended when nothing was left to write."""
    for _ in range(_ATTEMPTS):
        await_upstream(context, plan)
        ends = input_ends(context, plan)
        processed = await_reading(context, plan.name, ends)
        written = context.topics.settled_ends(plan.stream().topic)
        if input_ends(context, plan) == ends:
            return processed, ends, written
    raise SqlError(
        f'the inputs of "{plan.name}" keep growing, so there is no moment at which both sides could be compared',
        where=", ".join(plan.reads),
        fix="stop the producers for a moment, then verify again",
    )


def difference(expected: pa.Table, found: pa.Table) -> pa.Table:
    """The rows whose numbers differ, as multisets: ``missing`` from ``found``, or ``too many`` in it."""
    net = Changes.concat([Changes.of(expected), Changes.of(found, -1)]).consolidated()
    deltas = net.table.column(DELTA)
    side = pc.if_else(pc.greater(deltas, 0), "missing", "too many")
    rows = net.rows
    return pa.table([side, pc.abs(deltas), *rows.columns], names=[DIFFERENCE, TIMES, *rows.column_names])
