"""How rows are written: the choice of ``--output``."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"
