"""Refreshes that were executed already."""

from __future__ import annotations

from threading import Lock

_REMEMBERED = 1000


class Executed:
    """The last 1,000 tokens of refreshes that this process has executed or heard of."""

    def __init__(self) -> None:
        self._tokens: dict[str, None] = {}
        self._lock = Lock()

    def first(self, token: str) -> bool:
        """Whether it comes for the first time; ``''`` always does."""
        if not token:
            return True
        with self._lock:
            if token in self._tokens:
                return False
            self._tokens[token] = None
            if len(self._tokens) > _REMEMBERED:
                del self._tokens[next(iter(self._tokens))]
            return True

    def forget(self, token: str) -> None:
        """It did not succeed, so it may come again."""
        with self._lock:
            self._tokens.pop(token, None)
