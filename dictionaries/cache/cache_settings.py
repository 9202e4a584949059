"""The settings of a cached dictionary, one declared list, and how a definition's are read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dovetail.changelog.errors import SqlError
from dovetail.changelog.suggest import choice
from dovetail.dictionaries.definition.definition import Definition, Parameter


class OnError(StrEnum):
    """What becomes of a key whose source does not answer within ``timeout_ms``."""

    STOP = "stop"
    """The lookup raises ServiceUnavailable: the worker stops reading and tries the batch again; nothing is lost."""
    STALE = "stale"
    """An expired entry is served, up to ``max_stale`` seconds after its expiry; without one, as STOP."""
    NULL = "null"
    """The key counts as absent for this batch; that is not cached."""
    DEAD_LETTER = "dead_letter"
    """The lookup raises LookupRejected: the records that need the key go to the dead-letter topic."""


@dataclass(frozen=True)
class Declared:
    """A setting of a dictionary: SETTINGS(name = value). ``default`` None: another setting gives it."""

    name: str
    type: type[str] | type[int] | type[float] | type[bool]
    unit: str
    default: Parameter | None
    help: str


CACHE_SETTINGS: tuple[Declared, ...] = (
    Declared("negative_ttl", float, "s", None, "how long absence is cached; else the TTL, and no more than 10 s"),
    Declared("ttl_jitter", float, "", 0.05, "entries live up to this share of the TTL shorter, drawn per statement"),
    Declared("refresh_ahead", float, "", 0.0, "in this last share of its life, an entry that is asked for is renewed"),
    Declared("stale_while_revalidate", float, "s", 0.0, "expired entries are served so long, while they are renewed"),
    Declared("on_error", str, "", "stop", "stop, stale, null or dead_letter, when the source does not answer"),
    Declared("max_stale", float, "s", 0.0, "how long after its expiry on_error = 'stale' may serve an entry"),
    Declared("timeout_ms", float, "ms", 5_000.0, "the budget for asking the source, attempts and pauses together"),
    Declared("redis_timeout_ms", float, "ms", 500.0, "how long one command to Redis may take"),
    Declared("max_value_bytes", int, "bytes", 65_536, "longer entries are served and counted, and not cached"),
    Declared("max_hot_bytes", int, "bytes", 268_435_456, "memory of the hot tier, in each process"),
    Declared("max_threads_for_updates", int, "threads", 4, "statements at the source at once, in each process"),
    Declared("feed_topic", str, "", None, "topic of the changes at the source, which keeps the caches fresh"),
    Declared("feed_format", str, "", "key", "what its records are: key, json or debezium"),
    Declared("feed_values", bool, "", False, "rows that its records carry are stored, not asked for at the source"),
)
DEFAULT_HOT_KEYS = 100_000
DEFAULT_WAITING = 100_000
LONGEST_DEFAULT_NEGATIVE_MS = 10_000
FOR_EVER_MS = 10 * 365 * 86_400_000
"""The TTL where none is given: LIFETIME(0)."""
_DEFAULTS = {setting.name: setting.default for setting in CACHE_SETTINGS}


@dataclass(frozen=True)
class CacheSettings:
    """
    ttl_ms           how long an answer may be served; jitter makes it shorter, never longer
    negative_ttl_ms  the same for absence
    jitter           up to this share of the TTL an entry lives shorter, drawn once per statement: what was fetched
                     together expires together, and is asked for in one statement again
    refresh_ahead    in this last share of its life an entry that is asked for is renewed behind the lookup
    revalidate_ms    so long after its expiry an entry is served while it is renewed behind the lookup
    max_stale_ms     so long after its expiry an entry is served if the source does not answer (``OnError.STALE``)
    timeout_ms       for asking the source in one lookup, attempts and pauses together
    max_value_bytes  a longer entry is served and counted, not cached
    waiting          keys that wait to be renewed behind the lookups, at most
    threads          statements under way at once, in one process
    prefix           begins the names of all entries in Redis
    """

    ttl_ms: int
    negative_ttl_ms: int
    jitter: float
    refresh_ahead: float
    revalidate_ms: int
    max_stale_ms: int
    on_error: OnError
    timeout_ms: int
    redis_timeout_ms: int
    max_value_bytes: int
    hot_keys: int
    hot_bytes: int
    waiting: int
    threads: int
    prefix: str

    @property
    def keep_ms(self) -> int:
        """How long an entry is kept after its expiry."""
        return max(self.revalidate_ms, self.max_stale_ms if self.on_error is OnError.STALE else 0)


def read_settings(definition: Definition) -> CacheSettings:
    """The settings with their defaults. Raises SqlError for a share that is none, and a policy that there is not."""
    given = _Given(definition)
    layout = definition.layout.parameters
    ttl_ms, jitter = _ttl(definition, given.share("ttl_jitter"))
    negative_ttl_ms = min(LONGEST_DEFAULT_NEGATIVE_MS, ttl_ms)
    if "negative_ttl" in definition.settings:
        negative_ttl_ms = min(given.ms("negative_ttl"), ttl_ms)
    revalidate_ms = given.ms("stale_while_revalidate")
    if layout.get("allow_read_expired_keys") and not revalidate_ms:
        revalidate_ms = ttl_ms
    return CacheSettings(
        ttl_ms=ttl_ms,
        negative_ttl_ms=negative_ttl_ms,
        jitter=jitter,
        refresh_ahead=given.share("refresh_ahead"),
        revalidate_ms=revalidate_ms,
        max_stale_ms=given.ms("max_stale"),
        on_error=given.on_error(),
        timeout_ms=int(given.number("timeout_ms", layout.get("query_wait_timeout_milliseconds"))),
        redis_timeout_ms=int(given.number("redis_timeout_ms")),
        max_value_bytes=int(given.number("max_value_bytes")),
        hot_keys=int(layout.get("max_hot_key_count", layout.get("size_in_cells", DEFAULT_HOT_KEYS))),
        hot_bytes=int(given.number("max_hot_bytes")),
        waiting=int(layout.get("max_update_queue_size", DEFAULT_WAITING)),
        threads=int(layout.get("max_threads_for_updates", given.number("max_threads_for_updates"))),
        prefix=str(layout.get("path", "")),
    )


def _ttl(definition: Definition, jitter: float) -> tuple[int, float]:
    """TTL in ms and jitter: of HYBRID_HASH_CACHE(TTL ..), else a random time within LIFETIME(MIN .. MAX ..)."""
    ttl_s = definition.layout.parameters.get("ttl")
    if ttl_s is not None:
        return max(1, round(float(ttl_s) * 1000)), jitter
    least_s, greatest_s = definition.lifetime_s
    if greatest_s == 0:
        return FOR_EVER_MS, jitter
    return greatest_s * 1000, max(jitter, 1 - least_s / greatest_s) if least_s else jitter


class _Given:
    """SETTINGS(..) of a definition over the declared defaults."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition

    def number(self, name: str, else_given: Parameter | None = None) -> float:
        value = self._definition.settings.get(name, _DEFAULTS[name] if else_given is None else else_given)
        assert value is not None
        return float(value)

    def ms(self, name: str) -> int:
        return round(self.number(name) * 1000)

    def share(self, name: str) -> float:
        share = self.number(name)
        if not 0 <= share < 1:
            raise self._refused(name, share, "give a share of the TTL, from 0 to below 1: 0.1")
        return share

    def on_error(self) -> OnError:
        given = str(self._definition.settings.get("on_error", _DEFAULTS["on_error"])).lower()
        try:
            return OnError(given)
        except ValueError:
            raise self._refused("on_error", given, choice(given, OnError)) from None

    def _refused(self, name: str, value: object, fix: str) -> SqlError:
        where = f'dictionary "{self._definition.name}", SETTINGS'
        return SqlError(f"{name} cannot be {value!r}", where=where, fix=fix)
