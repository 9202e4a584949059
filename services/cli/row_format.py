"""How rows are written: the choice of ``--output``, and of ``--table``."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"


class Mode(StrEnum):
    """What a terminal shows of rows that come one after the other."""

    CHANGELOG = "changelog"
    """Each change, in its order."""
    TABLE = "table"
    """What they add up to, in place."""
