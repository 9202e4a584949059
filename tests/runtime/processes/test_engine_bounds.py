"""What DuckDB takes in a process is what the settings say, in parts for its threads."""

from __future__ import annotations

import stat
from pathlib import Path
from threading import Thread

import pytest

from dovetail.runtime.processes.engine_bounds import bounded_engine
from dovetail.runtime.settings import Settings
from dovetail.sql.expressions.engine_calls.bounds import bounds_of_process
from dovetail.sql.expressions.engine_calls.duckdb_connection import connection


@pytest.mark.parametrize(("threads", "limit"), [(1, "512.0 MiB"), (4, "128.0 MiB"), (64, "64.0 MiB")])
def test_threads_share_the_memory_and_spill_in_the_scratch_folder(tmp_path: Path, threads: int, limit: str) -> None:
    settings = Settings(data_dir=tmp_path, engine_memory_mb=512)
    found: list[tuple[str, Path]] = []

    def look() -> None:
        rows = connection().execute(
            "SELECT value FROM duckdb_settings() WHERE name IN ('memory_limit', 'temp_directory') ORDER BY name"
        )
        (memory,), (folder,) = rows.fetchall()
        found.append((memory, Path(folder)))
        connection().close()

    before = bounds_of_process()
    with bounded_engine(settings, threads):
        for _ in range(2):
            thread = Thread(target=look)
            thread.start()
            thread.join()
        assert all(folder.is_relative_to(settings.scratch) for _, folder in found)
        assert {stat.S_IMODE(folder.stat().st_mode) for _, folder in found} == {0o700}
    assert bounds_of_process() == before
    assert {memory for memory, _ in found} == {limit}
    assert len({folder for _, folder in found}) == 2
    assert not any(folder.exists() for _, folder in found)
