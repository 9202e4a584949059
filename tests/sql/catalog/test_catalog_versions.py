"""A catalog that an earlier release has made, a later one, or nobody."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dovetail.changelog.errors import StackError
from dovetail.sql.catalog import Catalog
from dovetail.sql.catalog.metadata_tables import FORMAT, VERSION


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A catalog as this release makes it."""
    made = tmp_path / "catalog.db"
    Catalog.open(f"sqlite:///{made}").close()
    return made


def run(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def content(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.iterdump())


def test_one_of_a_later_release_is_refused_and_left_as_it_is(file: Path) -> None:
    run(file, f"UPDATE {FORMAT.name} SET version = {VERSION + 1}")
    run(file, "DROP TABLE leaders")
    before = content(file)

    with pytest.raises(StackError, match=f"version {VERSION + 1}, and this release knows {VERSION}") as refused:
        Catalog.open(f"sqlite:///{file}")

    assert str(file) in refused.value.where
    assert "run that release" in refused.value.fix
    assert content(file) == before


def test_one_that_is_older_than_versions_gets_its_own(file: Path) -> None:
    run(file, f"DROP TABLE {FORMAT.name}")

    for _ in range(2):
        Catalog.open(f"sqlite:///{file}").close()

    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute(f"SELECT version FROM {FORMAT.name}").fetchall() == [(VERSION,)]


def test_a_file_that_is_no_catalog_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    file.write_bytes(b"these are the notes of somebody else, and no database" * 100)
    before = file.read_bytes()

    with pytest.raises(StackError, match="cannot be read: file is not a database") as refused:
        Catalog.open(f"sqlite:///{file}")

    assert "backup" in refused.value.fix
    assert file.read_bytes() == before
