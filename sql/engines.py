"""The two engines."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """Who runs a part of a query: Spark what keeps state of its inputs, the Faust workers what looks up."""

    SPARK = "spark"
    FAUST = "faust"
