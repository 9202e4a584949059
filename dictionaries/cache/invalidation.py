"""What a refresh makes the tiers forget, and which refreshes were executed already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.key_text import key_text

_REMEMBERED = 1000


@dataclass(frozen=True)
class Invalidation:
    """Keys, or all whose text begins with ``prefix``, or (neither given) everything.

    ``token`` names the refresh: its execution by another worker, or again, changes nothing more.
    """

    keys: tuple[Key, ...] | None = None
    prefix: str | None = None
    token: str = ""

    @property
    def is_whole(self) -> bool:
        return self.keys is None and self.prefix is None

    def concerned(self, keys: Iterable[Key]) -> list[Key]:
        """Those of the keys that it names."""
        if self.is_whole:
            return list(keys)
        named = frozenset(self.keys or ())
        prefix = self.prefix
        return [key for key in keys if key in named or (prefix is not None and key_text(key).startswith(prefix))]


class SeenRefreshes:
    """The last 1,000 tokens of refreshes that this process has executed or heard of."""

    def __init__(self) -> None:
        self._tokens: dict[str, None] = {}
        self._lock = Lock()

    def is_new(self, token: str) -> bool:
        """Whether it comes for the first time, and so is to be executed; ``''`` always is."""
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
