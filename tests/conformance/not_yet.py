"""The features and cases that may fail for now, each with its reason (not_yet.yaml).

The list is strict: a feature or case on it that passes in full must be taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.conformance.case import Case
from tests.conformance.runner import Outcome

FILE = Path(__file__).parent / "not_yet.yaml"


@dataclass(frozen=True)
class NotYet:
    """``features`` and ``cases``: name to reason."""

    features: Mapping[str, str]
    cases: Mapping[str, str]

    @staticmethod
    def read(file: Path = FILE) -> NotYet:
        listed = yaml.safe_load(file.read_text(encoding="utf-8"))
        return NotYet(listed["features"] or {}, listed["cases"] or {})

    def lists(self, tried: Case | Outcome) -> bool:
        return tried.id in self.cases or tried.feature in self.features

    def violations(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        """Failures that are not listed, and entries of the list that have come true."""
        for outcome in outcomes:
            if not outcome.passed and not self.lists(outcome):
                yield f"{outcome.id} ({outcome.feature}) failed: {'; '.join(outcome.faults)}"
            if outcome.passed and outcome.id in self.cases:
                yield f"{outcome.id} passes: take it off {FILE.name}"
        for feature in self.features:
            of_feature = [outcome for outcome in outcomes if outcome.feature == feature]
            if of_feature and all(outcome.passed for outcome in of_feature):
                yield f"all cases of {feature} pass: take it off {FILE.name}"

    def unknown(self, outcomes: Iterable[Outcome]) -> set[str]:
        """Entries that name no feature or case there is."""
        names = {name for outcome in outcomes for name in (outcome.id, outcome.feature)}
        return {*self.features, *self.cases} - names
