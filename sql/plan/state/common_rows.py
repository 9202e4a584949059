"""What two nodes of a plan have in common: the node that makes the rows of both, but for the names and the choice of
their columns.

    scan orders AS a  where a.amount > 10    a.customer  a.id                    a.customer  a.id  a.amount
    scan orders AS b  where b.amount > 10    b.customer  b.amount       both     as b: a.customer  a.amount

They have where both are made of the same readings of the same topics by the same steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.joins.aggregates.aggregation import Closing
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.joins import Bidirectional
from dovetail.sql.plan.nodes import Aggregate, Join, Keyed, Map, MultiwayJoin, Node, Scan, Window

Computed = tuple[tuple[str, Expr], ...]
Same = tuple[Node, Mapping[str, str]]
"""A node that has the columns of both, and the names in it of those of the second."""


def both(first: Node, second: Node) -> Same | None:
    """None where they differ."""
    if isinstance(first, Scan) and isinstance(second, Scan):
        return _scans(first, second)
    if isinstance(first, Map):
        return _maps(first, second if isinstance(second, Map) else _all_columns(second))
    if isinstance(second, Map):
        return _chosen(first, second)
    if isinstance(first, Window) and isinstance(second, Window):
        return _windows(first, second)
    if isinstance(first, Keyed) and isinstance(second, Keyed):
        return _keyed(first, second)
    if isinstance(first, Aggregate) and isinstance(second, Aggregate):
        return _aggregates(first, second)
    if isinstance(first, Join) and isinstance(second, Join):
        return _joins(first, second)
    if isinstance(first, MultiwayJoin) and isinstance(second, MultiwayJoin):
        return _multiway_joins(first, second)
    return None


def _scans(first: Scan, second: Scan) -> Same | None:
    declared = {name: internal for internal, name in first.columns}
    lacking = tuple((f"{first.alias}.{name}", name) for _, name in second.columns if name not in declared)
    wider = replace(first, columns=(*first.columns, *lacking))
    declared |= {name: internal for internal, name in lacking}
    names = {internal: declared[name] for internal, name in second.columns}
    read = replace(second, alias=first.alias, columns=wider.columns, where=first.where, shared_with=first.shared_with)
    if read != wider or second.deletes or not _same(first.where, second.where, (wider, names)):
        return None
    return wider, names


def _all_columns(node: Node) -> Map:
    return Map(node, tuple((name, node.column(name)) for name in node.schema.names))


def _chosen(first: Node, second: Map) -> Same | None:
    """Of a second input that lets through what is below it, under whatever names."""
    below = both(first, second.input)
    plain = {name: expr.plain for name, expr in second.columns if expr.plain is not None}
    if below is None or second.where is not None or len(plain) < len(second.columns):
        return None
    return below[0], {name: below[1][column] for name, column in plain.items()}


def _maps(first: Map, second: Map) -> Same | None:
    below = both(first.input, second.input)
    if below is None or not _same(first.where, second.where, below):
        return None
    columns, names = _columns(first.columns, second.columns, below)
    return Map(below[0], columns, first.where), names


def _columns(first: Computed, second: Computed, below: Same) -> tuple[Computed, dict[str, str]]:
    """Those of the first and what the second has besides; of each of the second the one that it is."""
    columns, names = dict(first), dict[str, str]()
    known = {(expr.structure, expr.type): name for name, expr in reversed(first)}
    for name, expr in second:
        own = in_shared_columns(expr, below)
        same = (own.structure, own.type)
        if same not in known:
            # Not as the second calls it: in the join there are both.
            known[same] = _added(name) if own.plain is None or own.plain in columns else own.plain
            columns[known[same]] = own
        names[name] = known[same]
    return tuple(columns.items()), names


def _added(name: str) -> str:
    return f"__as_{name}"


def _windows(first: Window, second: Window) -> Same | None:
    below = both(first.input, second.input)
    if below is None or below[1].get(second.time) != first.time:
        return None
    if second.windows != first.windows:
        return None
    return replace(first, input=below[0]), {**below[1], second.start: first.start, second.end: first.end}


def _keyed(first: Keyed, second: Keyed) -> Same | None:
    below = both(first.input, second.input)
    if below is None:
        return None
    key = tuple(below[1][name] for name in second.primary_key)
    alike = (key, second.by_arrival) == (first.primary_key, first.by_arrival)
    return (replace(first, input=below[0]), below[1]) if alike else None


def _aggregates(first: Aggregate, second: Aggregate) -> Same | None:
    """Of groups that go with a watermark, those that go with the same one."""
    below = both(first.input, second.input)
    if below is None or _closing(second, below) != first.closing or second.closed != first.closed:
        return None
    names = {name: below[1][name] for name in second.by}
    if tuple(names.values()) != first.by or len(names) != len(second.by):
        return None
    folded = list(first.aggregations)
    known = {replace(one, name=""): one.name for one in folded}
    for one in second.aggregations:
        same = replace(one, name="", argument=below[1].get(one.argument, ""))
        if same not in known:
            known[same] = _added(one.name)
            folded.append(replace(same, name=known[same]))
        names[one.name] = known[same]
    recomputed, called = _columns(first.recomputed, second.recomputed, below)
    return replace(first, input=below[0], aggregations=tuple(folded), recomputed=recomputed), names | called


def _closing(second: Aggregate, below: Same) -> Closing | None:
    """When the groups of the second node go, in the columns of both."""
    closing = second.closing
    return None if closing is None else replace(closing, column=below[1][closing.column])


def _joins(first: Join, second: Join) -> Same | None:
    """Of joins whose rows stay: those that bound their state by time, or answer once, are their own."""
    if not isinstance(first.method, Bidirectional) or bool(first.right.shared_with) != bool(second.right.shared_with):
        return None
    left, right = both(first.left, second.left), both(first.right, second.right)
    if left is None or right is None or not _same(first.residual, second.residual, left, right):
        return None
    wider, names = first.with_inputs(left[0], right[0]), {**left[1], **right[1]}
    keys = tuple((names[one], names[other]) for one, other in second.keys)
    alike = replace(
        second,
        left=wider.left,
        right=wider.right,
        keys=keys,
        residual=first.residual,
        mark=first.mark,
        place=first.place,
    )
    if alike != wider:
        return None
    named = dict(left[1]) if first.kind.is_existence else names
    return wider, {**named, second.mark: first.mark} if first.mark else named


def _multiway_joins(first: MultiwayJoin, second: MultiwayJoin) -> Same | None:
    found = both(first.chain, second.chain) if first.joins == second.joins else None
    if found is None or not isinstance(found[0], Join):
        return None
    return replace(first, chain=found[0]), found[1]


def _same(first: Expr | None, second: Expr | None, *inputs: Same) -> bool:
    """Whether a condition of the second node is that of the first."""
    if first is None or second is None:
        return first is second
    return in_shared_columns(second, *inputs).structure == first.structure


def in_shared_columns(expr: Expr, *inputs: Same) -> Expr:
    """An expression over the inputs of the second node, in the columns of both."""
    return expr.substituted({name: node.column(one) for node, names in inputs for name, one in names.items()})
