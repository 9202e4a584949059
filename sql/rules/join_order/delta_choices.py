"""Which chains of joins become delta joins: those that a setting names, or that keep fewer rows so."""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.schema import Kind
from dovetail.sql.plan.join_order import JoinOrder, JoinPair
from dovetail.sql.plan.nodes import DeltaJoin, Node
from dovetail.sql.plan.properties import source_of
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.plan.state.delta_choice import DeltaChoice, DeltaSetting
from dovetail.sql.rules.join_order.delta_joins import as_delta_join
from dovetail.sql.rules.join_order.delta_paths import MOST_INPUTS
from dovetail.sql.rules.join_order.input_names import input_name
from dovetail.sql.rules.join_order.joins_chain import JoinsChain, KnownSizes, stay_plain, with_keys

WORTH = 0.8
"""What another order, or a delta join, keeps of what there would be without, at most."""
LEAST_ROWS = 1_000
"""So many rows are kept between joins at least, or all stays: inputs that have just begun tell little."""


@dataclass
class DeltaChoices:
    """taken   the delta joins, as they are found
    reasons  why chains are none that the setting would have be one
    chains   the inputs of all that were asked
    """

    plan: QueryPlan
    setting: DeltaSetting
    taken: list[DeltaChoice] = field(default_factory=list)
    reasons: list[Unsupported] = field(default_factory=list)
    chains: list[tuple[str, ...]] = field(default_factory=list)

    def tree(self, chain: JoinsChain, order: JoinOrder | None) -> JoinPair | None:
        """The order in which ``chain`` stands for its delta join; None: it is none. ``order``: what it has else, if
        not that of the text.
        """
        self.chains.append(chain.names)
        named = next((one for one in self.setting.chains if sorted(one) == sorted(chain.names)), None)
        if self.setting.given and named is None and not self.setting.every:
            return None
        found = self._delta_join(chain, chain.names if named is None else named)
        if isinstance(found, Unsupported):
            self.reasons.append(found)
            if named is not None:
                raise found
            return None
        choice = DeltaChoice(chain.names if named is None else named)
        if not self.setting.given:
            cheaper = self._cheaper(chain, order)
            if cheaper is None:
                return None
            choice = cheaper
        self.taken.append(choice)
        return chain.straight

    def expect_all(self) -> None:
        """Raises SqlError for inputs that no chain has, Unsupported where no chain can be what all were to be."""
        for names in self.setting.chains:
            if sorted(names) not in [sorted(one.inputs) for one in self.taken]:
                raise _no_chain(names, self.chains)
        if self.setting.every and not self.taken:
            raise self.reasons[0] if self.reasons else _no_chain((), self.chains)

    def _cheaper(self, chain: JoinsChain, order: JoinOrder | None) -> DeltaChoice | None:
        """That of fewer rows than joins of two keep in their best order; None where it has not."""
        known = chain.known(self.plan)
        if known is None or self.plan.settings["join_order"] is not None:
            return None
        between = known.between if order is None or order.between is None else order.between
        if between < LEAST_ROWS:
            return None
        least_first = tuple(sorted(chain.names, key=lambda name: known.rows[name]))
        found = self._delta_join(chain, least_first)
        if isinstance(found, Unsupported):
            return None
        kept, binary = _rows_kept(found, known), sum(known.rows.values()) + between
        return DeltaChoice(least_first, kept, binary, known.rows) if kept <= WORTH * binary else None

    def _delta_join(self, chain: JoinsChain, least_first: tuple[str, ...]) -> DeltaJoin | Unsupported:
        """Or why it is none."""
        if self.plan.final or self.plan.settings["max_fan_out_action"] == "dead_letter":
            return _refused(chain, "final rows are asked for, or a budget of rows for each key")
        if len(chain.inputs) > MOST_INPUTS:
            return _refused(chain, f"they are more than {MOST_INPUTS} inputs")
        if chain.straight is None:
            return _refused(chain, "no equality compares one of them with the others")
        keyed = with_keys(self.plan, chain.joined(chain.straight))
        if not stay_plain(keyed, chain.straight):
            return _refused(chain, "one of their joins goes by time")
        found = as_delta_join(keyed, least_first)
        return found or _refused(chain, "an equality compares what is computed of several of them")


def _rows_kept(join: DeltaJoin, known: KnownSizes) -> float:
    """By all copies; and by the levels in which records become changes."""
    rows = [known.rows[input_name(node)] for node in join.inputs]
    copies = [copy.input for step in join.steps for copy in step.copies]
    own = [place for place, node in enumerate(join.inputs) if _keeps_own(node)]
    return sum(rows[place] for place in (*copies, *own))


def _keeps_own(node: Node) -> bool:
    source = source_of(node)
    return source is not None and source.stream.kind != Kind.APPEND and not source.trusted


def _refused(chain: JoinsChain, reason: str) -> Unsupported:
    return Unsupported(
        f"the joins of {' '.join(chain.names)} cannot be a delta join: {reason}",
        where="SETTINGS delta_join",
        fix="leave delta_join out; or name other chains of the query in it",
    )


def _no_chain(names: tuple[str, ...], chains: list[tuple[str, ...]]) -> SqlError:
    there = "; ".join(" ".join(one) for one in chains)

    return SqlError(
        f"delta_join names {' '.join(names)}, and no chain of INNER joins has these inputs"
        if names
        else "no chain of INNER joins has three inputs",
        where="SETTINGS delta_join",
        fix=f"name all inputs of a chain, once each; there is: {there}"
        if there
        else "leave it out: this query has no chain of three inputs and more",
    )
