"""Nothing that tests start outlives their process, in whatever way that ends: ``kill -9`` too.

    python -m tests.left_behind MARK

What a process of tests starts, and what that starts in turn, carries a mark in its environment, in whatever session or
process group it is. A process of its own holds the other end of a pipe: when the tests are gone, it asks what is left
to end, and kills what does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from contextlib import suppress

import psutil

from tests.paths import ROOT

MARK = "TESTS_RUN"
"""No variable of Dovetail: those are taken away from what must find its settings by itself."""
_GRACE_S = 10.0
_POLL_S = 0.2


def end_with_this_process() -> None:
    """What this process starts from here on ends with it."""
    mark = uuid.uuid4().hex
    # Nobody inherits the end that writes: it is closed when this process is gone.
    end_of_pipe, _ = os.pipe()
    subprocess.run([sys.executable, "-m", "tests.left_behind", mark], cwd=ROOT, stdin=end_of_pipe, check=True)
    os.close(end_of_pipe)
    os.environ[MARK] = mark


def started_by(mark: str) -> set[psutil.Process]:
    """The processes with the mark, and their children: some servers write over their environment."""
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        if _mark_of(process) == mark:
            with suppress(psutil.Error):
                found |= {process, *process.children(recursive=True)}
    return alive(found)


def _mark_of(process: psutil.Process) -> str | None:
    with suppress(psutil.Error, OSError):
        found: str | None = process.environ().get(MARK)
        return found
    return None


def alive(processes: set[psutil.Process]) -> set[psutil.Process]:
    """Those that run. One that nobody has reaped yet has ended."""
    return {process for process in processes if _runs(process)}


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def end(mark: str, grace_s: float) -> None:
    """Until nothing is left: what is ended may have started something meanwhile."""
    left = started_by(mark)
    for process in left:
        with suppress(psutil.Error):
            process.terminate()
    deadline = time.monotonic() + grace_s
    while left := alive(left) | started_by(mark):
        if time.monotonic() > deadline:
            for process in left:
                with suppress(psutil.Error):
                    process.kill()
        time.sleep(_POLL_S)


def main(mark: str) -> None:
    """In a session of its own, where no Ctrl-C and no hang-up of the tests reaches it; who started it does not wait."""
    if os.fork() != 0:
        return
    os.setsid()
    sys.stdin.buffer.read()
    end(mark, _GRACE_S)


if __name__ == "__main__":
    main(sys.argv[1])
