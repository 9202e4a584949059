"""The runner of sqllogictest files: each status, and the project's own files through both engines."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from typer import Typer
from typer.testing import CliRunner

from dovetail.sql.syntax.rules import Rules
from tests.sqllogictest import values
from tests.sqllogictest.__main__ import sqllogictest
from tests.sqllogictest.check import Check, Status
from tests.sqllogictest.file_run import FileRun, Limits
from tests.sqllogictest.memory import MemorySession
from tests.sqllogictest.outside import outside
from tests.sqllogictest.script import records
from tests.sqllogictest.touched import is_ordered, without_order

SUITE = Path(__file__).parent / "suite"
TABLE = (
    "statement ok\nCREATE TABLE t (k int PRIMARY KEY, v int)\n\nstatement ok\nINSERT INTO t VALUES (2, 20), (1, 10)\n\n"
)


def ran(folder: Path, text: str, *, as_view: bool = False, statement_s: int = 60) -> list[Check]:
    file = folder / "one.slt"
    file.write_text(text)
    session = MemorySession(Rules.RISINGWAVE)
    try:
        return list(FileRun(session, folder, file, as_view, Limits(statement_s)).checks())
    finally:
        session.close()


@pytest.mark.parametrize(
    ("record", "status"),
    [
        ("query II rowsort\nSELECT * FROM t\n----\n1 10\n2 20\n", Status.PASS),
        ("query II\nSELECT * FROM t\n----\n2   20\n1 10.0\n", Status.PASS),
        ("query II\nSELECT * FROM t ORDER BY k\n----\n2 20\n1 10\n", Status.ORDER),
        ("query II\nSELECT * FROM t\n----\n1 11\n2 20\n", Status.WRONG),
        ("query I\nSELECT k FROM t WHERE k > 5\n----\n", Status.PASS),
        ("query error there is no column\nSELECT w FROM t\n", Status.PASS),
        ("query error\nSELECT k FROM t\n", Status.ACCEPTED),
        ("statement error\nCREATE TABLE u (k int)\n", Status.ACCEPTED),
        ("statement ok\nSELECT nothing_of_that_name(k) FROM t\n", Status.REFUSED),
        ("statement ok\nGRANT ALL ON t TO me\n", Status.NA),
        ("onlyif postgres\nstatement ok\nSELECT 1\n", Status.NA),
        ("system ok\nrm -rf /\n", Status.NA),
        ("include nothing.slt.part\n", Status.NA),
    ],
)
def test_status_of_a_record(tmp_path: Path, record: str, status: Status) -> None:
    assert [check.status for check in ran(tmp_path, TABLE + record)][-1] is status


def test_what_needs_a_refused_statement_is_blocked(tmp_path: Path) -> None:
    text = (
        TABLE
        + "statement ok\nCREATE MATERIALIZED VIEW v AS SELECT nonsense(k) AS k FROM t\n\n"
        + "statement ok\nCREATE VIEW w AS SELECT k FROM v\n\n"
        + "query I\nSELECT k FROM w\n----\n1\n\n"
        + "statement ok\nINSERT INTO t VALUES (3, 'x y')\n\n"
        + "query I\nSELECT count(*) FROM t\n----\n3\n\n"
        + "statement ok\nDROP VIEW w\n"
    )
    statuses = [check.status.value for check in ran(tmp_path, text)]
    assert statuses == ["pass", "pass", "refused", "blocked", "blocked", "refused", "blocked", "blocked"]


def test_an_error_of_dovetails_own_is_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("tests.sqllogictest.session.plan_snapshot", broken)
    [*_, check] = ran(tmp_path, TABLE + "query I\nSELECT k FROM t\n----\n1\n2\n")
    assert (check.status, check.detail) == (Status.CRASH, "RuntimeError: a defect")


def test_a_query_is_asked_as_a_view_too(tmp_path: Path) -> None:
    text = TABLE + "query II\nSELECT k, v FROM t ORDER BY k\n----\n1 10\n2 20\n\nquery I\nSELECT 1\n----\n1\n"
    found = [(check.mode, check.status) for check in ran(tmp_path, text, as_view=True)[2:]]
    assert found == [("", Status.PASS), ("view", Status.PASS), ("", Status.PASS)]


def test_a_statement_that_takes_too_long_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemorySession, "execute", lambda *_: signal.pause())
    [check] = ran(tmp_path, "statement ok\nSELECT 1\n", statement_s=1)
    assert (check.status, check.detail) == (Status.CRASH, "TooLong: more than 1 s")


@pytest.mark.parametrize(
    ("sql", "without"),
    [
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t"),
        ("SELECT a FROM t ORDER BY a LIMIT 3", "SELECT a FROM t ORDER BY a LIMIT 3"),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 1)", "SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 1)"),
        ("SELECT 'order by' FROM t -- order by a", "SELECT 'order by' FROM t -- order by a"),
    ],
)
def test_the_order_of_the_outermost_query_goes(sql: str, without: str) -> None:
    assert without_order(sql) == without
    assert is_ordered(sql) == ("ORDER BY a" in sql and "(" not in sql and "--" not in sql)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (pa.array([None], pa.int32()), "NULL"),
        (pa.array([True]), "t"),
        (pa.array([float("-inf")]), "-Infinity"),
        (pa.array([b"\x01\xff"]), "\\x01ff"),
        (pa.array([[1, None]]), "{1,NULL}"),
        (pa.array([["a,b", 'q"', "null", ""]]), '{"a,b","q\\"","null",""}'),
        (pa.array([{"a": 1, "b": None}]), "(1,)"),
        (pa.array([(14, -3, 3_723_000_500_000)], pa.month_day_nano_interval()), "1 year 2 mons -3 days 01:02:03.0005"),
        (pa.array([-1], pa.date32()), "1969-12-31"),
        (pa.array([-800_000], pa.date32()), "0222-09-04 BC"),
        (pa.array([0], pa.timestamp("us", "UTC")), "1970-01-01 00:00:00+00:00"),
    ],
)
def test_text_of_a_value(array: pa.Array, text: str) -> None:
    assert values.rows(pa.table({"a": array})) == [[text]]


def test_equal_values_are_equal_lines() -> None:
    assert values.canonical("1.50  0.0 -0 2e3 {1, 2}") == values.canonical("1.5 0 0 2000 {1,2}")
    assert values.canonical("1.5") != values.canonical("1.51")
    assert values.canonical("2026-01-01 00:00:00.500") == values.canonical("2026-01-01 00:00:00.5")


def test_outside_is_by_words_and_not_by_texts() -> None:
    assert outside("SELECT current_setting('x')")
    assert not outside("SELECT 'SELECT current_setting()' AS x FROM settings")


def test_an_included_file_stands_in_its_place() -> None:
    lines = [(record.file, record.expects) for record in records(SUITE / "joins.slt", SUITE)]
    assert lines[11:15] == [("drop.slt.part", "error"), *[("drop.slt.part", "ok")] * 3]


def invoked(*arguments: str) -> tuple[int, str, list[Mapping[str, object]]]:
    """The exit code, the last line, and the checks of the JSON file, which is the last of the arguments."""
    application = Typer()
    application.command()(sqllogictest)
    result = CliRunner().invoke(application, ["--suite", str(SUITE), "--json", *arguments])
    found: list[Mapping[str, object]] = json.loads(Path(arguments[0]).read_text())["checks"]
    return result.exit_code, result.output.splitlines()[-1], found


def test_own_files_in_memory(tmp_path: Path) -> None:
    code, last, checks = invoked(str(tmp_path / "checks.json"))
    assert (code, {check["status"] for check in checks}) == (0, {"pass"}), last
    own = list(SUITE.rglob("*.slt"))
    assert last.startswith(f"{len(own)} files, {len(checks)} checks: {len(checks)} pass, 0 refused")


def test_own_files_record_by_record(tmp_path: Path) -> None:
    code, last, _ = invoked(str(tmp_path / "checks.json"), "--batch", "1", "--as-view", "always")
    assert code == 0, last


@pytest.mark.services
def test_own_files_through_kafka_and_spark(tmp_path: Path) -> None:
    code, last, checks = invoked(str(tmp_path / "checks.json"), "--engine", "services")
    assert (code, {check["status"] for check in checks}) == (0, {"pass"}), last
