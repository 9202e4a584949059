"""Queries in a process of their own (``tests.spark.host``), which the test may kill."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.paths import ROOT


class HostedQueries:
    """The queries in one process of their own, which takes longer to start than they take for their batches."""

    def __init__(self, folder: Path, *chosen: Mapping[str, object]) -> None:
        self._offsets = [folder / str(one["name"]) / "spark" / "offsets" for one in chosen]
        file = folder / "host.json"
        file.write_text(json.dumps({"folder": str(folder), "queries": chosen}))
        with (folder / "host.log").open("ab") as log:
            command = [sys.executable, "-m", "tests.spark.host", str(file)]
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def kill_after(self, seconds: float, batches: int = 1) -> None:
        """Kill the whole tree ``seconds`` after the next batch of each query has begun, or that many."""
        begun = self._batches()
        while any(now < before + batches for now, before in zip(self._batches(), begun, strict=True)):
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

    def _batches(self) -> list[int]:
        return [sum(1 for _ in offsets.glob("[0-9]*")) for offsets in self._offsets]

    def _stays_for(self, seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"the host ended by itself: {self._process.wait(seconds)}")
