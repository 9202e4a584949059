"""The bytes of a message, and how many of them a topic takes."""

from __future__ import annotations

MESSAGE_BYTES = 1_000_000
"""What a topic takes of which nobody has said anything else: key, value and headers together."""


def message_size(key: bytes | None, value: bytes | None) -> int:
    """Bytes of a message, without its headers."""
    return len(key or b"") + len(value or b"")
