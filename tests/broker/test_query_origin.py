"""What is fixed of a query, as the text that its checkpoint keeps."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dovetail.broker.query_origin import FORMAT, QueryOrigin
from dovetail.changelog.errors import CheckpointMismatch

STATEFUL = QueryOrigin("dovetail.view.1", "f", "Join inner", ({0: 5, 1: 0}, {0: 7}), buckets=4)
LOOKUP = QueryOrigin("dovetail.view.2", "f", "Lookup", ({0: 5},), snapshots={"rates": {0: 3}})


RESCALED = replace(STATEFUL, resumed_at='{"orders": {"0": 9}}')
PACKED = replace(RESCALED, packed_levels=0)


@pytest.mark.parametrize("origin", [STATEFUL, LOOKUP, RESCALED, PACKED])
def test_it_is_read_as_it_was_written(origin: QueryOrigin) -> None:
    assert QueryOrigin.read(origin.text, where="here") == origin


def test_only_what_former_releases_would_read_wrongly_has_a_format_that_they_refuse() -> None:
    assert [json.loads(one.text)["format"] for one in (STATEFUL, LOOKUP, RESCALED, PACKED)] == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("written", "reason", "way_out"),
    [
        (FORMAT + 1, f"format {FORMAT + 1}", "which is newer"),
        (None, "format none", "that wrote it;"),
        ("x", "x", "it;"),
    ],
)
def test_a_text_of_another_format_is_refused_with_the_way_out(written: object, reason: str, way_out: str) -> None:
    members = {**json.loads(STATEFUL.text), "format": written, "plan": ["in", "another", "form"]}
    with pytest.raises(CheckpointMismatch, match=f"{reason}, and this release reads format {FORMAT}") as refused:
        QueryOrigin.read(json.dumps(members), where="here")
    assert way_out in refused.value.fix


def test_what_a_dropped_query_leaves_is_found_in_every_format() -> None:
    assert QueryOrigin.identity_in(json.dumps({"format": FORMAT + 1, "identity": "i"})) == "i"


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
