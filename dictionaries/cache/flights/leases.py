"""Keeping the locks of keys for as long as the source is asked for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock, Thread

from changelog.errors import ServiceUnavailable
from changelog.lookup import Key

LOCK_MS = 3_000
"""A worker that dies while it asks holds the others up for so long."""
_EVERY_S = LOCK_MS / 3000


@dataclass(frozen=True)
class Lease:
    """The locks that a claim took; what is fetched under it may be stored."""

    token: str
    version: str
    sweep: str


class LeaseKeeper:
    """One thread that has the locks of all leases in use live on, every second.

    A lock as long as the slowest statement would hold the others up as long after a death; one that is short and not
    kept would be over before a slow statement is, and others would ask a source that is slow already once more.
    """

    def __init__(self, extend: Callable[[Lease, Sequence[Key]], None]) -> None:
        self._extend = extend
        self._held: dict[Lease, Sequence[Key]] = {}
        self._lock = Lock()
        self._closing = Event()
        self._thread: Thread | None = None

    @contextmanager
    def keeping(self, lease: Lease, keys: Sequence[Key]) -> Iterator[None]:
        with self._lock:
            self._held[lease] = keys
            if self._thread is None:
                self._thread = Thread(target=self._run, name="keep leases", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._held[lease]

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._closing.wait(_EVERY_S):
            with self._lock:
                held = list(self._held.items())
            for lease, keys in held:
                try:
                    self._extend(lease, keys)
                except ServiceUnavailable:
                    break  # without Redis nobody sees a lock
