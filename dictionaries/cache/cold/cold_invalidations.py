"""Invalidations in Redis: for all workers, and never lost while Redis does not answer."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from dovetail.dictionaries.cache.cold.entry_names import text_in_name
from dovetail.dictionaries.cache.cold.invalidation_messages import encode_message
from dovetail.dictionaries.cache.cold.redis_scripts import FORGET, RENEW
from dovetail.dictionaries.cache.cold.redis_space import KEYS_PER_SCRIPT, RedisSpace
from dovetail.dictionaries.cache.invalidation import Invalidation

T = TypeVar("T")
_SCAN_KEYS = 1000
_TOKEN_MS = 86_400_000
_PENDING = 1000


class ColdInvalidations:
    """Executes invalidations; what could not be executed is pending, and comes before any other command. Thread-safe.

    So whatever is read in Redis has no rows that this process was told to forget.
    """

    def __init__(self, space: RedisSpace) -> None:
        self._space = space
        self._pending: list[Invalidation] = []
        self._lock = Lock()

    def execute(self, invalidation: Invalidation) -> int:
        """How many entries there were; a whole refresh does not count them.

        Raises ServiceUnavailable; the invalidation is pending then.
        """
        with self._lock:
            self._pending.append(invalidation)
            if len(self._pending) > _PENDING:
                self._pending = [Invalidation()]
        return self._space.guarded(self._execute_pending)

    def before(self, command: Callable[[], T]) -> T:
        """``command``, once nothing is pending. Raises ServiceUnavailable."""

        def in_order() -> T:
            self._execute_pending()
            return command()

        return self._space.guarded(in_order)

    def _execute_pending(self) -> int:
        """How many entries went."""
        if not self._pending:
            return 0
        gone = 0
        with self._lock:
            while self._pending:
                gone += self._execute(self._pending[0])
                del self._pending[0]
        return gone

    def _execute(self, invalidation: Invalidation) -> int:
        if invalidation.is_whole:
            return self._renew_version(invalidation)
        gone = 0
        if invalidation.prefix is not None:
            gone += self._sweep(invalidation)
        named = invalidation.keys or ()
        for at in range(0, len(named), KEYS_PER_SCRIPT):
            keys = named[at : at + KEYS_PER_SCRIPT]
            # Only with the last part is the refresh as a whole done.
            token = invalidation.token if at + KEYS_PER_SCRIPT >= len(named) else ""
            token_name = self._space.token_name(f"{invalidation.token}/{at}" if invalidation.token else "")
            message = self._message(Invalidation(keys, None, token))
            gone += max(0, self._space.run(FORGET, keys, [token_name, _TOKEN_MS, self._space.channel, message]))
        return gone

    def _renew_version(self, invalidation: Invalidation) -> int:
        # Never the token alone: were it given again after its mark is lost, old entries would be found again.
        version = f"{invalidation.token}.{secrets.token_hex(4)}"
        token_name = self._space.token_name(invalidation.token)
        arguments = [version, token_name, _TOKEN_MS, self._space.channel, self._message(invalidation)]
        self._space.adopt_version(self._space.command("EVAL", RENEW, 1, self._space.version_name, *arguments))
        return 0

    def _sweep(self, invalidation: Invalidation) -> int:
        """Takes the entries and locks of a prefix away, and makes stores under older claims fail: both may come into
        being behind the scan.
        """
        client, token_name = self._space.client, self._space.token_name(invalidation.token)
        if token_name and client.exists(token_name):
            return 0
        client.set(self._space.sweep_name, secrets.token_hex(8))
        head = self._space.head(self._space.read_version())
        found: list[bytes] = []
        for name in client.scan_iter(match=_literal(head) + "*", count=_SCAN_KEYS):
            parts = name.decode()[len(head) :]
            if text_in_name(parts).startswith(invalidation.prefix or ""):
                found.append(name)
        gone = 0
        for at in range(0, len(found), _SCAN_KEYS):
            gone += int(client.delete(*found[at : at + _SCAN_KEYS]))
        token = "" if invalidation.keys else invalidation.token
        client.publish(self._space.channel, self._message(Invalidation(None, invalidation.prefix, token)))
        if token_name:
            client.set(token_name, b"1", px=_TOKEN_MS)
        return gone

    def _message(self, invalidation: Invalidation) -> bytes:
        return encode_message(invalidation, self._space.origin)


def _literal(text: str) -> str:
    """A pattern of SCAN that matches the text itself."""
    return "".join([f"\\{sign}" if sign in "*?[]\\^" else sign for sign in text])
