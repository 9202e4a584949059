"""DeltaJoin: joins as one that keeps nothing between them."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.nodes.delta_steps import DeltaStep, delta_steps
from dovetail.sql.plan.nodes.join_chain import JoinChain
from dovetail.sql.plan.nodes.joined import residual_text
from dovetail.sql.plan.nodes.node import CUT_SOMEHOW, Cut


@dataclass(frozen=True)
class DeltaJoin(JoinChain):
    """INNER joins as one, by whichever keys, that keeps nothing between them: ``joins.operators.delta_joins``.

    paths   of each input: it, and the others in the order in which its changes meet them
    """

    paths: tuple[tuple[int, ...], ...]

    @property
    def steps(self) -> tuple[DeltaStep, ...]:
        """In the order in which they are taken; one less than there are inputs."""
        return delta_steps(self.links, self.paths)

    @property
    def bucket_key(self) -> Cut | None:
        return CUT_SOMEHOW

    @property
    def line(self) -> str:
        """``Delta  inner a.x=b.x  inner b.y=c.y  path a, b, c  ..  state: step 1 a by a.x, b by b.x; ..``"""
        parts = ["Delta"]
        for link in self.links:
            parts += [f"inner {link.equalities}", *residual_text(link.residual)]
        names = [", ".join(one.aliases) or str(place) for place, one in enumerate(self.inputs, start=1)]
        parts += ["path " + ", ".join(names[place] for place in path) for path in self.paths]
        steps = (
            ", ".join(f"{names[copy.input]} by {','.join(copy.keys)}" for copy in step.copies) for step in self.steps
        )
        state = "; ".join(f"step {number} {copies}" for number, copies in enumerate(steps, start=1))
        return "  ".join([*parts, f"state: {state}", *self.chain.limits, "engine=spark"])

    @property
    def canonical(self) -> Form:
        paths: list[Form] = [list(path) for path in self.paths]
        return members(node="delta_join", joins=self.joins, paths=paths, chain=self.chain.canonical)
