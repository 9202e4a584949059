"""What one dictionary has in Redis: its names, its version, and the way that commands take.

    <path>:<n>:<dictionary>{<fingerprint>}:v                    the version: a whole refresh gives a new one
                                          :s                    the sweep: a refresh by prefix gives a new one
                                          :t<token>             this refresh was executed
                                          :f<topic>             up to where the feed is in the entries
                                          :e<n>:<version><n>:<part of the key>..       an entry
                                          :e..!                 its lock: somebody is asking the source for it

The version is part of each entry's name, so a whole refresh makes all of them unreachable at once; they go when their
time is over. The braces are a hash tag: in a Redis Cluster all of a dictionary stands on one node, so that scripts see
version, locks and entries together; the dictionaries spread. Were the version lost (Redis restarted, or evicted it), a
new one would be drawn: entries from before, whose invalidations may be lost as well, are not found again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import redis

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.breaker import Breaker
from dovetail.dictionaries.cache.cache_settings import CacheSettings
from dovetail.dictionaries.cache.cold.entry_names import entry_names, fingerprint
from dovetail.dictionaries.cache.cold.redis_client import fault_of, open_redis
from dovetail.dictionaries.cache.cold.redis_clock import RedisClock
from dovetail.dictionaries.cache.layout_statistics import Statistics
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.wall_clock import wall_clock_ms

T = TypeVar("T")
KEYS_PER_SCRIPT = 1000
_VERSION_CHANGES = 5
_NODES = 3


class RedisSpace:
    """The commands of one dictionary, under its names. Thread-safe.

    outdated  called when a command finds that the version has changed behind the listener's back
    client    of the node that has the dictionary
    clock     that of Redis
    origin    tells the messages of this process from those of others
    """

    def __init__(
        self,
        url: str,
        definition: Definition,
        settings: CacheSettings,
        statistics: Statistics,
        outdated: Callable[[], None],
        elapsed_s: Callable[[], float] = time.monotonic,
        machine_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._url = url
        self._timeout_ms = settings.redis_timeout_ms
        self._given = self.client = open_redis(url, settings.redis_timeout_ms)
        self.clock = RedisClock(machine_ms)
        self.origin = secrets.token_hex(8)
        self._where = f'dictionary "{definition.name}", cold tier'
        self._statistics = statistics
        self._outdated = outdated
        self._breaker = Breaker(elapsed_s)
        path, name = _without_tag(settings.prefix), _without_tag(definition.name)
        self._space = f"{path}:{len(name)}:{name}{{{fingerprint(definition)}}}"
        self.version_name = f"{self._space}:v"
        self.sweep_name = f"{self._space}:s"
        self.channel = f"{self._space}:c"
        self._version = ""

    # -- names

    def head(self, version: str) -> str:
        """What the names of all entries of a version begin with."""
        return f"{self._space}:e{len(version)}:{version}"

    def entry_names(self, version: str, keys: Sequence[Key]) -> list[str]:
        return entry_names(self.head(version), keys)

    def token_name(self, token: str) -> str:
        return f"{self._space}:t{token}" if token else ""

    def feed_name(self, feed: str) -> str:
        return f"{self._space}:f{feed}"

    # -- the version

    @property
    def version(self) -> str:
        """The version that stood when it was last asked for."""
        return self._version or self.read_version()

    def read_version(self) -> str:
        self.client.set(self.version_name, secrets.token_hex(4), nx=True)
        self.adopt_version(self.command("GET", self.version_name))
        return self._version

    def adopt_version(self, version: bytes | None) -> None:
        self._version = "" if version is None else version.decode()

    def forget_version(self) -> None:
        """Another worker gave the dictionary a new version: the next command asks for it."""
        self._version = ""

    def with_version(self, attempt: Callable[[str], T | None]) -> T:
        """What ``attempt`` gives for the version that stands; where another one does, it gives None, and is repeated.

        Raises ServiceUnavailable if the version changes again and again.
        """
        for _ in range(_VERSION_CHANGES):
            answer = attempt(self.version)
            if answer is not None:
                return answer
            self.forget_version()
            self._outdated()
        raise ServiceUnavailable("the version of the dictionary does not stand still in Redis", where=self._where)

    def thread_failed(self, error: BaseException) -> None:
        self._statistics.thread_failed(error)

    # -- commands

    def guarded(self, command: Callable[[], T]) -> T:
        """Raises ServiceUnavailable if Redis does not answer, or is left alone because it did not (``Breaker``)."""
        if not self._breaker.allows():
            raise ServiceUnavailable("Redis is left alone after failures", where=self._where)
        try:
            answer = self._at_home(command)
        except redis.RedisError as error:
            self._leave_home()
            self._breaker.failed()
            self._statistics.count(redis_errors=1)
            fault = fault_of(error)
            raise ServiceUnavailable(fault.what, where=self._where, fix=fault.fix) from error
        self._breaker.succeeded()
        return answer

    def _at_home(self, command: Callable[[], T]) -> T:
        """``command``, at the node that has the dictionary; the first one of a cluster says which that is."""
        for _ in range(_NODES):
            try:
                self.clock.measure(self.client)
                return command()
            except redis.exceptions.MovedError as moved:
                self._leave_home()
                self.client = open_redis(self._url, self._timeout_ms, (moved.host, moved.port))
        return command()

    def _leave_home(self) -> None:
        """Back to the node that was given: the other one may have lost the dictionary, or be gone."""
        home, self.client = self.client, self._given
        if home is not self._given:
            home.close()

    def command(self, *parts: Any) -> Any:
        return self.client.execute_command(*parts)  # type: ignore[no-untyped-call]

    def run(self, script: str, keys: Sequence[Key], arguments: Sequence[Any], second_name: str = "") -> int:
        """A script over the entries of at most ``KEYS_PER_SCRIPT`` keys, under the version that stands.

        Its own arguments follow the version; it answers -1 if that is another one. ``second_name``: its KEYS[2], the
        sweep if nothing is said.
        """

        def attempt(version: str) -> int | None:
            names = self.entry_names(version, keys)
            fixed = self.version_name, second_name or self.sweep_name
            answer = int(self.command("EVAL", script, len(names) + 2, *fixed, *names, version, *arguments))
            return None if answer == -1 else answer

        return self.with_version(attempt)

    def run_in_parts(self, script: str, names: Sequence[str], arguments: Sequence[Sequence[Any]]) -> list[Any]:
        """A script over entries, ``KEYS_PER_SCRIPT`` at a time, each part with its ``arguments``, in one round trip."""
        with self.client.pipeline(transaction=False) as pipeline:
            for at, values in enumerate(arguments):
                part = names[at * KEYS_PER_SCRIPT : (at + 1) * KEYS_PER_SCRIPT]
                pipeline.execute_command(  # type: ignore[no-untyped-call]
                    "EVAL", script, len(part) + 2, self.version_name, self.sweep_name, *part, *values
                )
            return pipeline.execute()

    def close(self) -> None:
        self._leave_home()
        self._given.close()


def _without_tag(text: str) -> str:
    """What begins no hash tag; texts that differ still do."""
    return text.replace("%", "%25").replace("{", "%7B")


def count_of_parts(names: Sequence[str]) -> int:
    """Into how many parts ``RedisSpace.run_in_parts`` cuts the names."""
    return -(-len(names) // KEYS_PER_SCRIPT)
