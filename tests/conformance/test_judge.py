"""The judge must be able to fail: a script of hand-made outputs stands in for an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dovetail.changelog.errors import DovetailError, InternalError, StateLimitExceeded, Unsupported
from dovetail.sql.query_settings import Value
from tests.conformance.case import Case, Row, Wait
from tests.conformance.engine import Change, NotRunnable
from tests.conformance.load import parse_case
from tests.conformance.runner import Outcome, run_case

Script = Mapping[int, Sequence[tuple[Mapping[str, object], int]]]
"""Per step (0: at the start) the changes that come out."""


@dataclass
class Scripted:
    """An engine that emits what it is told."""

    script: Script
    answer: Sequence[Row] = ()
    at_start: Exception | None = None
    at_step: Exception | None = None
    step: int = -1

    def create(self, statement: str) -> None: ...

    def start(self, query: str, settings: Mapping[str, Value]) -> None:
        if self.at_start:
            raise self.at_start

    def take(self) -> None:
        if self.at_step:
            raise self.at_step

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        self.take()

    def update(self, table: str, pairs: Sequence[tuple[Row, Row]]) -> None:
        self.take()

    def delete(self, table: str, rows: Sequence[Row]) -> None:
        self.take()

    def source(self, table: str, rows: Sequence[Row], deleted: Sequence[Row]) -> None:
        self.take()

    def run(self, statement: str) -> None:
        self.take()

    def wait(self, kind: Wait) -> None:
        self.take()

    def restart(self) -> None:
        self.take()

    def drain(self) -> list[Change]:
        self.step += 1
        return [Change(row, delta) for row, delta in self.script.get(self.step, ())]

    def snapshot(self, query: str) -> list[Row]:
        return list(self.answer)

    def close(self) -> None: ...


def case(expect: dict[str, Any], **fields: Any) -> Case:
    base: dict[str, Any] = {
        "id": "c",
        "origin": "own",
        "feature": "f",
        "tier": 1,
        "ddl": ["CREATE STREAM a (k int)"],
        "settings": {},
        "steps": [{"insert": {"table": "a", "rows": [{"k": 1}]}}, {"insert": {"table": "a", "rows": [{"k": 2}]}}],
        "query": "SELECT k, v FROM a",
        "expect": expect,
    }
    return parse_case({**base, **fields})


def judged(case: Case, script: Script, **more: Any) -> Outcome:
    return run_case(case, lambda _: Scripted(script, **more))


def row(k: object, v: object = None) -> dict[str, object]:
    return {"k": k, "v": v}


def changed(step: int, k: object, v: object, delta: int) -> dict[str, object]:
    return {"_step": step, "k": k, "v": v, "_tp_delta": delta}


CHANGELOG = case(
    {
        "mode": "changelog",
        "columns": ["k", "v"],
        "key": ["k"],
        "rows": [changed(1, 1, 10, 1), changed(2, 1, 10, -1), changed(2, 1, 20, 1)],
    }
)
TABLE = case({"mode": "table", "columns": ["k", "v"], "rows": [row(1, "x"), row(1, "x")]})
ROWS = case({"mode": "rows", "columns": ["k", "v"], "rows": [row(1, 0.1), row(2)]})
ERROR = case({"mode": "error", "about": "a limit"})


@pytest.mark.parametrize(
    ("case", "script"),
    [
        (CHANGELOG, {1: [(row(1, 10), 1)], 2: [(row(1, 10), -1), (row(1, 20), 1)]}),
        (CHANGELOG, {1: [(row(1, 5), 1), (row(1, 5), -1), (row(1, 10), 1)], 2: [(row(1, 10), -1), (row(1, 20), 1)]}),
        (TABLE, {1: [(row(1, "x"), 1), (row(2, "y"), 1)], 2: [(row(2, "y"), -1), (row(1, "x"), 1)]}),
        (ROWS, {2: [(row(True, 0.1000000000001), 1), (row(2.0), 1)]}),
    ],
    ids=["changelog", "no-op cancels", "table", "numbers by value"],
)
def test_right_output_passes(case: Case, script: Script) -> None:
    assert judged(case, script).faults == ()


@pytest.mark.parametrize(
    ("case", "script", "fault"),
    [
        (CHANGELOG, {1: [(row(1, 10), 1)]}, "step 2: +0 instead of -1 of (1, 10)"),
        (
            CHANGELOG,
            {1: [(row(1, 10), 1), (row(2, 1), 1)], 2: [(row(1, 10), -1), (row(1, 20), 1)]},
            "step 1: +1 instead of +0 of (2, 1)",
        ),
        (CHANGELOG, {1: [(row(1, 10), 1), (row(1, 10), -1), (row(1, 20), 1)]}, "step 1: +0 instead of +1 of (1, 10)"),
        (
            CHANGELOG,
            {1: [(row(1, 10), 1)], 2: [(row(1, 20), 1), (row(1, 10), -1)]},
            "inserted while its key (1) is taken: (1, 20)",
        ),
        (
            CHANGELOG,
            {1: [(row(1, 10), -1), (row(1, 10), 1), (row(1, 10), 1)], 2: [(row(1, 10), -1), (row(1, 20), 1)]},
            "retracted while it is not there: (1, 10)",
        ),
        (TABLE, {1: [(row(1, "x"), 1)]}, "+1 instead of +2 of (1, 'x')"),
        (TABLE, {1: [(row(1, "x"), 3)]}, "+3 instead of +2 of (1, 'x')"),
        (TABLE, {1: [(row(1, "x"), 2), (row(9), -1)]}, "retracted while it is not there: (9, NULL)"),
        (TABLE, {1: [(row(1, "x "), 2)]}, "+2 instead of +0 of (1, 'x ')"),
        (
            ROWS,
            {1: [(row(1, 0.1), 1), (row(2), 1), (row(2), 1)], 2: [(row(2), -1)]},
            "a retraction in an append output: (2, NULL)",
        ),
        (ROWS, {1: [(row(1, 0.11), 1), (row(2), 1)]}, "+1 instead of +0 of (1, 0.11)"),
        (ROWS, {1: [(row(1, 0.1), 1), (row("2"), 1)]}, "+1 instead of +0 of ('2', NULL)"),
        (ROWS, {1: [(row(1, 0.1), 1), (row(2, 0), 1)]}, "+0 instead of +1 of (2, NULL)"),
        (ROWS, {1: [({"k": 1}, 1)]}, "columns ['k'] instead of ['k', 'v']"),
        (ROWS, {}, "+0 instead of +1 of (2, NULL)"),
    ],
)
def test_wrong_output_fails(case: Case, script: Script, fault: str) -> None:
    assert fault in judged(case, script).faults


def test_key_of_no_columns_is_at_most_one_row() -> None:
    one_row = case({"mode": "changelog", "columns": ["k"], "key": [], "rows": [{"_step": 1, "k": 1, "_tp_delta": 1}]})
    assert judged(one_row, {1: [({"k": 1}, 1)]}).passed
    assert "inserted while its key () is taken: (2)" in judged(one_row, {1: [({"k": 1}, 1), ({"k": 2}, 1)]}).faults


def test_checks_look_at_the_step_they_name() -> None:
    checked = replace(
        TABLE,
        checks=case(
            {"mode": "table", "columns": ["k", "v"], "rows": []}, checks=[{"after_step": 1, "rows": [row(1, "x")]}]
        ).checks,
    )
    assert judged(checked, {1: [(row(1, "x"), 1)], 2: [(row(1, "x"), 1)]}).passed
    assert judged(checked, {2: [(row(1, "x"), 2)]}).faults == ("after step 1: +0 instead of +1 of (1, 'x')",)


def test_changes_between_emits_count_under_the_next_one() -> None:
    steps = [{"insert": {"table": "a", "rows": [{"k": 1}]}}, {"wait": "emit"}]
    periodic = case({"mode": "changelog", "columns": ["k", "v"], "rows": [changed(2, 1, 2, 1)]}, steps=steps)
    assert judged(periodic, {1: [(row(1, 1), 1)], 2: [(row(1, 1), -1), (row(1, 2), 1)]}).passed


def test_queries_after_the_last_step_are_compared() -> None:
    then = {"query": "SELECT 1", "mode": "table", "columns": ["n"], "rows": [{"n": 1}]}
    followed = case({"mode": "table", "columns": ["k", "v"], "rows": [], "then": [then]})
    assert judged(followed, {}, answer=[{"n": 1.0}]).passed
    assert "then 1: +1 instead of +0 of (2)" in judged(followed, {}, answer=[{"n": 2}]).faults


def test_an_error_passes_only_when_it_is_typed_and_the_users() -> None:
    refused = judged(ERROR, {}, at_step=StateLimitExceeded("too many rows"))
    assert refused.passed
    assert refused.refusal == "StateLimitExceeded: too many rows"
    assert judged(ERROR, {}).faults == ("no error, expected: a limit",)
    assert judged(ERROR, {}, at_step=ZeroDivisionError("x")).faults == ("crash: ZeroDivisionError: x",)
    assert judged(ERROR, {}, at_step=InternalError("x")).faults == ("crash: InternalError: x",)
    assert judged(ERROR, {}, at_step=NotRunnable("no such step")).faults == ("NotRunnable: no such step",)
    assert not judged(ERROR, {}, at_step=Unsupported("joins are not in this release")).passed


def test_a_query_without_steps_is_refused_when_it_is_planned() -> None:
    planned = replace(ERROR, steps=())
    assert judged(planned, {}, at_start=Unsupported("no such join")).passed
    assert judged(planned, {}).faults == ("no error, expected: a limit",)


@pytest.mark.parametrize("error", [Unsupported("no such join", fix="another"), InternalError("broken")])
def test_an_error_that_no_case_asks_for_fails(error: DovetailError) -> None:
    assert not judged(ROWS, {}, at_start=error).passed


def test_a_case_that_may_be_refused_may_be_refused_at_planning_time_only() -> None:
    either = replace(ROWS, may_refuse=True)
    assert judged(either, {}, at_start=Unsupported("no equality")).passed
    assert not judged(either, {}, at_step=Unsupported("no equality")).passed
    assert judged(either, {1: [(row(1, 0.1), 1), (row(2), 1)]}).passed
