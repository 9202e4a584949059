"""A lease that is kept while this process lives: for work that two processes must not do at once."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from dovetail.changelog.errors import ServiceUnavailable, StackError
from dovetail.changelog.work.supervised_thread import PeriodicThread
from dovetail.runtime.clock import now_ms
from dovetail.runtime.staleness import Staleness
from dovetail.sql.catalog import Catalog, Leadership

LEASE_S = 10.0
"""After so long without a word the holder is taken to be gone."""
_RENEW_S = 2.0
_LOOK_S = 0.2
_MARGIN_S = 1.0


def _elapsed_s() -> float:
    """Since the machine was started, in which it may have slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class SoleHolder:
    """Holds the lease ``name`` from the start on, renewed by a thread of its own.

    Another process may take it once it was not renewed for ``LEASE_S``. By then this one must know: either it has read
    that nobody has, or it gives the lease up by its own clock.

    lost  called once, with the reason, when it is another's, or may be
    """

    def __init__(
        self,
        catalog: Catalog,
        name: str,
        what: str,
        lost: Callable[[str], None],
        clock: Callable[[], float] = _elapsed_s,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises StackError where another process holds the lease, and renews it; ``what`` it does."""
        self._catalog = catalog
        self._lost = lost
        self._clock = clock
        self._lease = _taken(catalog, name, what, clock, pause)
        self._sure_s = clock()
        self._thread = PeriodicThread(f"lease-{name}", _RENEW_S, self._renew)
        # A question to a database that has gone silent may take longer than the lease lasts.
        self._watch = PeriodicThread(f"lease-{name}-watch", _LOOK_S, self._look)
        self._thread.start()
        self._watch.start()

    def _renew(self) -> None:
        begun_s = self._clock()
        if not self._is_held():
            self._give_up("another process has taken it over: this one was away for too long")
        self._sure_s = begun_s

    def _is_held(self) -> bool:
        try:
            return self._catalog.renew_leadership(self._lease, _until_ms())
        except ServiceUnavailable:
            # A full disk, say: nobody else can write that it is his either.
            found = self._catalog.leadership(self._lease.name)
            return found is not None and found.epoch == self._lease.epoch

    def _look(self) -> None:
        if (silent_s := self._clock() - self._sure_s) > LEASE_S - _MARGIN_S:
            self._give_up(f"the catalog could not be reached for {silent_s:.0f} s, and another process may have it now")

    def _give_up(self, why: str) -> None:
        for thread in (self._thread, self._watch):
            thread.closing.set()
        self._lost(why)

    def release(self) -> None:
        """Let others have it at once; where the catalog is away, once the lease is over."""
        self._thread.close(None)
        self._watch.close(None)
        with suppress(ServiceUnavailable):
            self._catalog.renew_leadership(self._lease, 0)


def _taken(
    catalog: Catalog, name: str, what: str, clock: Callable[[], float], pause: Callable[[float], None]
) -> Leadership:
    wanted = Leadership(name, f"{socket.gethostname()}:{os.getpid()}", _until_ms())
    gone = _awaited_gone(catalog, name, clock, pause)
    # A lease that was given back ends at 0. No other time in it is believed: it is of its holder's clock.
    lease = catalog.take_leadership(wanted, now_ms=0, after=gone)
    if lease.holder != wanted.holder or lease.until_ms != wanted.until_ms:
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
    """Whether it is a process of this host that does not live any more; its pid may have gone to another program. Of
    one with the pid of this process nothing is known: it may be that of another container of the same name.
    """
    host, _, pid = holder.rpartition(":")
    return host == socket.gethostname() and not psutil.pid_exists(int(pid))
