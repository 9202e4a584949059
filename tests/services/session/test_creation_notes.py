"""What a CREATE says of words that mean less than one may think; what it offers says no more."""

from __future__ import annotations

import pytest

from dovetail.services.session.creation_notes import creation_notes
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream

KAFKA = "SETTINGS type = 'kafka', brokers = 'h:9092', topic = 't'"


def said_of(statement: str) -> str:
    made = parse_one(statement)
    assert isinstance(made, CreateStream)
    return creation_notes(made)


@pytest.mark.parametrize("columns", ["(id int PRIMARY KEY)", "(id int) PRIMARY KEY id", "(id int, PRIMARY KEY (id))"])
def test_a_primary_key_of_an_append_stream_says_nothing(columns: str) -> None:
    said = said_of(f"CREATE STREAM s {columns}")
    assert "PRIMARY KEY (id) says nothing" in said
    for offered in ("CREATE MUTABLE STREAM", "mode = 'versioned_kv'"):
        assert offered in said
    assert said_of(f"CREATE MUTABLE STREAM s {columns}") == ""
    assert said_of(f"CREATE STREAM s {columns} SETTINGS mode = 'versioned_kv'") == ""


def test_nor_does_that_of_a_table_of_all_records() -> None:
    assert "leave APPEND ONLY out" in said_of("CREATE TABLE t (id INT PRIMARY KEY) APPEND ONLY")
    assert said_of("CREATE TABLE t (id INT PRIMARY KEY)") == ""


def test_one_text_of_an_external_stream_may_be_meant_as_the_whole_record() -> None:
    assert "data_format = 'RawBLOB'" in said_of(f"CREATE EXTERNAL STREAM s (raw string) {KAFKA}")
    assert said_of(f"CREATE EXTERNAL STREAM s (raw string) {KAFKA}, data_format = 'RawBLOB'") == ""
    assert said_of(f"CREATE EXTERNAL STREAM s (raw string) {KAFKA}, data_format = 'JSONEachRow'") == ""


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE STREAM s (id int)",
        "CREATE STREAM s (raw string)",
        f"CREATE EXTERNAL STREAM s (id int) {KAFKA}",
        f"CREATE EXTERNAL STREAM s (a string, b string) {KAFKA}",
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "CREATE SOURCE t (raw VARCHAR) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON",
    ],
)
def test_of_all_else_nothing_is_said(statement: str) -> None:
    assert said_of(statement) == ""
