"""What becomes of keys that the source did not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from changelog.errors import Domain, DovetailError, RecordRejected
from changelog.lookup import Key, Rows
from dictionaries.cache.entry import CacheEntry
from dictionaries.cache.settings import CacheSettings, OnError
from dictionaries.cache.statistics import Statistics


class LookupRejected(RecordRejected):
    """A record whose dictionary does not answer, under ``on_error = 'dead_letter'``."""

    domain = Domain.EXTERNAL


@dataclass(frozen=True)
class Unanswered:
    """Keys that were asked for in vain, and why."""

    keys: Sequence[Key]
    error: DovetailError


def substitutes(
    settings: CacheSettings,
    statistics: Statistics,
    unanswered: Unanswered,
    kept: Mapping[Key, CacheEntry],
    now_ms: int,
) -> dict[Key, Rows]:
    """The answers that ``on_error`` gives instead; ``kept``: entries that may have expired.

    Raises the error of the source (STOP, and STALE for a key without an entry young enough), or LookupRejected.
    """
    policy = settings.on_error
    if policy is OnError.DEAD_LETTER:
        error = unanswered.error
        raise LookupRejected(error.what, where=error.where, fix=error.fix) from error
    if policy is OnError.NULL:
        statistics.count(failed_keys=len(unanswered.keys))
        return dict.fromkeys(unanswered.keys, ())
    if policy is OnError.STALE:
        answers = {key: kept[key].rows for key in unanswered.keys if _young(kept.get(key), now_ms, settings)}
        if len(answers) == len(unanswered.keys):
            statistics.count(stale_served=len(answers))
            return answers
    raise unanswered.error


def _young(entry: CacheEntry | None, now_ms: int, settings: CacheSettings) -> bool:
    return entry is not None and now_ms < entry.expires_ms + settings.max_stale_ms
