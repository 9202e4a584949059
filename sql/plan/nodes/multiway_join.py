"""MultiwayJoin: joins of one key as one."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import current
from dovetail.sql.plan.nodes.join_chain import JoinChain
from dovetail.sql.plan.nodes.joined import residual_text
from dovetail.sql.plan.nodes.node import Cut, Exchange, Exchanged


@dataclass(frozen=True)
class MultiwayJoin(JoinChain, Exchanged):
    """Joins as one whose inputs all share a key: each is kept once."""

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each input that are the key, in one order."""
        place: dict[str, int] = {left: number for number, (left, _) in enumerate(self.links[0].keys)}
        keys = [tuple(place)]
        for link in self.links:
            pairs = sorted(link.keys, key=lambda pair: place[pair[0]])
            place |= {right: place[left] for left, right in pairs}
            keys.append(tuple(right for _, right in pairs))
        return tuple(keys)

    @property
    def bucket_key(self) -> Cut | None:
        return self.chain.bucket_key

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        keyed = zip(self.inputs, self.keys, strict=True)
        return tuple(Exchange(one, key) for one, key in keyed if not one.shared_with)

    @property
    def line(self) -> str:
        """``Multiway  inner a.k=b.k  left b.k=c.k  state: of each input the current rows``"""
        parts = ["Multiway"]
        for link in self.links:
            parts += [f"{link.kind.value} {link.equalities}", *residual_text(link.residual)]
            parts += ["unmatched=default"] if link.kind is JoinKind.LEFT and link.pad is Pad.DEFAULT else []
        kept = [current(one.as_join_input) for one in self.inputs if not one.shared_with]
        each = f"of each input {kept[0]}"
        if len(set(kept)) > 1:
            each = "; ".join(f"input {place} {rows}" for place, rows in enumerate(kept, start=1))
        return "  ".join([*parts, f"state: {each}", *self.chain.limits, "engine=spark"])

    @property
    def canonical(self) -> Form:
        return members(node="multiway_join", joins=self.joins, chain=self.chain.canonical)
