"""Whose meaning the words of a statement have."""

from __future__ import annotations

from enum import StrEnum


class Rules(StrEnum):
    """Whose meaning a stream has; its DDL decides."""

    TIMEPLUS = "timeplus"
    RISINGWAVE = "risingwave"
