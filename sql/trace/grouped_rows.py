"""Rows that depend on many: groups, the first rows of partitions, the last row of each key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dovetail.joins.aggregates.aggregation import Aggregation
from dovetail.joins.partitions.ordering import firsts, in_order, partitions_of
from dovetail.sql.expressions.evaluate import quoted, run
from dovetail.sql.expressions.group_calls import GroupCalls
from dovetail.sql.plan.nodes import Aggregate, Keyed, TopN
from dovetail.sql.trace.ledger import Ledger
from dovetail.sql.trace.traced_rows import LINEAGE, lineage_of, merged, with_lineage, without_lineage

_GROUP = "#group"


def grouped(node: Aggregate, rows: pa.Table) -> pa.Table:
    """A row for each group, made of all records of its rows."""
    values = without_lineage(rows)
    group, keys = partitions_of(values, node.by)
    count = keys.num_rows if node.by else 1
    made = keys if node.by else pa.table({_GROUP: pa.array([0])})
    folded = _folded(node.aggregations, values, group, count)
    for one in node.aggregations:
        made = made.append_column(pa.field(one.name, one.type), folded.column(one.name))
    if node.recomputed:
        recomputed = _calls(node)(values, group, count)
        for field, column in zip(recomputed.schema, recomputed.columns, strict=True):
            made = made.append_column(field, column)
    members: list[list[list[int]]] = [[] for _ in range(count)]
    for number, lineage in zip(group.tolist(), lineage_of(rows), strict=True):
        members[number].append(lineage)
    return with_lineage(made.select(node.schema.names), [merged(parts) for parts in members])


def _folded(aggregations: tuple[Aggregation, ...], rows: pa.Table, group: np.ndarray, count: int) -> pa.Table:
    calls = ", ".join(f"{_call(one)} AS {quoted(one.name)}" for one in aggregations)
    numbers = pa.table({_GROUP: np.arange(count, dtype=np.int64)})
    if not aggregations:
        return numbers
    sql = (
        f"SELECT n.{quoted(_GROUP)}, {calls} FROM numbers AS n LEFT JOIN members AS m ON n.{quoted(_GROUP)} = "
        f"m.{quoted(_GROUP)} GROUP BY n.{quoted(_GROUP)} ORDER BY n.{quoted(_GROUP)}"
    )
    members = rows.append_column(_GROUP, pa.array(group, pa.int64()))
    found = run(sql, {"numbers": numbers, "members": members})
    columns = {one.name: found.column(one.name).cast(one.type, safe=False) for one in aggregations}
    return pa.table(columns)


def _call(one: Aggregation) -> str:
    if not one.argument:
        return f"count(m.{quoted(_GROUP)})"
    return f"{one.fold.value}({'DISTINCT ' if one.distinct else ''}m.{quoted(one.argument)})"


def _calls(node: Aggregate) -> GroupCalls:
    schema = pa.schema([pa.field(name, call.type) for name, call in node.recomputed])
    arguments = tuple(dict.fromkeys(name for _, call in node.recomputed for name in call.columns))
    return GroupCalls(tuple((name, call.text) for name, call in node.recomputed), arguments, schema)


def ranked(node: TopN, rows: pa.Table, ledger: Ledger) -> pa.Table:
    """The rows that a partition lets through, and which rank the others have."""
    values = without_lineage(rows)
    partition, _ = partitions_of(values, node.by)
    order = in_order(values, partition, node.order)
    values, lineage = values.take(pa.array(order)), rows.column(LINEAGE).take(pa.array(order))
    ranks = firsts(values, partition[order], node.order, np.ones(len(order), dtype=np.int64), node.rank)
    kept = (ranks >= node.first) & (ranks <= node.last)
    for rank, numbers, stays in zip(ranks.tolist(), lineage.to_pylist(), kept.tolist(), strict=True):
        if not stays:
            ledger.lost(
                numbers, f"{node.rank.value} {rank} of its partition, and {node.first} to {node.last} are let through"
            )
    if node.number:
        values = values.append_column(node.number, pa.array(ranks, pa.int64()))
    return values.append_column(LINEAGE, lineage).filter(pa.array(kept))


def replaced(node: Keyed, rows: pa.Table, ledger: Ledger) -> pa.Table:
    """The last row of each key, by the arrival of its records."""
    keys = list(zip(*(rows.column(name).to_pylist() for name in node.primary_key), strict=True))
    lineage = lineage_of(rows)
    last: dict[tuple[object, ...], int] = {}
    for place, key in enumerate(keys):
        if key not in last or ledger.arrived(lineage[place]) >= ledger.arrived(lineage[last[key]]):
            last[key] = place
    for place, key in enumerate(keys):
        if last[key] != place:
            ledger.lost(lineage[place], "replaced by a later row of its key")
    return rows.take(pa.array(sorted(last.values()), pa.int64()))
