"""The cold tier: entries in Redis, shared by all workers.

    <path>:<n>:<dictionary><fingerprint>:v                    the version: a whole refresh gives a new one
                                        :s                    the sweep: a refresh by prefix gives a new one
                                        :t<token>             this refresh was executed
                                        :f<topic>             up to where the feed is in the entries
                                        :e<n>:<version><n>:<part of the key>..       an entry
                                        :e..!                 its lock: somebody is asking the source for it

The version is part of each entry's name, so a whole refresh makes all of them unreachable at once; they go when their
time is over. Were the version lost (Redis restarted, or evicted it), a new one would be drawn: entries from before,
whose invalidations may be lost as well, are not found again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

import redis

from changelog.errors import ServiceUnavailable
from changelog.lookup import Key
from dictionaries.cache.breaker import Breaker
from dictionaries.cache.cold.codec import EntryCodec
from dictionaries.cache.cold.redis_client import open_redis
from dictionaries.cache.cold.scripts import BEGIN_FEED, CLAIM, EXTEND, FEED, FORGET, PUT, RENEW, STORE
from dictionaries.cache.entry import CacheEntry
from dictionaries.cache.flights.leases import LOCK_MS, Lease, LeaseKeeper
from dictionaries.cache.invalidation import Invalidation, encode_message
from dictionaries.cache.key_text import entry_names, fingerprint, text_in_name
from dictionaries.cache.settings import CacheSettings
from dictionaries.cache.statistics import Statistics
from dictionaries.definition.definition import Definition

T = TypeVar("T")
_MGET_KEYS = 4096
_SCRIPT_KEYS = 1000
_SCAN_KEYS = 1000
_TOKEN_MS = 86_400_000
_VERSION_CHANGES = 5
_PENDING = 1000


@dataclass
class Claim:
    """What became of the keys: ``entries`` somebody else stored meanwhile, ``mine`` to ask for, ``busy`` asked for by
    another worker.
    """

    lease: Lease
    entries: dict[Key, CacheEntry] = field(default_factory=dict)
    mine: list[Key] = field(default_factory=list)
    busy: list[Key] = field(default_factory=list)


LOST = -2
FEED_KEYS = _SCRIPT_KEYS
"""So many keys a ``FeedPiece`` has at most."""


@dataclass(frozen=True)
class FeedPiece:
    """Changes of a partition of a feed between two offsets. ``seen``: a position that stood here once; ``values`` as
    those of ``ColdTier.store``.
    """

    feed: str
    partition: int
    seen: int
    start: int
    end: int
    values: Mapping[Key, tuple[bytes, int]]


class ColdTier:
    """The entries of one dictionary in Redis. Thread-safe.

    Every call raises ServiceUnavailable if Redis does not answer, or is left alone because it did not (``Breaker``).
    ``outdated`` is called when a read finds that the version has changed behind the listener's back.
    """

    def __init__(
        self,
        url: str,
        definition: Definition,
        settings: CacheSettings,
        codec: EntryCodec,
        statistics: Statistics,
        outdated: Callable[[], None],
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = open_redis(url, settings.redis_timeout_ms)
        self._name = definition.name
        self._codec = codec
        self._statistics = statistics
        self._outdated = outdated
        self._breaker = Breaker(elapsed_s)
        self.origin = secrets.token_hex(8)
        space = f"{settings.prefix}:{len(definition.name)}:{definition.name}{fingerprint(definition)}"
        self._space = space
        self._version_name = f"{space}:v"
        self._sweep_name = f"{space}:s"
        self.channel = f"{space}:c"
        self._version = ""
        self._pending: list[Invalidation] = []
        self._pending_lock = Lock()
        self._keeper = LeaseKeeper(self._extend)

    def read(self, keys: Sequence[Key]) -> dict[Key, CacheEntry]:
        """The entries held, expired ones as well."""
        return self._ask(lambda: self._read(keys))

    def claim(self, keys: Sequence[Key], fresh_after_ms: int) -> Claim:
        """Locks the keys whose entry does not live past ``fresh_after_ms``, unless another worker has locked them."""
        return self._ask(lambda: self._claim(keys, fresh_after_ms))

    def keeping(self, lease: Lease, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """Within the block the keys stay locked, however long it takes."""
        return self._keeper.keeping(lease, keys)

    def store(self, lease: Lease, values: Mapping[Key, tuple[bytes, int]]) -> None:
        """Stores encoded entries under their keys, each for some ms, where the lease still holds; ``b''``: nothing is
        stored. The keys are unlocked.
        """
        self._ask(lambda: self._store(lease, values))

    def release(self, lease: Lease, keys: Sequence[Key]) -> None:
        """Unlocks keys, so that others need not wait for what will not come."""
        self.store(lease, dict.fromkeys(keys, (b"", 0)))

    def put(self, values: Mapping[Key, tuple[bytes, int]]) -> None:
        """Stores entries that are known to be the newest, and tells the other workers to forget theirs."""
        self._ask(lambda: self._put(values))

    def invalidate(self, invalidation: Invalidation) -> int:
        """Forgets entries for all workers; how many there were (a whole refresh does not count them).

        While Redis does not answer, the invalidation is kept, and done before anything else is asked of Redis.
        """
        with self._pending_lock:
            self._pending.append(invalidation)
            if len(self._pending) > _PENDING:
                self._pending = [Invalidation()]
        return self._guard(self._settle)

    def feed_positions(self, feed: str) -> dict[int, int]:
        """Up to where each partition of a feed is in the entries; empty: not known."""
        held: dict[bytes, bytes] = self._ask(lambda: self._command("HGETALL", self._feed_name(feed)))
        return {int(partition): int(position) for partition, position in held.items()}

    def begin_feed(self, feed: str, positions: Mapping[int, int]) -> None:
        """Forgets all entries for all workers: what is stored from now on has the feed up to these positions."""
        self._ask(lambda: self._begin_feed(feed, positions))

    def feed(self, piece: FeedPiece) -> int:
        """The position of the partition afterwards. If it is not the end of the piece, nothing was done: beyond the
        start, other workers are further; ``LOST``, nobody knows what the entries lack.
        """
        return self._ask(lambda: self._feed(piece))

    def forget_version(self) -> None:
        """Another worker gave the dictionary a new version: the next command asks for it."""
        self._version = ""

    def close(self) -> None:
        self._keeper.close()
        self._client.close()

    def _ask(self, command: Callable[[], T]) -> T:
        def settled() -> T:
            self._settle()
            return command()

        return self._guard(settled)

    def _guard(self, command: Callable[[], T]) -> T:
        if not self._breaker.allows():
            raise ServiceUnavailable("Redis is left alone after failures", where=self._where())
        try:
            answer = command()
        except redis.RedisError as error:
            self._breaker.failed()
            self._statistics.count(redis_errors=1)
            # Never the error's own text: it may quote the address with its password.
            raise ServiceUnavailable(f"Redis: {type(error).__name__}", where=self._where()) from error
        self._breaker.succeeded()
        return answer

    def _where(self) -> str:
        return f'dictionary "{self._name}", cold tier'

    def _read(self, keys: Sequence[Key]) -> dict[Key, CacheEntry]:
        decoded = self._codec.decode(self._mget(keys))
        return {key: entry for key, entry in zip(keys, decoded, strict=True) if entry is not None}

    def _mget(self, keys: Sequence[Key]) -> list[bytes | None]:
        """The values under the version that stands while they are read."""
        for _ in range(_VERSION_CHANGES):
            version = self._version or self._read_version()
            names = entry_names(self._head(version), keys)
            with self._client.pipeline(transaction=False) as pipeline:
                for at in range(0, len(names), _MGET_KEYS):
                    pipeline.mget(self._version_name, *names[at : at + _MGET_KEYS])
                answers: list[list[bytes | None]] = pipeline.execute()
            if all(answer[0] == version.encode() for answer in answers):
                return [value for answer in answers for value in answer[1:]]
            self._outdate()
        raise self._restless()

    def _claim(self, keys: Sequence[Key], fresh_after_ms: int) -> Claim:
        token = secrets.token_hex(8)
        for _ in range(_VERSION_CHANGES):
            version = self._version or self._read_version()
            names = entry_names(self._head(version), keys)
            arguments = [version, token, LOCK_MS, fresh_after_ms]
            answers = self._scripts(CLAIM, names, [arguments] * _parts(names))
            if None not in answers:
                return self._claimed(Lease(token, version, answers[0][0].decode()), keys, names, answers)
            self._outdate()
        raise self._restless()

    def _claimed(self, lease: Lease, keys: Sequence[Key], names: Sequence[str], answers: list[Any]) -> Claim:
        claim = Claim(lease)
        states = [state for answer in answers for state in answer[1:]]
        for key, name, state in zip(keys, names, states, strict=True):
            if state == 1:
                claim.mine.append(key)
            elif state == 0:
                claim.busy.append(key)
            else:
                [entry] = self._codec.decode([state])
                if entry is not None:
                    claim.entries[key] = entry
                else:
                    self._client.delete(name)
                    claim.mine.append(key)
        return claim

    def _extend(self, lease: Lease, keys: Sequence[Key]) -> None:
        names = entry_names(self._head(lease.version), keys)
        self._ask(lambda: self._scripts(EXTEND, names, [[lease.token, LOCK_MS]] * _parts(names)))

    def _store(self, lease: Lease, values: Mapping[Key, tuple[bytes, int]]) -> None:
        names = entry_names(self._head(lease.version), list(values))
        fields = [field for value in values.values() for field in value]
        fixed = [lease.version, lease.sweep, lease.token]
        width = 2 * _SCRIPT_KEYS
        self._scripts(STORE, names, [fixed + fields[at * width : (at + 1) * width] for at in range(_parts(names))])

    def _put(self, values: Mapping[Key, tuple[bytes, int]]) -> None:
        stored = list(values.items())
        for at in range(0, len(stored), _SCRIPT_KEYS):
            part = stored[at : at + _SCRIPT_KEYS]
            keys = [key for key, _ in part]
            message = encode_message(Invalidation(tuple(keys)), self.origin)
            self._with_version(PUT, keys, [self.channel, message, *[field for _, value in part for field in value]])

    def _begin_feed(self, feed: str, positions: Mapping[int, int]) -> None:
        version, message = secrets.token_hex(8), encode_message(Invalidation(), self.origin)
        fields = [field for place in positions.items() for field in place]
        arguments = [version, self.channel, message, *fields]
        self._command("EVAL", BEGIN_FEED, 2, self._version_name, self._feed_name(feed), *arguments)
        self._version = version

    def _feed(self, piece: FeedPiece) -> int:
        keys = list(piece.values)
        message = encode_message(Invalidation(tuple(keys)), self.origin)
        fields = [field for value in piece.values.values() for field in value]
        place = [piece.partition, piece.seen, piece.start, piece.end]
        return self._with_version(FEED, keys, [*place, self.channel, message, *fields], self._feed_name(piece.feed))

    def _scripts(self, script: str, names: Sequence[str], arguments: Sequence[list[Any]]) -> list[Any]:
        """Runs a script over parts of the entries, each with its ``arguments``, in one round trip."""
        with self._client.pipeline(transaction=False) as pipeline:
            for at, values in enumerate(arguments):
                part = names[at * _SCRIPT_KEYS : (at + 1) * _SCRIPT_KEYS]
                pipeline.execute_command(  # type: ignore[no-untyped-call]
                    "EVAL", script, len(part) + 2, self._version_name, self._sweep_name, *part, *values
                )
            return pipeline.execute()

    def _command(self, *parts: Any) -> Any:
        return self._client.execute_command(*parts)  # type: ignore[no-untyped-call]

    def _with_version(self, script: str, keys: Sequence[Key], arguments: list[Any], second: str = "") -> int:
        for _ in range(_VERSION_CHANGES):
            version = self._version or self._read_version()
            names = entry_names(self._head(version), keys)
            fixed = self._version_name, second or self._sweep_name
            answer = int(self._command("EVAL", script, len(names) + 2, *fixed, *names, version, *arguments))
            if answer != -1:
                return answer
            self._outdate()
        raise self._restless()

    def _settle(self) -> int:
        """Executes what could not be executed before; how many entries went."""
        if not self._pending:
            return 0
        held = 0
        with self._pending_lock:
            while self._pending:
                held += self._execute(self._pending[0])
                del self._pending[0]
        return held

    def _execute(self, invalidation: Invalidation) -> int:
        if invalidation.is_whole:
            return self._renew(invalidation)
        held = 0
        if invalidation.prefix is not None:
            held += self._sweep(invalidation)
        named = invalidation.keys or ()
        for at in range(0, len(named), _SCRIPT_KEYS):
            keys = named[at : at + _SCRIPT_KEYS]
            # Only with the last part is the refresh as a whole done.
            token = invalidation.token if at + _SCRIPT_KEYS >= len(named) else ""
            message = encode_message(Invalidation(keys, None, token), self.origin)
            token_name = self._token_name(f"{invalidation.token}/{at}" if invalidation.token else "")
            held += max(0, self._with_version(FORGET, keys, [token_name, _TOKEN_MS, self.channel, message]))
        return held

    def _renew(self, invalidation: Invalidation) -> int:
        # Never the token alone: were it given again after its mark is lost, old entries would be found again.
        version = f"{invalidation.token}.{secrets.token_hex(4)}"
        message = encode_message(invalidation, self.origin)
        token_name = self._token_name(invalidation.token)
        arguments = [version, token_name, _TOKEN_MS, self.channel, message]
        standing: bytes | None = self._command("EVAL", RENEW, 1, self._version_name, *arguments)
        self._version = "" if standing is None else standing.decode()
        return 0

    def _sweep(self, invalidation: Invalidation) -> int:
        """Takes the entries and locks of a prefix away, and makes stores under older claims fail: both may come into
        being behind the scan.
        """
        token_name = self._token_name(invalidation.token)
        if token_name and self._client.exists(token_name):
            return 0
        self._client.set(self._sweep_name, secrets.token_hex(8))
        head = self._head(self._read_version())
        held = 0
        found: list[bytes] = []
        for name in self._client.scan_iter(match=_literal(head) + "*", count=_SCAN_KEYS):
            parts = name.decode()[len(head) :]
            if text_in_name(parts).startswith(invalidation.prefix or ""):
                found.append(name)
        for at in range(0, len(found), _SCAN_KEYS):
            held += int(self._client.delete(*found[at : at + _SCAN_KEYS]))
        token = "" if invalidation.keys else invalidation.token
        self._client.publish(self.channel, encode_message(Invalidation(None, invalidation.prefix, token), self.origin))
        if token_name:
            self._client.set(token_name, b"1", px=_TOKEN_MS)
        return held

    def _token_name(self, token: str) -> str:
        return f"{self._space}:t{token}" if token else ""

    def _feed_name(self, feed: str) -> str:
        return f"{self._space}:f{feed}"

    def _head(self, version: str) -> str:
        return f"{self._space}:e{len(version)}:{version}"

    def _read_version(self) -> str:
        self._client.set(self._version_name, secrets.token_hex(4), nx=True)
        standing: bytes | None = self._command("GET", self._version_name)
        self._version = "" if standing is None else standing.decode()
        return self._version

    def _outdate(self) -> None:
        self._version = ""
        self._outdated()

    def _restless(self) -> ServiceUnavailable:
        return ServiceUnavailable("the version of the dictionary does not stand still in Redis", where=self._where())


def _parts(names: Sequence[str]) -> int:
    return -(-len(names) // _SCRIPT_KEYS)


def _literal(text: str) -> str:
    """A pattern of SCAN that matches the text itself."""
    return "".join([f"\\{sign}" if sign in "*?[]\\^" else sign for sign in text])
