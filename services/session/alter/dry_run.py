"""ALTER VIEW v AS SELECT .. DRY RUN: the rows that another query of a view would add, and those it would take back.

Both queries are computed as batches over their inputs up to the same offsets. Nothing is started or written, the view
goes on meanwhile, and so do its producers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.formats import decimal_text
from dovetail.changelog.schema import WIRE_DELTA, Kind
from dovetail.changelog.wording import counted
from dovetail.services.session.alter.proposal import Proposal, columns_of, gained_and_lost, proposal
from dovetail.services.session.context import Context
from dovetail.services.session.generated import ensure_clock
from dovetail.services.session.input_progress import InputProgress, input_topics
from dovetail.services.session.result import Rows
from dovetail.services.session.verification.batch import batch_rows, expect_recomputable, parts_of
from dovetail.services.session.verification.left_out import LeftOut, left_out
from dovetail.sql.planner import Plan
from dovetail.sql.syntax.statements import CreateView, DryRun

_SAMPLE = 20
_WHERE = "ALTER VIEW .. DRY RUN"


def dry_run(context: Context, statement: DryRun) -> Rows:
    """A sample of the changes, each with its ``_tp_delta``; the note counts them all.

    Raises Unsupported for a query, old or new, whose rows depend on the order of arrival.
    """
    proposed = proposal(context, statement.view, _WHERE)
    ensure_clock(context, proposed.after)
    for plan in (proposed.before, proposed.after):
        expect_recomputable(plan, _WHERE)
    context.say(f"{proposed.name}: computing both queries from {', '.join(_reads(proposed))}")
    effect = _effect(context, proposed)
    for line in (*proposed.columns, *effect.doubts):
        context.say(line)
    sample = effect.sample(_SAMPLE)
    shown = f"; {sample.num_rows:,} of {counted(len(effect.changes), 'change')} shown" if sample.num_rows else ""
    return Rows(sample, f"{effect.summary}{shown}")


@dataclass(frozen=True)
class Effect:
    """``changes``, consolidated, turn the ``rows`` rows of the view into those of its new query.

    key  the columns that tell the rows of both apart; none where only whole rows do
    """

    view: str
    rows: int
    changes: Changes
    key: tuple[str, ...]
    doubts: tuple[str, ...]

    @property
    def summary(self) -> str:
        if not len(self.changes):
            return f"{self.view} would keep its {counted(self.rows, 'row')}"
        gained, lost = gained_and_lost(self.changes)
        what = f"{self.view} would gain {counted(gained, 'row')} and lose {lost:,} of its {self.rows:,}"
        return f"{what}: {self._by_key()}" if self.key else what

    def _by_key(self) -> str:
        """A key with rows on both sides stays, with another row."""
        keys = self.changes.table.select([*self.key, DELTA]).group_by(list(self.key))
        ends = keys.aggregate([(DELTA, "min"), (DELTA, "max")])
        taken, added = pc.less(ends[f"{DELTA}_min"], 0), pc.greater(ends[f"{DELTA}_max"], 0)
        changed = pc.sum(pc.and_(taken, added)).as_py() or 0
        new, gone = ((pc.sum(side).as_py() or 0) - changed for side in (added, taken))
        return f"{counted(new, 'key')} new, {changed:,} with another row, {gone:,} gone"

    def sample(self, count: int) -> pa.Table:
        """The first changes in the order of their keys, what a row was before what it becomes."""
        table = self.changes.table
        order = [name for name in self.key or self.changes.rows.column_names if _is_sortable(table[name].type)]
        found = table.sort_by([(name, "ascending") for name in (*order, DELTA)]).slice(0, count)
        return found.rename_columns([*self.changes.rows.column_names, WIRE_DELTA])


def _effect(context: Context, proposed: Proposal) -> Effect:
    ends = {topic: context.topics.quiescent_ends(topic) for topic in _inputs(proposed.before, proposed.after)}
    processed = _with_starts(InputProgress.of(proposed.query), {topic: ends[topic] for topic in proposed.latest})
    out = left_out(context, proposed.before, proposed.query)

    def rows(plan: Plan, definition: CreateView) -> pa.Table:
        parts = parts_of(plan, processed, {topic: ends[topic] for topic in _inputs(plan)}, out)
        return batch_rows(context, plan, definition, parts, out).select(list(columns_of(plan)))

    after = _typed(rows(proposed.after, proposed.proposed), columns_of(proposed.after))
    before = _typed(rows(proposed.before, proposed.definition), columns_of(proposed.after))
    changes = Changes.between(before, after)
    return Effect(proposed.name, before.num_rows, changes, _common_key(proposed), _doubts(proposed, changes, out))


def _doubts(proposed: Proposal, changes: Changes, out: LeftOut) -> tuple[str, ...]:
    doubts = list(out.doubts)
    if out.late or out.dead_letters:
        doubts.append(
            f"{counted(out.late_count, 'row')} came late and {counted(out.dead_letters, 'record')} could not be used: "
            "neither query counts them"
        )
    if proposed.before.dataflow.waits or proposed.after.dataflow.waits:
        doubts.append("rows that wait for a watermark are counted as if it had passed")
    if not changes.only_insertions and proposed.before.stream().schema.kind is Kind.APPEND:
        doubts.append(f"{proposed.name} is append-only: its topic could not take the rows back")
    return tuple(doubts)


def _with_starts(processed: InputProgress, starts: Mapping[str, PartitionOffsets]) -> InputProgress:
    return replace(processed, first_offsets={**starts, **processed.first_offsets})


def _inputs(*plans: Plan) -> list[str]:
    return sorted({topic for plan in plans for topic in input_topics(plan)})


def _reads(proposed: Proposal) -> list[str]:
    return list(dict.fromkeys((*proposed.before.reads, *proposed.after.reads)))


def _typed(rows: pa.Table, columns: Mapping[str, pa.DataType]) -> pa.Table:
    """The rows in ``columns``: one that is not there is NULL, and so is one whose values do not fit the type."""
    return pa.table({name: _column(rows, name, kind) for name, kind in columns.items()})


def _column(rows: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    if name in rows.column_names:
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return decimal_text.cast(rows.column(name), kind)
    return pa.chunked_array([pa.nulls(rows.num_rows, kind)])


def _common_key(proposed: Proposal) -> tuple[str, ...]:
    key = proposed.after.stream().schema.primary_key
    same = proposed.before.stream().schema.primary_key == key
    kinds = columns_of(proposed.after)
    return key if same and all(name in kinds and _is_sortable(kinds[name]) for name in key) else ()


def _is_sortable(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind) and kind != pa.month_day_nano_interval()
