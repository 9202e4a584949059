"""What one end writes the other reads; what is neither command nor answer is left alone."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import orjson
import pytest

from dovetail.services.commands.command_codec import (
    Answer,
    Command,
    Misses,
    Outcome,
    Refresh,
    Stats,
    UnknownCommand,
    answer_bytes,
    answer_of,
    command_bytes,
    command_of,
    outcome_bytes,
    outcome_of,
)


@pytest.mark.parametrize(
    "command",
    [
        Refresh("products"),
        Refresh("products", ["p1", 7, ("eu", 3)], None),
        Refresh("products", None, "eu-"),
        Stats(),
        Stats("products"),
        Misses("products", ["p1", 7, ("eu", 3)]),
        UnknownCommand("dance"),
    ],
)
def test_a_command_is_read_as_it_was_given(command: Command) -> None:
    assert command_of(command_bytes(command)) == command


def test_a_command_has_the_members_that_any_producer_may_write() -> None:
    written = orjson.loads(command_bytes(Refresh("products", [("eu", 3)], id="r1")))
    assert written == {"id": "r1", "command": "refresh", "dictionary": "products", "keys": [["eu", 3]], "prefix": None}
    assert command_of(b'{"id":"r2","command":"refresh","dictionary":"products"}') == Refresh("products", id="r2")


def test_values_that_json_has_not_travel_as_texts() -> None:
    given = Refresh("products", [date(2026, 1, 31), Decimal("1.50"), b"raw"])
    assert orjson.loads(command_bytes(given))["keys"] == ["2026-01-31", "1.50", "raw"]


@pytest.mark.parametrize("value", [b"", b"no json", b"[]", b'"stats"', b'{"command":"stats"}', b'{"id":7}'])
def test_what_is_no_command_is_left_alone(value: bytes) -> None:
    assert command_of(value) is None
    assert answer_of(value) is None


@pytest.mark.parametrize("outcome", [Outcome(True, {"invalidated": 2}), Outcome.failed("the source is away")])
def test_an_answer_is_read_as_it_was_given(outcome: Outcome) -> None:
    assert outcome_of(outcome_bytes(outcome)) == outcome
    answer = Answer("r1", "host-4242", outcome)
    assert answer_of(answer_bytes(answer)) == answer


def test_an_answer_has_the_members_of_the_page() -> None:
    written = orjson.loads(answer_bytes(Answer("r1", "host-4242", Outcome(True, {"invalidated": 2}))))
    assert written == {"id": "r1", "worker": "host-4242", "ok": True, "detail": {"invalidated": 2}}


def test_a_failure_without_a_reason_is_one_too() -> None:
    answer = answer_of(b'{"id":"r1","worker":"w","ok":false}')
    assert answer is not None
    assert answer.outcome.error == "it gave no reason"


def test_no_outcome_is_an_error_of_the_process_that_sent_it() -> None:
    with pytest.raises(ValueError, match="no outcome"):
        outcome_of(b"<html>")
