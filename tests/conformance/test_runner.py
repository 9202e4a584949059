"""The runner around the judge: reading cases, choosing among them, turning rows into records, the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from dovetail.changelog.schema import Column, Kind, StreamSchema
from tests.conformance.case import CaseFault, Insert, Mode, Update
from tests.conformance.load import load, parse_case
from tests.conformance.records import Record, deleted, inserted, updated
from tests.conformance.selection import Selection
from tests.paths import CASES

ENTRY = {
    "id": "one",
    "origin": "own",
    "feature": "regular-inner",
    "tier": 1,
    "ddl": ["CREATE TABLE a (k INT)"],
    "settings": {},
    "steps": [{"insert": {"table": "a", "rows": [{"k": 1}]}}],
    "query": "SELECT k FROM a",
    "expect": {"mode": "table", "columns": ["k"], "rows": [{"k": 1}]},
}


def test_all_cases_of_the_repository_are_read() -> None:
    suite = load(CASES)
    assert suite.misfits == []
    assert len(suite.cases) == sum(len(yaml.safe_load(file.read_text())) for file in CASES.rglob("*.yaml"))


def test_a_case_is_read_in_full() -> None:
    case = parse_case(ENTRY)
    assert (case.id, case.expect.mode, case.steps) == ("one", Mode.TABLE, (Insert("a", ({"k": 1},)),))


@pytest.mark.parametrize(
    "change",
    [
        {"colour": "red"},
        {"steps": [{"insert": {"table": "a"}}]},
        {"steps": [{"wait": "forever"}]},
        {"steps": [{"insert": {"table": "a", "rows": []}, "start": "query"}]},
        {"expect": {"mode": "tables", "columns": ["k"], "rows": []}},
        {"expect": {"mode": "table", "columns": ["k"], "rows": [{"v": 1}]}},
        {"expect": {"mode": "changelog", "columns": ["k"], "rows": [{"k": 1, "_step": 9, "_tp_delta": 1}]}},
        {"checks": [{"after_step": 2, "rows": []}]},
    ],
)
def test_what_the_format_does_not_know_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(CaseFault):
        parse_case({**ENTRY, **change})


def test_a_bad_entry_is_a_misfit_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump([ENTRY, {**ENTRY, "id": "two"}, ENTRY, {"id": "three"}, 4]))
    (tmp_path / "b.yaml").write_text("- {")
    suite = load(tmp_path)
    assert [case.id for case in suite.cases] == ["one", "two"]
    assert [misfit.id for misfit in suite.misfits] == ["one", "three", "a.yaml#5", "b.yaml"]


def test_unquoted_times_are_the_text_that_the_format_asks_for() -> None:
    rows = yaml.safe_load("[{t: 2024-01-02 03:04:05.5, d: 2024-01-02, s: 2024-01-02 03:04:05}]")
    case = parse_case({**ENTRY, "steps": [{"insert": {"table": "a", "rows": rows}}]})
    assert case.steps == (
        Insert("a", ({"t": "2024-01-02 03:04:05.5", "d": "2024-01-02", "s": "2024-01-02 03:04:05"},)),
    )


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    cases = load(CASES).cases
    drawn = Selection(sample=20, seed=7).of(cases)
    assert len(drawn) == 20
    assert drawn == Selection(sample=20, seed=7).of(cases)
    assert drawn != Selection(sample=20, seed=8).of(cases)
    assert {case.feature for case in Selection(features=["lookup"], tier=1).of(cases)} == {"lookup"}


def stream(kind: Kind, *primary_key: str) -> StreamSchema:
    return StreamSchema("s", (Column("k", pa.int32()), Column("v", pa.string())), kind, primary_key)


def fields(record: Record) -> tuple[object, object]:
    return (
        None if record.key is None else json.loads(record.key),
        None if record.value is None else json.loads(record.value),
    )


def test_rows_of_an_append_stream_have_no_key_and_no_count() -> None:
    (record,) = inserted(stream(Kind.APPEND), [{"k": 1, "v": "a", "_tp_time": "1970-01-01 00:00:01.5"}])
    assert fields(record) == (None, {"k": 1, "v": "a"})
    assert record.timestamp_ms == 1500


def test_a_key_that_moves_is_deleted_first() -> None:
    upserts = stream(Kind.UPSERT, "k")
    pairs = Update("s", (({"k": 1, "v": "a"}, {"k": 2, "v": "a"}), ({"k": 2, "v": "a"}, {"k": 2, "v": "b"}))).rows
    assert [fields(record) for record in updated(upserts, pairs)] == [
        ({"k": 1}, None),
        ({"k": 2}, {"k": 2, "v": "a"}),
        ({"k": 2}, {"k": 2, "v": "b"}),
    ]
    assert [fields(record) for record in deleted(upserts, [{"k": 2, "v": "b"}])] == [({"k": 2}, None)]


def test_a_changelog_counts_whole_rows() -> None:
    old, new = {"k": 1, "v": "a"}, {"k": 1, "v": "b"}
    assert [fields(record) for record in updated(stream(Kind.CHANGELOG), [(old, new)])] == [
        (None, {**old, "_tp_delta": -1}),
        (None, {**new, "_tp_delta": 1}),
    ]
    assert [fields(record) for record in deleted(stream(Kind.CHANGELOG_KV, "k"), [old])] == [
        ({"k": 1}, {**old, "_tp_delta": -1})
    ]


def test_the_command_ends_with_the_counts_and_says_why_a_case_failed(tmp_path: Path) -> None:
    wrong = {**ENTRY, "id": "wrong", "expect": {"mode": "table", "columns": ["k"], "rows": [{"k": 2}]}}
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump([ENTRY, wrong]))
    command = [
        sys.executable,
        "-m",
        "tests.conformance",
        "--cases",
        str(tmp_path),
        "--json",
        str(tmp_path / "out.json"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.stdout.splitlines()[-1] == "1 passed, 1 failed"
    assert ended.returncode == 1
    assert "FAILED wrong (regular-inner) +0 instead of +1 of (2)" in ended.stdout
    outcomes = json.loads((tmp_path / "out.json").read_text())
    assert (outcomes["passed"], outcomes["failed"], outcomes["engine"]) == (1, 1, "memory")
    assert subprocess.run([*command, "--case", "one"], capture_output=True, timeout=120, check=False).returncode == 0
