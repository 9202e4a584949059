"""The rows that a view's SELECT has as a batch, over a part of its inputs."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import SEQUENCE
from dovetail.services.session.contents import Offsets, Part, relation_rows
from dovetail.services.session.context import Context
from dovetail.services.session.input_progress import InputProgress
from dovetail.services.session.verification.late_columns import without_late
from dovetail.services.session.verification.left_out import LeftOut
from dovetail.sql.engines import Engine
from dovetail.sql.planner import Plan, recompute
from dovetail.sql.syntax.statements import CreateView


class Undecidable(Unsupported):
    """Whether a view holds cannot be told: no batch over its inputs need have its rows."""


def batch_rows(
    context: Context, plan: Plan, definition: CreateView, parts: Mapping[str, Part], out: LeftOut
) -> pa.Table:
    """The rows of ``definition``, of which ``plan`` is the plan, over ``parts`` and without what was left out of them.

    parts  by topic of the inputs, as ``parts_of`` has them
    """
    query = recompute(plan.name, definition, context.catalog)
    late = {scan.stream.name: rows for scan in plan.dataflow.scans if (rows := out.late.get(scan.name)) is not None}
    tables = {name: relation_rows(context, name, parts) for name in query.relations}
    return query.run({name: without_late(rows, late[name]) if name in late else rows for name, rows in tables.items()})


def parts_of(plan: Plan, processed: InputProgress, ends: Offsets, out: LeftOut) -> dict[str, Part]:
    """By topic of ``ends``: from where the query has begun to read up to these, in the columns that it reads."""
    parts = {}
    for topic, offsets in ends.items():
        starts = {partition: processed.start(topic, partition) for partition in offsets}
        scans = [scan for scan in plan.dataflow.scans if scan.topic == topic]
        read = [name for scan in scans for name in (*scan.columns, *scan.stream.primary_key, scan.stream.version)]
        columns = tuple(dict.fromkeys(name for name in read if name and name != SEQUENCE))
        parts[topic] = Part(starts, offsets, columns, out.places.get(topic, {}))
    return parts


def expect_recomputable(plan: Plan, where: str) -> None:
    """Raises Undecidable for a query whose rows depend on the order of arrival."""
    if any(fragment.engine is Engine.FAUST or fragment.dataflow.answers_once for fragment in plan.fragments):
        raise Undecidable(
            f'each row of "{plan.name}" was joined once, with what was there when it came: no batch can tell what '
            "that was",
            where=where,
            fix="views whose joins keep both sides can be computed again",
        )
