"""The list of what may fail is strict, and names only what there is."""

from __future__ import annotations

from tests.conformance.load import load
from tests.conformance.not_yet import NotYet
from tests.conformance.runner import Outcome
from tests.paths import CASES

PASSED = Outcome("a", "joins", ())
FAILED = Outcome("b", "joins", ("step 1: ..",))
LISTED = NotYet({"joins": "soon"}, {})
EMPTY = NotYet({}, {})


def test_a_failure_has_to_be_listed() -> None:
    assert list(EMPTY.violations([PASSED, FAILED])) == ["b (joins) failed: step 1: .."]
    assert list(LISTED.violations([PASSED, FAILED])) == []
    assert list(NotYet({}, {"b": "soon"}).violations([PASSED, FAILED])) == []


def test_a_listed_entry_that_passes_has_to_go() -> None:
    assert list(LISTED.violations([PASSED])) == ["all cases of joins pass: take it off not_yet.yaml"]
    assert list(NotYet({}, {"a": "soon"}).violations([PASSED])) == ["a passes: take it off not_yet.yaml"]


def test_the_list_names_only_what_there_is() -> None:
    outcomes = [Outcome(case.id, case.feature, ()) for case in load(CASES).cases]
    assert NotYet.read().unknown(outcomes) == set()
