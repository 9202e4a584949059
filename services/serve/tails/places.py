"""Where in a topic somebody has got to, as the id of an event: ``<id of the topic>/0:12,1:7``.

The offsets are those of the next records; a partition that is left out is at its beginning. The id of the topic tells
it from one that was made anew under its name, in which offsets mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.services.serve.refusals import RequestRefused

Offsets = Mapping[int, int]
_FORM = re.compile(r"([\w+/-]{1,64})/((?:\d{1,6}:\d{1,19}(?:,\d{1,6}:\d{1,19}){0,9999})?)", re.ASCII)


@dataclass(frozen=True)
class EventPlace:
    topic_id: str
    offsets: Offsets

    @staticmethod
    def read(text: str) -> EventPlace:
        """Raises RequestRefused for what is no place."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise RequestRefused(
                f"{text[:100]!r} is the id of no event",
                where="header Last-Event-ID",
                fix="send the id of the last event that you have; or none, to begin now or, with from=beginning, there",
            )
        pairs = [pair.split(":") for pair in found[2].split(",") if pair]
        return EventPlace(found[1], {int(partition): int(offset) for partition, offset in pairs})

    def __str__(self) -> str:
        offsets = ",".join(f"{partition}:{offset}" for partition, offset in sorted(self.offsets.items()) if offset)
        return f"{self.topic_id}/{offsets}"


def same(one: Offsets, other: Offsets) -> bool:
    """Whether nothing is between them."""
    return all(one.get(partition, 0) == other.get(partition, 0) for partition in {*one, *other})
