"""A new SQLite file that many open at once."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from dovetail.changelog.work.sqlite_file import write_ahead

FILES, OPENERS = 40, 8


def test_a_new_file_is_opened_by_many_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(OPENERS)

    def mode_of(path: Path) -> str:
        together.wait()
        with closing(sqlite3.connect(path, timeout=15, isolation_level=None)) as file:
            write_ahead(file)
            file.execute("CREATE TABLE IF NOT EXISTS t (x)")
            [(mode,)] = file.execute("PRAGMA journal_mode")
            return str(mode)

    with ThreadPoolExecutor(OPENERS) as openers:
        for number in range(FILES):
            path = tmp_path / f"{number}.db"
            assert set(openers.map(mode_of, [path] * OPENERS)) == {"wal"}


def test_a_file_that_stays_locked_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as holder,
        closing(sqlite3.connect(path, timeout=0.05)) as file,
    ):
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            write_ahead(file)


def test_a_file_that_is_no_database_is_told_of_at_once(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    path.write_text("no database, but text that is long enough to be read as one" * 20)
    with closing(sqlite3.connect(path)) as file, pytest.raises(sqlite3.DatabaseError, match="not a database"):
        write_ahead(file)
