"""Heartbeats: records with neither key nor value, which say how far event time has come in their partition.

A producer gives that time as the timestamp of the record. A query that writes its output gives it in a header, which
goes before: the broker refuses timestamps that are too far ahead of its clock, and deletes records by them, and a
watermark may lie in any year, before 1970 too, or be a whole number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HEADER = "dovetail.watermark"
"""Its value: a whole number as text, in ms since the epoch where event times are times."""
_NUMBER = re.compile(rb"-?[0-9]{1,18}")


def heartbeat(watermark: int) -> dict[str, Any]:
    """The message that says that no row behind ``watermark`` is yet to come in its partition. Its key is empty, which
    counts as none: a topic that is compacted takes no message without one.
    """
    return {"key": b"", "value": None, "headers": [(HEADER, str(watermark).encode())]}


def said(headers: Mapping[str, str | bytes | None]) -> int | None:
    """What the headers of a heartbeat say; None where they say nothing, or no number: then its timestamp counts."""
    found = headers.get(HEADER)
    return int(found) if isinstance(found, bytes) and _NUMBER.fullmatch(found) else None
