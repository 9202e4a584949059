"""A plan walked from its output to its scans with a demand, and back with the rows that fulfil it.

Every node gives the rows that it would give of all its input, as far as the demand is about them, each with the
records that it is made of. What does not go on is told to the ledger, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from dovetail.changelog.errors import Unsupported
from dovetail.joins.dataflow.lookup import LookupTarget
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.compile.transforms import row_map, transform_of
from dovetail.sql.expressions.evaluate import run
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import split
from dovetail.sql.plan.joins import (
    Asof,
    AsofOnce,
    Latest,
    Temporal,
)
from dovetail.sql.plan.joins.inequality import TimeInequality
from dovetail.sql.plan.nodes import (
    Aggregate,
    Chained,
    Join,
    JoinChain,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    Node,
    Scan,
    Shared,
    Static,
    StaticJoin,
    TopN,
    UnionAll,
)
from dovetail.sql.plan.properties import walk
from dovetail.sql.trace.demand import Demand, KeySet, sides
from dovetail.sql.trace.grouped_rows import grouped, ranked, replaced
from dovetail.sql.trace.history import History
from dovetail.sql.trace.inputs import Inputs
from dovetail.sql.trace.ledger import Ledger
from dovetail.sql.trace.nearest import latest, live_versions, nearest
from dovetail.sql.trace.pairs import Pairs, Side
from dovetail.sql.trace.traced_rows import LINEAGE, lineage_of, passing, stepped, with_lineage

ONCE = (
    "each row was answered once, with what was there when it came: which rows these were is told by the times of "
    "their records"
)


@dataclass
class Walk:
    inputs: Inputs
    ledger: Ledger = field(default_factory=Ledger)
    history: History = field(init=False)

    def __post_init__(self) -> None:
        self.history = History(self.inputs, self.ledger)

    def rows(self, node: Node, demand: Demand, until_ms: int | None = None) -> pa.Table:
        """The rows of ``node`` that ``demand`` is about, with their LINEAGE; as of ``until_ms``, else of now.

        Raises Unsupported where a part of the plan cannot be walked, or an input would have to be read as a whole.
        """
        if isinstance(node, Scan):
            found = self.history.rows(node, demand, until_ms)
            return passing(found, split(node.where), self.ledger)
        if isinstance(node, Map):
            return self._mapped(node, demand, until_ms)
        if isinstance(node, Shared):
            return self.rows(node.input, demand, until_ms)
        if isinstance(node, StaticJoin):
            return self._with_static(node, demand, until_ms)
        if isinstance(node, Chained):
            below = self.rows(node.input, demand.over(node.input.schema.names), until_ms)
            return stepped(below, transform_of(node))
        if isinstance(node, Aggregate | TopN | Keyed):
            return self._grouped(node, demand, until_ms)
        if isinstance(node, UnionAll):
            parts = (self.rows(part, demand, until_ms) for part in node.parts)
            return pa.concat_tables([part.select([*node.schema.names, LINEAGE]) for part in parts])
        if isinstance(node, Join | JoinChain):
            return self._joined(node if isinstance(node, Join) else node.chain, demand, until_ms)
        if isinstance(node, LookupJoin):
            return self._looked_up(node, demand, until_ms)
        raise _not_walked(type(node).__name__)

    def _grouped(self, node: Aggregate | TopN | Keyed, demand: Demand, until_ms: int | None) -> pa.Table:
        """Whole groups: what is asked of their keys passes below."""
        below = self.rows(node.input, demand.over(node.partition), until_ms)
        if isinstance(node, Aggregate):
            return grouped(node, below)
        if isinstance(node, TopN):
            return ranked(node, below, self.ledger)
        return replaced(node, below, self.ledger)

    def _mapped(self, node: Map, demand: Demand, until_ms: int | None) -> pa.Table:
        rows = self.rows(node.input, demand.below(dict(node.columns)), until_ms)
        rows = passing(rows, split(node.where), self.ledger)
        return stepped(rows, replace(row_map(node), where=None))

    # -- joins --

    def _joined(self, join: Join, demand: Demand, until_ms: int | None) -> pa.Table:
        of_left, of_right = sides(join, demand)
        if join.method.answers_once:
            return self._answered_once(join, of_left, of_right, until_ms)
        if of_left.narrow or not of_right.narrow or join.method.takes_one:
            left = self.rows(join.left, of_left, until_ms)
            right = self.rows(join.right, of_right if of_right.narrow else _keys(left, join, 0), until_ms)
        else:
            right = self.rows(join.right, of_right, until_ms)
            left = self.rows(join.left, _keys(right, join, 1), until_ms)
        return self._met(join, left, right)

    def _met(self, join: Join, left: pa.Table, right: pa.Table) -> pa.Table:
        named = [_sources(side) for side in join.inputs]
        both = [
            Side.of(side, rows, [pair[place] for pair in join.keys], named[place])
            for place, (side, rows) in enumerate(zip(join.inputs, (left, right), strict=True))
        ]
        pairs = Pairs.by_keys(both[0], both[1], join.null_safe, self.ledger)
        pairs = self._chosen(join, pairs).fulfilling(join.residual)
        return pairs.joined(join.kind, join.pad, join.mark)

    def _chosen(self, join: Join, pairs: Pairs) -> Pairs:
        """The pairs of each left row that its method lets through, before the residual condition."""
        method = join.method
        if isinstance(method, Asof):
            return nearest(pairs, method.inequality, method.tie_breaks, method.tolerance)
        if isinstance(method, AsofOnce):
            return nearest(pairs, method.inequality)
        if isinstance(method, Latest):
            return latest(pairs)
        if isinstance(method, Temporal):
            found = nearest(pairs, TimeInequality(method.left, ">=", method.right))
            return live_versions(found, method.deleted)
        return pairs

    def _answered_once(self, join: Join, of_left: Demand, of_right: Demand, until_ms: int | None) -> pa.Table:
        """Each left row with what the right side held at the time of its record."""
        if join.kind is JoinKind.FULL:
            raise _not_walked("a FULL LATEST JOIN, which answers both sides", join.place)
        waits = getattr(join.method, "alignment", None) is not None
        if waits and not isinstance(join.method, AsofOnce):
            raise _not_walked("a join that waits for its right side (lag_behind)", join.place)
        self.ledger.note(ONCE)
        left = self.rows(join.left, of_left, until_ms)
        demand = of_right if of_right.narrow else _keys(left, join, 0)
        times = np.array([self.ledger.arrived(one)[0] for one in lineage_of(left)], dtype=np.int64)
        if waits or not len(times):
            return self._met(join, left, self.rows(join.right, demand, until_ms))
        parts = []
        for time in np.unique(times).tolist():
            then = left.filter(pa.array(times == time))
            parts.append(self._met(join, then, self.rows(join.right, demand, time)))
        return pa.concat_tables(parts)

    def _with_static(self, join: StaticJoin, demand: Demand, until_ms: int | None) -> pa.Table:
        left = self.rows(join.input, demand.over(join.input.schema.names), until_ms)
        static, source = join.static, f"table({', '.join(join.static.relations)})"
        self.ledger.note(f"{source} was read when the view began; what it holds now is shown instead")
        rows = run(static.sql, {name: self.inputs.relation(name) for name in static.relations})
        columns = [column.cast(one.type, safe=False) for column, one in zip(rows.columns, static.schema, strict=True)]
        right = _of_no_record(pa.table(columns, schema=static.schema))
        return self._met_one_side(join, left, right, tuple(name for _, name in join.keys), source)

    def _looked_up(self, join: LookupJoin, demand: Demand, until_ms: int | None) -> pa.Table:
        self.ledger.note(ONCE)
        left = self.rows(join.input, _of_looked_up(join, demand), until_ms)
        names = tuple(join.table.internal(name) for _, name in join.keys)
        if join.table.target is not LookupTarget.STREAM:
            return self._met_one_side(join, left, self._found(join, left), names, _called(join.table))
        stream = self.inputs.stream(join.table.name)
        scan = Scan(join.table.alias, stream.schema, stream.topic, stream.rules, join.table.columns)
        exprs = tuple(Expr.column(name, scan.schema.field(name).type) for name in names)
        demand_of_keys = keys_among(left, [name for name, _ in join.keys], exprs)
        times = np.array([self.ledger.arrived(one)[0] for one in lineage_of(left)], dtype=np.int64)
        parts = [
            self._met_one_side(join, left.slice(0, 0), _of_no_record(scan.schema.empty_table()), names, stream.topic)
        ]
        for time in np.unique(times).tolist():
            then = left.filter(pa.array(times == time))
            right = self.rows(scan, demand_of_keys, time)
            parts.append(self._met_one_side(join, then, right, names, stream.schema.name))
        return pa.concat_tables(parts)

    def _found(self, join: LookupJoin, left: pa.Table) -> pa.Table:
        """What the source has under the keys of the left rows."""
        keys = list(dict.fromkeys(zip(*(left.column(name).to_pylist() for name, _ in join.keys), strict=True)))
        by = [name for _, name in join.keys]
        found = self.inputs.looked_up(join.table, by, [key for key in keys if None not in key])
        columns = [found.column(name).cast(join.table.type_of(name)) for _, name in join.table.columns]
        return _of_no_record(pa.table(columns, schema=join.table.schema))

    def _met_one_side(
        self, join: StaticJoin | LookupJoin, left: pa.Table, right: pa.Table, keys: tuple[str, ...], source: str
    ) -> pa.Table:
        below = join.input
        one = Side.of(below, left, [name for name, _ in join.keys], _sources(below))
        null_safe = join.null_safe if isinstance(join, StaticJoin) else ()
        padding = dict(join.padding) if isinstance(join, LookupJoin) else {}
        pairs = Pairs.by_keys(one, Side(right, keys, keys, source), null_safe, self.ledger).fulfilling(join.residual)
        return pairs.joined(join.kind, join.pad, padding=padding)


def _of_no_record(rows: pa.Table) -> pa.Table:
    return with_lineage(rows, [[] for _ in range(rows.num_rows)])


def _of_looked_up(join: LookupJoin, demand: Demand) -> Demand:
    """What is asked of the left rows; a condition on a key of the table is one on the left key, but for padded rows."""
    own = demand.over(join.input.schema.names)
    if join.kind is not JoinKind.INNER:
        return own
    to_left = {join.table.internal(name): left for left, name in join.keys}
    return own & demand.over(to_left).renamed(to_left, join.input.schema)


def _keys(rows: pa.Table, join: Join, of: int) -> Demand:
    """That the keys of the other side are among those of ``rows``, the side ``of`` (0: left) of ``join``."""
    own, other = [pair[of] for pair in join.keys], [pair[1 - of] for pair in join.keys]
    schema = join.inputs[1 - of].schema
    return keys_among(rows, own, tuple(Expr.column(name, schema.field(name).type) for name in other), join.null_safe)


def keys_among(rows: pa.Table, own: Sequence[str], other: tuple[Expr, ...], null_safe: Sequence[bool] = ()) -> Demand:
    if not other:
        return Demand()
    listed = zip(*(rows.column(name).to_pylist() for name in own), strict=True)
    safe = null_safe or [False] * len(other)
    values = (key for key in listed if all(one or value is not None for one, value in zip(safe, key, strict=True)))
    return Demand(sets=(KeySet(other, frozenset(values)),))


def _called(table: LookupTable) -> str:
    kind = "dictionary" if table.target is LookupTarget.DICTIONARY else "external table"
    return f'{kind} "{table.name}"'


def _sources(node: Node) -> str:
    """What rows are made of, for people."""
    found = []
    for below in walk(node):
        if isinstance(below, Scan):
            found.append(below.stream.name)
        elif isinstance(below, LookupTable):
            found.append(below.name)
        elif isinstance(below, Static):
            found += below.relations
    return " with ".join(dict.fromkeys(found))


_NOT_WALKED = {
    "Sessions": "SESSION windows: which one a row is in depends on its neighbours in time",
    "SetOperation": "INTERSECT and EXCEPT, whose rows count those of both sides",
    "Over": "window functions: their values depend on all rows of a partition",
    "Static": "a FROM that reads table(x) alone",
    "LookupTable": "a FROM that is looked up in alone",
}


def _not_walked(what: str, where: str = "") -> Unsupported:
    return Unsupported(
        f"WHY does not trace {_NOT_WALKED.get(what, what)}",
        where=where,
        fix="views of joins, filters, groups, TUMBLE and HOP, the first rows of partitions and lookups are traced; "
        "FROM table(x) shows the rows of an input",
    )
