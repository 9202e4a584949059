"""What is fixed of a query, as the text that its checkpoint keeps."""

from __future__ import annotations

import json

import pytest

from broker.query_origin import QueryOrigin
from changelog.errors import CheckpointMismatch

STATEFUL = QueryOrigin("dovetail.view.1", "f", "Join inner", ({0: 5, 1: 0}, {0: 7}), buckets=4)
LOOKUP = QueryOrigin("dovetail.view.2", "f", "Lookup", ({0: 5},), snapshots={"rates": {0: 3}})


@pytest.mark.parametrize("origin", [STATEFUL, LOOKUP])
def test_it_is_read_as_it_was_written(origin: QueryOrigin) -> None:
    assert QueryOrigin.read(origin.text) == origin


def test_texts_of_the_first_version_are_read() -> None:
    lookup = {"identity": "i", "fingerprint": "f", "plan": "", "starts": {"0": 5}, "snapshots": {"rates": {"0": 3}}}
    assert QueryOrigin.read(json.dumps(lookup)).first_offsets == ({0: 5},)
    stateful = {"name": "v", "identity": "i", "fingerprint": "f", "plan": "", "buckets": 2, "starts": [{"0": 5}, {}]}
    assert QueryOrigin.read(json.dumps(stateful)) == QueryOrigin("i", "f", "", ({0: 5}, {}), buckets=2)


def test_each_life_of_a_query_has_an_identity_of_its_own() -> None:
    first, second = QueryOrigin.new_identity("view"), QueryOrigin.new_identity("view")
    assert first != second
    assert first.startswith("dovetail.view.")


def test_only_its_own_plan_goes_on() -> None:
    STATEFUL.expect_plan("view", "f", "another text of the same plan", where="here")
    with pytest.raises(CheckpointMismatch, match="    -Join inner\n    \\+Join left"):
        STATEFUL.expect_plan("view", "g", "Join left", where="here")


def test_a_plan_that_another_release_has_written_down_is_not_compared() -> None:
    origin = QueryOrigin("i", "1:aa", "Join inner", ())
    with pytest.raises(CheckpointMismatch, match="by another release, in form 1 instead of 2"):
        origin.expect_plan("view", "2:aa", "Join inner", where="here")


def test_a_difference_that_explain_does_not_show_is_said_to_be_one() -> None:
    with pytest.raises(CheckpointMismatch, match="another plan, in what EXPLAIN does not show"):
        QueryOrigin("i", "1:aa", "Join inner", ()).expect_plan("view", "1:bb", "Join inner", where="here")
