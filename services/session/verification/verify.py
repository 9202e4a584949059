"""A view computed again as a batch, and compared with what its topic holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.registry.client import schemas_of
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import Kind
from dovetail.changelog.wording import counted
from dovetail.services.session.contents import Offsets
from dovetail.services.session.context import Context
from dovetail.services.session.input_progress import InputProgress, await_reading, await_upstream, input_ends
from dovetail.services.session.verification.batch import Undecidable, batch_rows, expect_recomputable, parts_of
from dovetail.services.session.verification.left_out import LeftOut, left_out
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.relations import Stream

DIFFERENCE = "difference"
TIMES = "times"
_ATTEMPTS = 10


class Verdict(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    UNDECIDED = "cannot be decided"
    """It differs, and it is not known whether more than what the query has left out is behind that."""


@dataclass(frozen=True)
class Verification:
    """``difference``: rows that the topic lacks or has too many of, after the columns ``difference`` and ``times``.

    late, dead_letters  rows of the inputs that were late, and records that were dead-lettered: not counted
    doubts              what the query may have left out beside them, in words
    """

    view: str
    expected: int
    found: int
    difference: pa.Table
    late: int = 0
    dead_letters: int = 0
    doubts: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return self.verdict is Verdict.HOLDS

    @property
    def verdict(self) -> Verdict:
        if not self.difference.num_rows:
            return Verdict.HOLDS
        return Verdict.UNDECIDED if self.doubts else Verdict.DIFFERS


def verify(context: Context, view: str) -> Verification:
    """Compare the net content of a view's topic with its SELECT over the contents of its inputs.

    Both as of the same moment: the query has read its inputs to their ends, and these stand still meanwhile. Raises
    Undecidable for a view whose rows depend on the order of arrival, and where they keep growing.
    """
    plan = _view_plan(context, view)
    processed, ends, written = _at_rest(context, plan)
    context.say(f"{view}: recomputing from {', '.join(plan.reads)}")
    out = left_out(context, plan, context.catalog.query(view))
    definition = context.catalog.get(view).materialized_view
    assert definition is not None
    expected = batch_rows(context, plan, definition, parts_of(plan, processed, ends, out), out)
    stream = plan.stream()
    names = tuple(column.name for column in stream.schema.columns)
    columns = tuple(dict.fromkeys((*names, *stream.schema.primary_key)))
    found = context.read(stream.schema, stream.topic, written, columns=columns).rows.select(names)
    if plan.dataflow.waits:
        out = out.doubted(f"rows that wait for a watermark are not in {stream.topic} yet")
    held = _held(context, stream, names, out)
    if held is None:
        out = out.doubted(f"rows were too large for {stream.topic}: {counted(out.made.num_rows, 'record')}")
    net = difference(expected.select(names).cast(found.schema, safe=False), found, held)
    return Verification(view, expected.num_rows, found.num_rows, net, out.late_count, out.dead_letters, out.doubts)


def _held(context: Context, stream: Stream, names: tuple[str, ...], out: LeftOut) -> pa.Table | None:
    """The changes that the output topic did not take; None where they do not add up to rows.

    Which row of a key stands is told by the order of all its records, and that among the letters is another.
    """
    if out.made.num_rows and stream.schema.kind not in (Kind.APPEND, Kind.CHANGELOG):
        return None
    decoder = Decoder(stream.schema, names, schemas_of(context.brokers))
    return decoder.decode(out.made).rows.select([*names, DELTA])


def _view_plan(context: Context, view: str) -> Plan:
    definition = context.catalog.get(view).materialized_view
    if definition is None:
        raise SqlError(f'"{view}" is not a materialized view', where="verify", fix="SHOW VIEWS lists them")
    plan = plan_query(view, definition, context.catalog)
    expect_recomputable(plan, "verify")
    return plan


def _at_rest(context: Context, plan: Plan) -> tuple[InputProgress, Offsets, PartitionOffsets]:
    """What the query has read, to its inputs' ends, and where its output ended when nothing was left to write."""
    for _ in range(_ATTEMPTS):
        await_upstream(context, plan)
        ends = input_ends(context, plan)
        processed = await_reading(context, plan.name, ends)
        written = context.topics.quiescent_ends(plan.stream().topic)
        if input_ends(context, plan) == ends:
            return processed, ends, written
    raise Undecidable(
        f'the inputs of "{plan.name}" keep growing, so there is no moment at which both sides could be compared',
        where=", ".join(plan.reads),
        fix="stop the producers for a moment, then verify again",
    )


def difference(expected: pa.Table, found: pa.Table, held: pa.Table | None = None) -> pa.Table:
    """The rows whose numbers differ, as multisets: ``missing`` from ``found``, or ``too many`` in it.

    held   changes that are not in ``found``, and nevertheless no difference
    """
    net = Changes.between(found, expected)
    if held is not None and held.num_rows:
        net = Changes.concat([net, Changes(held).negated()]).consolidated()
    deltas = net.table.column(DELTA)
    side = pc.if_else(pc.greater(deltas, 0), "missing", "too many")
    rows = net.rows
    return pa.table([side, pc.abs(deltas), *rows.columns], names=[DIFFERENCE, TIMES, *rows.column_names])
