"""Chains of INNER and LEFT joins are joined in the order that keeps the fewest rows between them.

    a JOIN b ON a.x = b.x JOIN c ON b.y = c.y       c of 25 rows: (a (b c))
    └──── one chain: any order has the same rows ────┘

    a LEFT JOIN d ON a.z = d.z JOIN b ON a.x = b.x           ((a b) d)
      └─ gives each row of a its rows of d, whatever else a row is joined with ─┘

Inner joins that are bidirectional, one over the other, are one chain; what stands below them, a scan, a subquery, a
FULL join, is an input of it and stays as it is. Every condition is tested where its columns are first together.

A LEFT join makes of each row on its left rows that have it whole, and looks at nothing of it but what its ON reads. So
it may stand over or under any join that reads none of the columns it adds, as soon as those of its ON are there; its
right side is an input. Where an inner join over it reads its columns it stays where it is, an input with all below it;
what WHERE reads of them is above all joins, or ends the chain. Where no order of all is worth it, LEFT joins are such
inputs too, and inner joins have an order of their own: so is the one of a view that is older than this.

The order of the text stays

- where one input is of unknown size, or has no records yet
- where no order keeps a fifth fewer rows, by an estimate that is a guess itself; or it keeps few, as inputs do that
  have only begun
- where a join goes by time, or rows would be told apart by other columns: what all orders have in common is their rows
- where final rows are asked for, or a budget of rows for each key
- below a join that takes the last row that came, LATEST and one-shot ASOF
- under ``SETTINGS join_reorder = 0``

No order has a join without an equality. A chain that keeps a fifth fewer rows as a delta join than in its best order is
one. A materialized view gets the setting ``join_order``, or ``delta_join``, when it is created, which says it from then
on, whatever becomes of its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.plan.join_order import JoinOrder, JoinPair, inputs_of_tree, read_orders
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import Join, Map, Node, rebuilt
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.plan.state.delta_choice import read_delta_setting
from dovetail.sql.rules.join_order.delta_choices import LEAST_ROWS, WORTH, DeltaChoices
from dovetail.sql.rules.join_order.joins_chain import JoinsChain, is_plain, pads_right, stay_plain, with_keys


def join_order(plan: QueryPlan) -> QueryPlan:
    """Raises SqlError for an order, or a delta join, of the settings that is of no chain, Unsupported for one that a
    chain cannot have.
    """
    deltas = DeltaChoices(plan, read_delta_setting(plan.settings.text("delta_join")))
    rule = _Rule(plan, list(read_orders(plan.settings.text("join_order"))), deltas)
    made = plan.with_rows(rule.of(plan.rows))
    if rule.wanted:
        raise _no_chain(rule.wanted[0], rule.chains)
    deltas.expect_all()
    return replace(made, orders=tuple(rule.taken), deltas=tuple(deltas.taken))


@dataclass
class _Rule:
    """``wanted``: orders of the setting that no chain has had yet; ``chains``: those that could have one."""

    plan: QueryPlan
    wanted: list[JoinPair]
    deltas: DeltaChoices
    taken: list[JoinOrder] = field(default_factory=list)
    chains: list[tuple[str, ...]] = field(default_factory=list)

    def of(self, node: Node) -> Node:
        if isinstance(node, Join) and node.method.takes_one and node.method.answers_once:
            # Of the rows of a batch it takes the last: the order of joins below is an order of rows.
            return node
        if isinstance(node, Join) and (made := self._with_left_joins(node)) is not None:
            return made
        if not isinstance(node, Join) or not is_plain(node):
            return rebuilt(node, self.of)
        chain = JoinsChain.of(node)
        chain = replace(chain, inputs=tuple(map(self.of, chain.inputs)))
        if not chain.has_orders:
            return chain.joined(chain.written)
        self.chains.append(chain.names)
        order = self._wanted(chain) or self._cheapest(chain)
        if order is None or order.between is not None:
            tree = self.deltas.tree(chain, order)
            if tree is not None:
                return Map(chain.joined(tree), identity(node))
        if order is None:
            return chain.joined(chain.written)
        self.taken.append(order)
        made = chain.joined(order.tree)
        return Map(made, identity(node))

    def _with_left_joins(self, node: Join) -> Node | None:
        """``node`` with LEFT joins among those that are put in order; None where there are none, or where they stay:
        then each is an input of a chain, or over one.
        """
        chain = JoinsChain.of(node, with_left_joins=True) if is_plain(node) or pads_right(node) else None
        if chain is None or not chain.left_joins or not chain.has_orders:
            return None
        self.chains.append(chain.names)
        order = self._wanted(chain) or self._cheapest(chain)
        if order is None:
            return None
        below = replace(chain, inputs=tuple(map(self.of, chain.inputs)))
        self.taken.append(order)
        return Map(below.joined(order.tree), identity(node))

    def _wanted(self, chain: JoinsChain) -> JoinOrder | None:
        for tree in self.wanted:
            if sorted(inputs_of_tree(tree)) == sorted(chain.names):
                self.wanted.remove(tree)
                chain.expect_equalities(tree)
                if not self._may_have(chain, tree):
                    raise _stays(chain.names)
                return JoinOrder(tree)
        return None

    def _cheapest(self, chain: JoinsChain) -> JoinOrder | None:
        settings = self.plan.settings
        if not settings["join_reorder"] or settings["join_order"] is not None:
            return None
        known = chain.known(self.plan)
        if known is None:
            return None
        best = known.search.best()
        if best is None or known.between < LEAST_ROWS or best.between > WORTH * known.between:
            return None
        tree = chain.tree(best)
        if not isinstance(tree, JoinPair) or not self._may_have(chain, tree):
            return None
        return JoinOrder(tree, best.between, known.between, known.rows)

    def _may_have(self, chain: JoinsChain, tree: JoinPair) -> bool:
        """Whether joins in this order are what those of the text are, bidirectional, and tell rows apart by as much."""
        settings = self.plan.settings
        if self.plan.final or settings["max_fan_out_action"] == "dead_letter":
            return False
        before, after = (with_keys(self.plan, chain.joined(one)) for one in (chain.written, tree))
        if not stay_plain(before, chain.written) or not stay_plain(after, tree):
            return False
        return _minimal_keys(before) == _minimal_keys(after)


def _minimal_keys(node: Node) -> set[frozenset[str]]:
    """The unique keys of which no part is one."""
    keys = {frozenset(key) for key in node.unique_keys}
    return {key for key in keys if not any(other < key for other in keys)}


def _no_chain(tree: JoinPair, chains: list[tuple[str, ...]]) -> SqlError:
    there = "; ".join(" ".join(names) for names in chains)
    return SqlError(
        f"join_order names {' '.join(inputs_of_tree(tree))}, and no chain of joins has these inputs",
        where="SETTINGS join_order",
        fix=f"name all inputs of a chain, once each; there is: {there}"
        if there
        else "leave it out: this query has no three inputs whose order is free",
    )


def _stays(names: tuple[str, ...]) -> Unsupported:
    return Unsupported(
        f"the joins of {' '.join(names)} have to stay in the order of the text: one of them goes by time or has a "
        "budget of rows, final rows are asked for, or rows would be told apart by other columns",
        where="SETTINGS join_order",
        fix="leave join_order out, and write the joins in the order that they are to have",
    )
