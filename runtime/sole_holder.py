"""A lease that is kept while this process lives: for work that two processes must not do at once."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

import psutil

from dovetail.changelog.errors import StackError
from dovetail.changelog.work.supervised_thread import PeriodicThread
from dovetail.runtime.clock import now_ms
from dovetail.runtime.staleness import Staleness
from dovetail.sql.catalog import Catalog, Leadership

LEASE_S = 10.0
"""After so long without a word the holder is taken to be gone."""
_RENEW_S = 2.0
_LOOK_S = 0.2


class SoleHolder:
    """Holds the lease ``name`` from the start on, renewed by a thread of its own.

    lost  called once when another process has taken it: it was away for longer than the lease
    """

    def __init__(
        self,
        catalog: Catalog,
        name: str,
        what: str,
        lost: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises StackError where another process holds the lease, and renews it; ``what`` it does."""
        self._catalog = catalog
        self._lost = lost
        self._lease = _taken(catalog, name, what, clock, pause)
        self._thread = PeriodicThread(f"lease-{name}", _RENEW_S, self._renew)
        self._thread.start()

    def _renew(self) -> None:
        # Where the catalog is away, nobody else can take it.
        if not self._catalog.renew_leadership(self._lease, _until_ms()):
            self._thread.closing.set()
            self._lost()

    def release(self) -> None:
        """Let others have it at once."""
        self._thread.close(None)
        self._catalog.renew_leadership(self._lease, 0)


def _taken(
    catalog: Catalog, name: str, what: str, clock: Callable[[], float], pause: Callable[[float], None]
) -> Leadership:
    wanted = Leadership(name, f"{socket.gethostname()}:{os.getpid()}", _until_ms())
    gone = _awaited_gone(catalog, name, clock, pause)
    # A lease that was given back ends at 0. No other time in it is believed: it is of its holder's clock.
    lease = catalog.take_leadership(wanted, now_ms=0, after=gone)
    if lease.holder != wanted.holder:
        raise StackError(
            f"another process is {what}: {lease.holder}",
            where="the catalog",
            fix="end that one first, or give this one a catalog of its own (DOVETAIL_CATALOG_URL)",
        )
    return lease


def _awaited_gone(
    catalog: Catalog, name: str, clock: Callable[[], float], pause: Callable[[float], None]
) -> int | None:
    """The epoch of a holder that is gone; None where nobody holds the lease, or somebody does who renews it.

    A holder of which nothing can be known but its lease is watched for the length of that.
    """
    silence = Staleness(clock)
    first = catalog.leadership(name)
    lease = first
    while lease is not None and lease.until_ms and lease == first:
        if _is_gone(lease.holder) or silence.seconds(name, lease.until_ms) > LEASE_S:
            return lease.epoch
        pause(_LOOK_S)
        lease = catalog.leadership(name)
    return None


def _until_ms() -> int:
    return now_ms() + int(LEASE_S * 1000)


def _is_gone(holder: str) -> bool:
    """Whether it is a process of this host that does not live any more; its pid may have gone to another program."""
    host, _, pid = holder.rpartition(":")
    return host == socket.gethostname() and (int(pid) == os.getpid() or not psutil.pid_exists(int(pid)))
