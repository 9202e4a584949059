"""``dovetail insert``: files of every format, what does not fit, and the view that is waited for."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, ipc, parquet
from typer.testing import CliRunner

from dovetail.changelog.errors import SqlError
from dovetail.services.cli.insert import insert_files
from dovetail.services.cli.main import app
from dovetail.services.cli.show import Screen
from dovetail.services.file_format import FileFormat
from dovetail.services.session import Session
from dovetail.services.stack import Stack
from tests.services.conftest import Ask

pytestmark = pytest.mark.services
STREAM = "CREATE STREAM orders (id int64, item string, price decimal(10, 2), at datetime64(3))"
TEXTS = {
    "id": [1, 2, 3],
    "item": ["pen", "", "in\nk"],
    "price": ["1.50", "2.00", None],
    "at": ["2026-01-01 10:00:00", None, "2026-01-02 00:00:00.5"],
}
ROWS = pa.table(TEXTS).cast(
    pa.schema({"id": pa.int64(), "item": pa.string(), "price": pa.decimal128(10, 2), "at": pa.timestamp("ms")}.items())
)
SELECT = "SELECT id, item, price::string, at::string FROM table(orders) ORDER BY id"


def written(folder: Path, kind: FileFormat, rows: pa.Table = ROWS) -> Path:
    file = folder / f"orders.{kind}"
    match kind:
        case FileFormat.JSONL:
            file.write_text("\n".join(json.dumps(row) for row in pa.table(TEXTS).to_pylist()))
        case FileFormat.CSV:
            csv.write_csv(rows, file)
        case FileFormat.PARQUET:
            parquet.write_table(rows, file)
        case FileFormat.ARROW:
            with ipc.new_file(file, rows.schema) as writer:
                writer.write_table(rows)
    return file


def inserted(session: Session, *files: Path, kind: FileFormat | None = None, wait: str = "") -> None:
    insert_files(session, Screen(), "orders", files, kind=kind, wait=wait)


@pytest.mark.parametrize("kind", FileFormat)
def test_the_rows_of_a_file_are_those_of_the_stream(
    session: Session, ask: Ask, tmp_path: Path, kind: FileFormat
) -> None:
    session.run(STREAM)
    inserted(session, written(tmp_path, kind))
    assert ask(SELECT) == [
        (1, "pen", "1.5", "2026-01-01 10:00:00.000"),
        (2, "", "2", None),
        (3, "in\nk", None, "2026-01-02 00:00:00.500"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"id": 1}\n\n{"id": "x"}\n', "line 3 does not fit: column id: expected int64"),
        ("a.jsonl", '{"id": 1}\n{"id": 2, "Item": "a"}\n', 'line 2 has a member "Item", which is no column'),
        ("a.jsonl", '{"id": 1}\n{"id": 2\n', "line 2 is no JSON"),
        ("a.jsonl", "[1]\n", "line 1 is no object"),
        ("a.csv", "id,item\n1,a\nx,b\n", "cannot be read as csv"),
        ("a.csv", "id,at\n1,2026-01-01\n2,2026-01-02\n3,yesterday\n", "'yesterday' is no datetime64(3"),
        ("a.csv", "id,nothing\n1,a\n", 'has no column "nothing"'),
        ("a.parquet", "no parquet", "cannot be read as parquet"),
        ("a.arrow", "no arrow", "cannot be read as arrow"),
        ("a.txt", "1", "the name of a.txt does not say what the file holds"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    session: Session, ask: Ask, tmp_path: Path, name: str, text: str, message: str
) -> None:
    session.run(STREAM)
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(SqlError) as fault:
        inserted(session, file)
    assert message in fault.value.what
    assert fault.value.where
    assert ask("SELECT count() FROM table(orders)") == [(0,)]


def test_it_says_how_many_rows_are_there_before_one_that_does_not_fit(
    session: Session, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dovetail.services.session.files.BATCH", 2)
    session.run(STREAM)
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": 1}\n{"id": 2}\n{"id": 3}\n{"id": null, "price": "much"}\n')
    with pytest.raises(SqlError, match=r"line 4 does not fit.*; 2 rows before it are in orders"):
        inserted(session, file)
    assert ask("SELECT id FROM table(orders) ORDER BY id") == [(1,), (2,)]


def test_times_of_csv_may_have_a_zone(session: Session, ask: Ask, tmp_path: Path) -> None:
    session.run(STREAM)
    file = tmp_path / "a.csv"
    file.write_text("id,at\n1,2026-01-01T10:00:00Z\n2,2026-01-01 10:00:00+02:00\n3,2026-01-01\n4,\n")
    inserted(session, file)
    assert [row[1] for row in ask("SELECT id, at::string FROM table(orders) ORDER BY id")] == [
        "2026-01-01 10:00:00.000",
        "2026-01-01 08:00:00.000",
        "2026-01-01 00:00:00.000",
        None,
    ]


def test_there_is_no_such_file(session: Session, tmp_path: Path) -> None:
    session.run(STREAM)
    with pytest.raises(SqlError, match="cannot be read: No such file"):
        inserted(session, tmp_path / "none.csv")


def test_the_view_that_is_waited_for_includes_the_rows(
    running: Stack, session_of_runners: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(running.settings.data_dir))
    session_of_runners.run(STREAM)
    session_of_runners.run(
        "CREATE MATERIALIZED VIEW counted AS SELECT item, count() AS n FROM orders GROUP BY item "
        "SETTINGS seek_to = 'earliest'"
    )
    lines = "".join(f'{{"id": {number}, "item": "{"ab"[number % 2]}"}}\n' for number in range(1000))
    misspelt = CliRunner().invoke(app, ["insert", "orders", "--wait", "count"], input=lines)
    assert 'no stream or view "count"' in misspelt.stderr
    assert "inserted" not in CliRunner().invoke(app, ["insert", "orders", "--wait", "orders"], input=lines).stderr
    result = CliRunner().invoke(app, ["insert", "orders", "--wait", "counted"], input=lines)
    assert result.exit_code == 0, result.stderr
    assert "inserted 1,000 rows into orders" in result.stderr
    [answer] = session_of_runners.run("SELECT item, n FROM table(counted) ORDER BY item")
    assert answer.table.to_pylist() == [{"item": "a", "n": 500}, {"item": "b", "n": 500}]  # type: ignore[union-attr]


@pytest.mark.parametrize(("sign", "shown"), [(";", ";"), ("\t", "a tab"), ("|", "|")])
def test_a_file_whose_columns_are_parted_by_another_sign_is_told(
    session: Session, tmp_path: Path, sign: str, shown: str
) -> None:
    session.run(STREAM)
    file = tmp_path / "orders.csv"
    file.write_text(f"id{sign}item\n1{sign}pen\n")
    with pytest.raises(SqlError, match="those of a CSV file are by commas") as refused:
        inserted(session, file)
    assert f"parted by {shown}," in refused.value.what
    assert f"sep={sign!r}" in refused.value.fix
