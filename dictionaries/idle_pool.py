"""Connections that any one thread at a time may use, lent to threads that come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class IdlePool(Generic[T]):
    """As many connections as were ever in use at once. Thread-safe.

    One for each thread would be left behind by each that ends: the lanes of a worker do, at every rebalance.
    """

    def __init__(self, connect: Callable[[], T], disconnect: Callable[[T], object]) -> None:
        self._connect = connect
        self._disconnect = disconnect
        self._idle: list[T] = []
        self._lock = Lock()
        self._is_closed = False

    @contextmanager
    def lent(self) -> Iterator[T]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        finally:
            with self._lock:
                if not self._is_closed:
                    self._idle.append(connection)
                    connection = None
            if connection is not None:
                self._disconnect(connection)

    def close(self) -> None:
        """Those that are lent are closed when they come back. May be used again afterwards for single calls."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            self._disconnect(connection)
