"""The number that grows with each wish of a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.catalog import Actual, Catalog, Desired
from dovetail.sql.catalog.records import Query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, Drop


def stream(name: str) -> CreateStream:
    parsed = parse_one(f"CREATE STREAM {name} (k int)")
    assert isinstance(parsed, CreateStream)
    return parsed


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog.open(f"sqlite:///{tmp_path}/catalog.db")


def test_each_wish_of_another_process_is_seen_and_what_is_reported_is_none(catalog: Catalog, tmp_path: Path) -> None:
    other = Catalog.open(f"sqlite:///{tmp_path}/catalog.db")
    seen = [catalog.wishes()]
    other.create(stream("s"), now_ms=0)
    seen.append(catalog.wishes())
    query = other.add_query(Query("v", "SELECT 1 AS v", "Plan", "f00d", "v"), now_ms=0)
    seen.append(catalog.wishes())
    other.want("v", Desired.PAUSED, now_ms=0)
    seen.append(catalog.wishes())
    other.drop(Drop("stream", "s"), now_ms=0)
    seen.append(catalog.wishes())
    assert len(set(seen)) == len(seen)
    assert None not in seen
    other.report(query.id, now_ms=0, actual=Actual.RUNNING)
    assert catalog.wishes() == seen[-1]


def test_what_was_taken_back_was_no_wish(catalog: Catalog) -> None:
    catalog.create(stream("s"), now_ms=0)
    before = catalog.wishes()
    with pytest.raises(SqlError):
        catalog.create(stream("s"), now_ms=0)
    assert catalog.wishes() == before


def test_a_catalog_in_memory_has_to_be_looked_at() -> None:
    assert Catalog.open("sqlite://").wishes() is None
