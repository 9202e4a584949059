"""Which cases of a suite to run."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tests.conformance.case import Case


@dataclass(frozen=True)
class Selection:
    """Empty: all. ``sample`` cases are drawn of those that are left, by ``seed``, and keep their order."""

    features: Collection[str] = ()
    ids: Collection[str] = ()
    tier: int | None = None
    sample: int | None = None
    seed: int = 0

    def of(self, cases: Sequence[Case]) -> list[Case]:
        chosen = [case for case in cases if self._admits(case)]
        if self.sample is None or self.sample >= len(chosen):
            return chosen
        drawn = {case.id for case in random.Random(self.seed).sample(chosen, self.sample)}
        return [case for case in chosen if case.id in drawn]

    def _admits(self, case: Case) -> bool:
        return (
            (not self.features or case.feature in self.features)
            and (not self.ids or case.id in self.ids)
            and (self.tier is None or case.tier == self.tier)
        )
