"""Whether two inputs have the same rows, but for the names and the choice of their columns.

They have where both are made of one reading of one topic by the same steps:

    scan orders AS a  where a.amount > 10    a.customer  a.id                    a.customer  a.id  a.amount
    scan orders AS b  where b.amount > 10    b.customer  b.amount       both     as b: a.customer  a.amount
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sql.expressions.expression import Expr
from sql.plan.nodes import Aggregate, Keyed, Map, Node, Scan, column_of, rebuilt

Computed = tuple[tuple[str, Expr], ...]
Same = tuple[Node, Mapping[str, str]]
"""A node that has the columns of both, and the names in it of those of the second."""


@dataclass(frozen=True)
class SameRows:
    """node      the first of two inputs, with the columns that the second one has besides
    names     of each column of the second the one of ``node`` that it is
    repeated  the second one, its scan marked: it is kept with the first
    """

    node: Node
    names: Mapping[str, str]
    repeated: Node


def same_rows(first: Node, second: Node) -> SameRows | None:
    """None where they differ, or are made of several streams."""
    found = _both(first, second)
    if found is None:
        return None
    node, names = found
    return SameRows(node, names, _marked(second, _scan_of(first)))


def kept_with(node: Node) -> str:
    """The alias of the scan with whose rows those of ``node`` are kept; '': they are kept for themselves."""
    scan = _scan_of(node)
    return "" if scan is None else scan.kept_with


def first_of(inputs: Iterable[Node], repeated: Node) -> int:
    """The place of the one among ``inputs`` with which ``repeated`` is kept."""
    return next(place for place, node in enumerate(inputs) if _alias(node) == kept_with(repeated))


def _alias(node: Node) -> str:
    scan = _scan_of(node)
    return "" if scan is None else scan.alias


def _scan_of(node: Node) -> Scan | None:
    """The scan below, by the steps that ``same_rows`` compares."""
    while isinstance(node, Map | Keyed | Aggregate):
        node = node.input
    return node if isinstance(node, Scan) else None


def _marked(node: Node, scan: Scan | None) -> Node:
    if isinstance(node, Scan):
        return replace(node, kept_with="" if scan is None else scan.alias)
    return rebuilt(node, lambda below: _marked(below, scan))


def _both(first: Node, second: Node) -> Same | None:
    if isinstance(first, Scan) and isinstance(second, Scan):
        return _scans(first, second)
    if isinstance(first, Map):
        return _maps(first, second if isinstance(second, Map) else _all_columns(second))
    if isinstance(second, Map):
        return _chosen(first, second)
    if isinstance(first, Keyed) and isinstance(second, Keyed):
        return _keyed(first, second)
    if isinstance(first, Aggregate) and isinstance(second, Aggregate):
        return _aggregates(first, second)
    return None


def _scans(first: Scan, second: Scan) -> Same | None:
    declared = {name: internal for internal, name in first.columns}
    lacking = tuple((f"{first.alias}.{name}", name) for _, name in second.columns if name not in declared)
    wider = replace(first, columns=(*first.columns, *lacking))
    declared |= {name: internal for internal, name in lacking}
    names = {internal: declared[name] for internal, name in second.columns}
    read = replace(second, alias=first.alias, columns=wider.columns, where=first.where, kept_with=first.kept_with)
    if read != wider or second.deletes or not _same(first.where, second.where, (wider, names)):
        return None
    return wider, names


def _all_columns(node: Node) -> Map:
    return Map(node, tuple((name, column_of(node, name)) for name in node.schema.names))


def _chosen(first: Node, second: Map) -> Same | None:
    """Of a second input that lets through what is below it, under whatever names."""
    below = _both(first, second.input)
    plain = {name: expr.plain for name, expr in second.columns if expr.plain is not None}
    if below is None or second.where is not None or len(plain) < len(second.columns):
        return None
    return below[0], {name: below[1][column] for name, column in plain.items()}


def _maps(first: Map, second: Map) -> Same | None:
    below = _both(first.input, second.input)
    if below is None or not _same(first.where, second.where, below):
        return None
    columns, names = _columns(first.columns, second.columns, below)
    return Map(below[0], columns, first.where), names


def _columns(first: Computed, second: Computed, below: Same) -> tuple[Computed, dict[str, str]]:
    """Those of the first and what the second has besides; of each of the second the one that it is."""
    columns, names = dict(first), dict[str, str]()
    known = {(expr.structure, expr.type): name for name, expr in reversed(first)}
    for name, expr in second:
        told = _told(expr, below)
        same = (told.structure, told.type)
        if same not in known:
            # Not as the second calls it: in the join there are both.
            known[same] = _added(name) if told.plain is None or told.plain in columns else told.plain
            columns[known[same]] = told
        names[name] = known[same]
    return tuple(columns.items()), names


def _added(name: str) -> str:
    return f"__as_{name}"


def _keyed(first: Keyed, second: Keyed) -> Same | None:
    below = _both(first.input, second.input)
    if below is None:
        return None
    key = tuple(below[1][name] for name in second.primary_key)
    alike = (key, second.by_arrival) == (first.primary_key, first.by_arrival)
    return (replace(first, input=below[0]), below[1]) if alike else None


def _aggregates(first: Aggregate, second: Aggregate) -> Same | None:
    """Of groups that stay: those that go with a watermark leave as windows close, and are joined by time."""
    below = _both(first.input, second.input)
    if below is None or first.closing is not None or second.closing is not None:
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
    gathered, called = _columns(first.gathered, second.gathered, below)
    return replace(first, input=below[0], aggregations=tuple(folded), gathered=gathered), names | called


def _same(first: Expr | None, second: Expr | None, below: Same) -> bool:
    """Whether a condition of the second input is that of the first."""
    if first is None or second is None:
        return first is second
    return _told(second, below).structure == first.structure


def _told(expr: Expr, below: Same) -> Expr:
    """An expression over the second input, in the columns of both."""
    node, names = below
    return expr.substituted({name: column_of(node, told) for name, told in names.items()})
