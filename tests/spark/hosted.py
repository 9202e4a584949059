"""A query in a process of its own (``tests.spark.host``), which the test may kill."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.paths import ROOT


class HostedQuery:
    """The query in a process of its own."""

    def __init__(self, folder: Path, chosen: dict[str, object]) -> None:
        self._checkpoint = folder / str(chosen["name"]) / "spark"
        file = folder / "host.json"
        file.write_text(json.dumps({"folder": str(folder), **chosen}))
        with (folder / "host.log").open("ab") as log:
            command = [sys.executable, "-m", "tests.spark.host", str(file)]
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def kill_after(self, seconds: float, batches: int = 1) -> None:
        """Kill the whole tree ``seconds`` after the next batch has begun, or that many."""
        begun = self._batches()
        while self._batches() < begun + batches:
            self._stays_for(0.01)
        self._stays_for(seconds)
        tree = [*psutil.Process(self._process.pid).children(recursive=True), psutil.Process(self._process.pid)]
        for process in reversed(tree):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(tree, timeout=30)
        self._process.wait(30)

    def finish(self) -> None:
        assert self._process.wait(180) == 0

    def _batches(self) -> int:
        return sum(1 for _ in (self._checkpoint / "offsets").glob("[0-9]*"))

    def _stays_for(self, seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"the host ended by itself: {self._process.wait(seconds)}")
