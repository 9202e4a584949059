"""A lease that is kept while this process lives: for work that two processes must not do at once."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable

import psutil

from changelog.errors import ServiceUnavailable, StackError
from runtime.clock import now_ms
from sql.catalog import Catalog, Leadership

LEASE_S = 10.0
"""After so long without a word the holder is taken to be gone."""
_RENEW_S = 2.0


class SoleHolder:
    """Holds the lease ``name`` from the start on, renewed by a thread of its own.

    lost  called once when another process has taken it: it was away for longer than the lease
    """

    def __init__(self, catalog: Catalog, name: str, what: str, lost: Callable[[], None]) -> None:
        """Raises StackError where another process holds the lease; ``what`` it does."""
        self._catalog = catalog
        self._lost = lost
        self._lease = _taken(catalog, name, what)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease-{name}", daemon=True)
        self._thread.start()

    def _renew(self) -> None:
        while not self._ended.wait(_RENEW_S):
            try:
                held = self._catalog.renew_leadership(self._lease, now_ms() + int(LEASE_S * 1000))
            except ServiceUnavailable:
                continue  # nobody else can take it where the catalog is away
            if not held:
                self._lost()
                return

    def release(self) -> None:
        """Let others have it at once."""
        self._ended.set()
        self._thread.join()
        self._catalog.renew_leadership(self._lease, 0)


def _taken(catalog: Catalog, name: str, what: str) -> Leadership:
    asked_ms = now_ms()
    wanted = Leadership(name, f"{socket.gethostname()}:{os.getpid()}", asked_ms + int(LEASE_S * 1000))
    before = catalog.leadership(name)
    gone = before.epoch if before is not None and _is_gone(before.holder) else None
    standing = catalog.take_leadership(wanted, now_ms=asked_ms, after=gone)
    if standing.holder != wanted.holder:
        raise StackError(
            f"another process is {what}: {standing.holder}",
            where="the catalog",
            fix="end that one first, or give this one a catalog of its own (DOVETAIL_CATALOG_URL); one that was killed "
            f"on another host is taken to be gone after {LEASE_S:g} s",
        )
    return standing


def _is_gone(holder: str) -> bool:
    """Whether it is a process of this host that does not live any more; its pid may have gone to another program."""
    host, _, pid = holder.rpartition(":")
    return host == socket.gethostname() and (int(pid) == os.getpid() or not psutil.pid_exists(int(pid)))
