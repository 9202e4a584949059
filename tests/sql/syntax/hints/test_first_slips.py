"""Slips of a first day: each is refused with the place and a statement that works as it is written."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, Select


@pytest.mark.parametrize(
    ("slip", "what", "fix", "mended"),
    [
        ("CREATE STREAM bad-name (a int)", r'expected "\(", found -', '"a-b"', 'CREATE STREAM "a-b" (a int)'),
        ("CREATE STREAM s ()", "at least one column", "(id int)", "CREATE STREAM s (id int)"),
        (
            "CREATE SOURCE pg WITH (connector = 'postgres-cdc')",
            "there is no connector postgres-cdc",
            "FORMAT DEBEZIUM ENCODE JSON",
            "CREATE TABLE pg (id int PRIMARY KEY) WITH (connector = 'kafka', topic = 'pg') FORMAT DEBEZIUM ENCODE JSON",
        ),
        ("UNDROP STREAM s", "there is no statement UNDROP", "CREATE it again", "CREATE STREAM s (id int)"),
    ],
)
def test_a_slip_of_ddl(slip: str, what: str, fix: str, mended: str) -> None:
    with pytest.raises(SqlError, match=what) as refused:
        parse_one(slip)
    assert fix in refused.value.fix
    assert isinstance(parse_one(mended), CreateStream)


@pytest.mark.parametrize(
    ("source", "clause"), [("t", "LIMIT -1"), ("table(t)", "LIMIT -1"), ("table(t)", "OFFSET -1"), ("t", "LIMIT 'x'")]
)
def test_a_limit_is_no_name(source: str, clause: str) -> None:
    catalog = Catalog.open("sqlite://")
    stream = parse_one("CREATE STREAM t (id int)")
    assert isinstance(stream, CreateStream)
    catalog.create(stream, now_ms=0)
    query = parse_one(f"SELECT id FROM {source} {clause}")
    assert isinstance(query, Select)
    with pytest.raises(SqlError, match=r"takes a whole number, 0 or more") as refused:
        plan_query("q", query, catalog)
    assert refused.value.where == f"in {clause.split(maxsplit=1)[0]}"
    assert "LIMIT 10" in refused.value.fix
