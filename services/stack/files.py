"""The files of a stack, all under ``data_dir``."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dovetail.runtime.logs.log_files import LogLimits, cut, shift
from dovetail.runtime.settings import Settings

_TAIL_BYTES = 65_536


@dataclass(frozen=True)
class StackFiles:
    """Where one stack keeps its state, its wishes and its logs."""

    settings: Settings

    @property
    def state(self) -> Path:
        return self.settings.data_dir / "stack.json"

    @property
    def wanted(self) -> Path:
        """From ``Stack`` to the supervisor: a request's id, then the names of the components asked for."""
        return self.settings.data_dir / "stack.wanted"

    def lock(self, name: str) -> Path:
        return self.settings.data_dir / f"{name}.lock"

    def log(self, name: str) -> Path:
        return self.settings.log_dir / f"{name}.log"

    def fresh_log(self, name: str) -> Path:
        """The log of a new start; what the start before has said is in the files with a number."""
        log = self.log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        shift(log, self.settings.log_files)
        return log

    def cut_log(self, name: str) -> None:
        """Bound the size of a log that a component is writing to."""
        cut(self.log(name), LogLimits(self.settings.log_max_bytes, self.settings.log_files))


def tail(path: Path, lines: int = 20) -> str:
    """The last lines of a log, or an empty text when there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file; ``BlockingIOError`` at once when another holds it and ``wait`` is false."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
