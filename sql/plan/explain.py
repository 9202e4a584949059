"""EXPLAIN: a plan as a tree of lines, one for each node. The same text for the same query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import pyarrow as pa

from dovetail.joins.aggregates.aggregation import Fold
from dovetail.joins.dataflow.lookup import LookupTarget
from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.joins.partitions.ordering import Rank, SortKey
from dovetail.sql.expressions.predicates import conjunction
from dovetail.sql.plan.joins.method import current
from dovetail.sql.plan.nodes import (
    Aggregate,
    ArrayJoin,
    DeltaJoin,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    MultiwayJoin,
    Node,
    Output,
    Over,
    Scan,
    Sessions,
    SetOperation,
    Static,
    StaticJoin,
    TopN,
    UnionAll,
    Window,
    declared_type,
)
from dovetail.sql.plan.properties import changes, grows, input_of, inputs_of, retracts, watermark_at
from dovetail.sql.plan.state.common_subplans import Met, aliases
from dovetail.sql.plan.state.delta_steps import delta_steps
from dovetail.sql.plan.state.held_twice import compared, held_again
from dovetail.sql.plan.state.kept_with import kept_with
from dovetail.sql.plan.state.unbounded_groups import unbounded, unbounded_partitions, unbounded_set
from dovetail.sql.plan.time_text import length_text, span_text, sum_text, watermark_text


def explain(plan: Output | Node) -> str:
    """The node's line, and below it its inputs, drawn as branches."""
    return "\n".join(_lines(plan, held_again(plan), Met.none_of(plan)))


def _lines(node: Output | Node, again: Mapping[str, tuple[str, ...]], met: Met) -> list[str]:
    """``again``: under which other aliases the rows of a scan are kept."""
    if met.again(node):
        return [line_again(node)]
    held = again.get(node.alias, ()) if isinstance(node, Scan) else ()
    text = "  ".join([line(node), *([f"kept twice: also as {', '.join(held)}"] if held else [])])
    return [text, *branches([_lines(below, again, met) for below in node.inputs])]


def branches(inputs: Sequence[list[str]]) -> list[str]:
    """The lines of the inputs of a node, as they are drawn below its own."""
    lines = []
    for position, (head, *rest) in enumerate(inputs, start=1):
        last = position == len(inputs)
        lines.append(("└─ " if last else "├─ ") + head)
        lines += [("   " if last else "│  ") + text for text in rest]
    return lines


def line_again(node: Output | Node) -> str:
    """Of an operator that stands above already: ``Keyed  key=l.id  read and kept with l``."""
    return "  ".join([*line(node).split("  ")[:2], f"read and kept with {aliases(node)}"])


def line(node: Output | Node) -> str:
    """What the node does, of what, with which state and on which engine."""
    match node:
        case Output():
            return _output(node)
        case Scan() | Static() | LookupTable():
            return _leaf(node)
        case Keyed():
            return _keyed(node)
        case Map() | Window() | ArrayJoin():
            return _row_by_row(node)
        case Sessions() | Aggregate():
            return _sessions(node) if isinstance(node, Sessions) else _aggregate(node)
        case Join() | MultiwayJoin() | DeltaJoin():
            return _join(node) if isinstance(node, Join) else _chain(node)
        case UnionAll() | SetOperation() | Over() | TopN():
            return _of_rows(node)
        case StaticJoin():
            return _static_join(node)
        case LookupJoin():
            return _lookup_join(node)
        case _:
            assert_never(node)


def _output(node: Output) -> str:
    forms = {"upsert": "Upserts", "debezium": "Envelopes"}
    kind = forms.get(node.format, "Changelog") if node.updating or node.marked else "Append"
    emits = "+1,-1" if node.updating else "+1"
    key = f"key={','.join(node.key_names)} ({_of_key(node)})" if node.key else "key=none"
    exchange = ["exchange by key"] if node.exchanged else []
    columns = f"columns={','.join(name for name, _ in node.columns)}"
    period = [f"every {length_text(node.period_ms, pa.timestamp('ms'))}"] if node.period_ms else []
    hybrid = [node.hybrid.readable] if node.hybrid is not None else []
    told = [f"tells the watermark of {','.join(name for name, _ in node.clock.columns)}"] if node.clock else []
    emission = [f"emits={emits}", *period, *exchange, *hybrid, *told]
    return "  ".join([f"{kind} {node.name}", f"topic={node.topic}", key, columns, *emission])


def _of_key(node: Output) -> str:
    """Whether rows can share the key, and what of it only the key shows."""
    hidden = {name for name, _ in node.hidden}
    unseen = [shown for name, shown in zip(node.key, node.key_names, strict=True) if name in hidden]
    named = "" if len(unseen) == len(node.key) else f"{','.join(unseen)} "
    return ", ".join([*([f"{named}hidden"] if unseen else []), "unique" if node.unique else "not unique"])


def _leaf(node: Scan | Static | LookupTable) -> str:
    match node:
        case Scan():
            return _scan(node)
        case Static():
            return f"static {node.alias}  table({', table('.join(node.relations)}), read once at the start"
        case LookupTable():
            return _lookup_table(node)
        case _:
            assert_never(node)


def _scan(node: Scan) -> str:
    parts = [f"scan {node.stream.name}" + (f" as {node.alias}" if node.alias != node.stream.name else "")]
    parts += [f"topic={node.topic}", f"kind={node.stream.kind.value}"]
    if node.stream.primary_key:
        parts.append(f"key={','.join(node.stream.primary_key)}")
    if node.stream.version:
        stands = "first" if node.stream.first_stays else "last"
        parts.append(f"version={node.stream.version} (of equals the {stands})")
    if node.records is not None:
        parts.append("versions: every record" + (", deletes too" if node.deletes else " but deletes"))
    parts.append(f"columns={','.join(name for _, name in node.columns) or 'none'}")
    if node.where is not None:
        parts.append(f"where {node.where.readable}")
    if node.watermark is not None:
        parts.append(watermark_text(node.watermark, declared_type(node.stream, node.watermark.column)))
    parts.append(f"from={'latest' if node.latest else node.seek or 'earliest'}")
    parts += [f"read and kept with {node.kept_with}"] if node.kept_with else []
    return "  ".join(parts)


def _lookup_table(node: LookupTable) -> str:
    kinds = {
        LookupTarget.DICTIONARY: "dictionary",
        LookupTarget.EXTERNAL: "external table",
        LookupTarget.STREAM: "rows of",
    }
    parts = [f"{kinds[node.target]} {node.name}" + (f" as {node.alias}" if node.alias != node.name else "")]
    parts += [node.kept] if node.kept else []
    parts += [f"key={','.join(node.primary_key)}"] if node.primary_key else []
    return "  ".join([*parts, f"columns={','.join(name for _, name in node.columns) or 'none'}"])


def _keyed(node: Keyed) -> str:
    order = "  in order of arrival" if node.by_arrival else ""
    state = "state: the current row of each key, until it is deleted"
    return f"Keyed  key={','.join(node.primary_key)}{order}  {state}  engine=spark"


def _row_by_row(node: Map | Window | ArrayJoin) -> str:
    match node:
        case Map():
            return _map(node)
        case Window():
            return f"Window {'tumble' if node.tumbles else 'hop'}  {node.time}  size {extent(node)}  state: none"
        case ArrayJoin():
            return _array_join(node)
        case _:
            assert_never(node)


def _map(node: Map) -> str:
    parts = ["Map"] + ([f"where {node.where.readable}"] if node.where is not None else [])
    computed = [
        f"{name} = {expr.readable}" + (f" as {expr.type}" if expr.plain is not None else "")
        for name, expr in node.columns
        if expr.plain is None or (name.startswith("__") and expr.plain != name)
    ]
    parts += computed if computed or node.where is not None else [f"columns={','.join(node.schema.names)}"]
    return "  ".join(parts)


def extent(window: Window) -> str:
    """``60 s``, of HOP ``60 s every 10 s``."""
    size, slide = (length_text(ms, pa.timestamp("ms")) for ms in (window.size_ms, window.slide_ms))
    return size if window.tumbles else f"{size} every {slide}"


def _array_join(node: ArrayJoin) -> str:
    arrays = [f"{name} = {array.readable}" for name, array in node.arrays]
    return "  ".join([f"ArrayJoin{' left' if node.left else ''}", ", ".join(arrays), "state: none"])


def _sessions(node: Sessions) -> str:
    gap, ms = length_text(node.gap_ms, pa.timestamp("ms")), pa.timestamp("ms")
    parts = ["Sessions", f"by={','.join(node.by) or 'none'}", node.time, f"gap {gap}"]
    parts += [f"at most {length_text(node.longest_ms, ms)}"] if node.longest_ms is not None else []
    parts += ["every row once, when its session has ended"] if node.closed else []
    state = "the rows of open sessions" if node.closing is not None else "all rows"
    state += ", the current rows" if compared(node.input) else ""
    if node.closing is None and grows(node.input):
        state += ", unbounded: no watermark tells when a session has ended"
    return "  ".join([*parts, f"state: {state}", "engine=spark"])


def _join(node: Join) -> str:
    inputs = inputs_of(node)
    written = conjunction(node.on)
    on = f"on={_equalities(node) or 'every row'}" if written is None else f"on {written.readable}"
    parts = [f"{node.how.operator} {node.kind.value}", *([f"as {node.mark}"] if node.mark else []), on]
    parts += node.how.conditions(inputs)
    if node.residual is not None:
        parts.append(f"and {node.residual.readable}")
    if node.pad == Pad.DEFAULT:
        parts.append("unmatched=default")
    both = f"of both sides, once, {current(inputs.left)}"
    parts += [*node.how.emission(), f"state: {both if kept_with(node.right) else node.how.state(node.kind, inputs)}"]
    parts += _limits(node)
    return "  ".join([*parts, "engine=spark"])


def _equalities(join: Join) -> str:
    safe = join.null_safe or (False,) * len(join.keys)
    return ",".join(
        f"{left}{' is ' if same else '='}{right}" for (left, right), same in zip(join.keys, safe, strict=True)
    )


def _multiway(node: MultiwayJoin) -> str:
    """``Multiway  inner a.k=b.k  left b.k=c.k  state: of each input the current rows``"""
    parts = ["Multiway"]
    for link in node.links:
        parts.append(f"{link.kind.value} {_equalities(link)}")
        parts += [f"and {link.residual.readable}"] if link.residual is not None else []
        parts += ["unmatched=default"] if link.kind is JoinKind.LEFT and link.pad is Pad.DEFAULT else []
    kept = [current(input_of(one)) for one in node.inputs if not kept_with(one)]
    each = f"of each input {kept[0]}"
    if len(set(kept)) > 1:
        each = "; ".join(f"input {place} {rows}" for place, rows in enumerate(kept, start=1))
    parts.append(f"state: {each}")
    parts += _limits(node.chain)
    return "  ".join([*parts, "engine=spark"])


def _chain(node: MultiwayJoin | DeltaJoin) -> str:
    return _multiway(node) if isinstance(node, MultiwayJoin) else _delta_join(node)


def _delta_join(node: DeltaJoin) -> str:
    """``Delta  inner a.x=b.x  inner b.y=c.y  path a, b, c  ..  state: step 1 a by a.x, b by b.x; ..``"""
    parts = ["Delta"]
    for link in node.links:
        parts.append(f"inner {_equalities(link)}")
        parts += [f"and {link.residual.readable}"] if link.residual is not None else []
    names = [aliases(one) or str(place) for place, one in enumerate(node.inputs, start=1)]
    parts += ["path " + ", ".join(names[place] for place in path) for path in node.paths]
    steps = (", ".join(f"{names[copy.input]} by {','.join(copy.keys)}" for copy in step.copies)
             for step in delta_steps(node))  # fmt: skip
    parts.append("state: " + "; ".join(f"step {number} {copies}" for number, copies in enumerate(steps, start=1)))
    parts += _limits(node.chain)
    return "  ".join([*parts, "engine=spark"])


def _limits(join: Join) -> list[str]:
    limits = [] if join.max_buffered_bytes is None else [f"max_buffered_bytes={join.max_buffered_bytes}"]
    most = join.max_rows_per_key
    return limits if most is None else [*limits, f"max_fan_out={most} rows of a key on a side, dead letters beyond"]


def _of_rows(node: UnionAll | SetOperation | Over | TopN) -> str:
    match node:
        case UnionAll():
            return _union(node)
        case SetOperation():
            return _set_operation(node)
        case Over() | TopN():
            return _partitions(node)
        case _:
            assert_never(node)


def _aggregate(node: Aggregate) -> str:
    parts = ["Aggregate", f"by={','.join(node.by) or 'none'}"]
    made = [*(one.name for one in node.aggregations), *(name for name, _ in node.gathered)]
    parts += [", ".join(made)] if made else []
    parts += ["every row once, when its window is closed"] if node.closed else []
    return "  ".join([*parts, f"state: {_groups_state(node)}", "engine=spark"])


def _union(node: UnionAll) -> str:
    kept = any(map(compared, node.parts))
    parts = ["UnionAll", f"columns={','.join(node.schema.names)}"]
    parts += [f"passes on the watermark of {node.clock}"] if node.clock else []
    return "  ".join([*parts, f"state: {'the current rows' if kept else 'none'}", "engine=spark"])


def _set_operation(node: SetOperation) -> str:
    state = ["each row once, with how often it is on either side"]
    state += ["the current rows"] if any(map(compared, node.inputs)) else []
    growing = unbounded_set(node)
    bound = f", unbounded: {growing}" if growing else ""
    parts = [f"SetOperation {node.kind.value}", f"columns={','.join(node.by)}", f"state: {', '.join(state)}{bound}"]
    return "  ".join([*parts, "engine=spark"])


def _partitions(node: Over | TopN) -> str:
    by = f"by={','.join(node.by) or 'none'}"
    if isinstance(node, TopN):
        order = ", ".join(map(_term, node.order)) or "none"
        bounds = f"{node.rank.value} {node.first} to {node.last}" + (f" as {node.number}" if node.number else "")
        parts = ["TopN", by, f"order={order}", bounds, f"state: {_first_rows_state(node)}"]
    else:
        calls = ", ".join(call.readable.lower() for _, call in node.calls)
        parts = ["Over", by, calls, f"state: {_partition_rows(node.input)}, with their values"]
    return "  ".join([*parts, "engine=spark"])


def _term(key: SortKey) -> str:
    return f"{key.column}{' desc' if key.descending else ''} nulls {'first' if key.nulls_first else 'last'}"


def _first_rows_state(node: TopN) -> str:
    """Of rows that stay those behind the last that is let through are of no use any more."""
    if retracts(node.input):
        return _partition_rows(node.input)
    most = f"rows up to {node.rank.value} {node.last}"
    if node.rank is Rank.ROW_NUMBER:
        most = "first row" if node.last == 1 else f"first {node.last} rows"
    growing = unbounded_partitions(node)
    return f"the {most} per partition" + (f", unbounded: {growing}" if growing else "")


def _partition_rows(node: Node) -> str:
    parts = ["all rows"] + (["the current rows"] if compared(node) else [])
    return ", ".join(parts) + (", unbounded: they are kept one by one" if grows(node) else "")


def _groups_state(node: Aggregate) -> str:
    parts = ["one row per group" if node.by else "one row"]
    kept = [f"all values of {_computed(node.input, argument)}" for argument in _kept_arguments(node)]
    parts += kept
    parts += ["the current rows"] if compared(node.input) else []
    bound = _groups_bound(node)
    if not bound and (reason := unbounded(node, values=bool(kept))):
        bound = f", unbounded: {reason}"
    return ", ".join(parts) + bound


def _kept_arguments(node: Aggregate) -> tuple[str, ...]:
    """The arguments whose values are kept one by one."""
    updates = retracts(node.input)
    extremes = (Fold.MIN, Fold.MAX)
    kept = [one.argument for one in node.aggregations if one.distinct or (updates and one.fold in extremes)]
    gathered = [name for _, call in node.gathered for name in call.columns]
    return tuple(dict.fromkeys([*kept, *gathered]))


def _computed(below: Node, column: str) -> str:
    """A column whose name nobody has written, by what it is computed from."""
    if column.startswith("__") and isinstance(below, Map):
        return dict(below.columns)[column].readable
    return column


def _groups_bound(node: Aggregate) -> str:
    """How far back the groups go that are kept."""
    watermark = watermark_at(node.input)
    if node.closing is None or watermark is None:
        return ""
    column = node.closing.column
    kind, behind = node.schema.field(column).type, -node.closing.shift
    span = span_text(watermark.delay_ms + behind, kind)
    parts = [(behind, "from it to the event time"), (watermark.delay_ms, "watermark delay")]
    return f", of the last {span} of {column}{sum_text(parts, kind)}"


def _static_join(node: StaticJoin) -> str:
    on = ",".join(f"{left}={right}" for left, right in node.keys) or "every row"
    residual = [f"and {node.residual.readable}"] if node.residual is not None else []
    return "  ".join([f"StaticJoin {node.kind.value}", f"on={on}", *residual, "state: none", "engine=spark"])


def _lookup_join(node: LookupJoin) -> str:
    on = ",".join(f"{left}={node.table.internal(right)}" for left, right in node.keys)
    parts = [f"Lookup {node.kind.value}", f"on={on}", f"{node.table.name} by {node.index}"]
    if node.residual is not None:
        parts.append(f"and {node.residual.readable}")
    if node.pad == Pad.DEFAULT:
        parts.append("unmatched=default")
    if given := dict(node.padding):
        parts.append(f"unmatched {', '.join(f'{name}={value!r}' for name, value in given.items())}")
    state = "memo: what was looked up, per left row" if changes(node.input) else "state: none"
    return "  ".join([*parts, state, "engine=faust"])
