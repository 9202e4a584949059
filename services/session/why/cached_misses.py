"""Keys that a dictionary has by now, and of which a lookup worker has cached that it has them not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.services.commands.command_codec import Answer, Misses
from dovetail.services.session.context import Context
from dovetail.services.session.live.backlog import duration_text

_MEMBERS = ("place", "asked_ms_ago", "left_ms")


def cached_misses(context: Context, dictionary: str, keys: Sequence[Any]) -> list[str]:
    """A line for each, by worker; none where no worker lives. One that does not answer is a line, too."""
    if not keys or not context.live_workers():
        return []
    try:
        answers = context.commander.give(Misses(dictionary, keys), context.live_workers)
    except ServiceUnavailable as failure:
        return [f"what workers have cached of {dictionary} is not known: {failure.what}"]
    lines = [line for answer in answers.given for line in miss_lines(answer, dictionary, keys)]
    unknown = [*answers.silent, *(answer.worker for answer in answers.failed)]
    return [*lines, *(f"what {worker} has cached of {dictionary} is not known: it did not say" for worker in unknown)]


def miss_lines(answer: Answer, dictionary: str, keys: Sequence[Any]) -> Iterator[str]:
    """Of the misses that a worker has told; what is none is passed over, for anybody may write to the topic."""
    listed = answer.outcome.detail.get("misses") if answer.outcome.ok else None
    for miss in listed if isinstance(listed, list) else []:
        if not isinstance(miss, dict) or not all(isinstance(miss.get(name), int) for name in _MEMBERS):
            continue
        place, age_s, left_s = miss["place"], miss["asked_ms_ago"] / 1000, miss["left_ms"] / 1000
        if 0 <= place < len(keys):
            yield (
                f"{answer.worker} has cached that {dictionary} has no row of {_text(keys[place])}: asked "
                f"{duration_text(max(age_s, 0))} ago, not there; cached for {duration_text(max(left_s, 0))} more; "
                f"dovetail dictionary refresh {dictionary} forgets it"
            )


def _text(key: Any) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
