"""The bytes of a message, and how many of them a topic takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

MESSAGE_BYTES = 1_000_000
"""What a topic takes of which nobody has said anything else: key, value and headers together."""


def message_size(key: bytes | None, value: bytes | None) -> int:
    """Bytes of a message, without its headers."""
    return len(key or b"") + len(value or b"")


def largest_message(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> int:
    """Bytes of the largest of the messages that ``keys`` and ``values`` make in pairs; 0 where there are none."""
    return max(starmap(message_size, zip(keys, values, strict=True)), default=0)
