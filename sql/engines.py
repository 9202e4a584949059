"""What runs queries."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """Who runs a part of a query: Spark what keeps state of its inputs, the Faust workers what looks up; the generator,
    a thread beside Spark's session, writes the rows of streams that are made of random ones.
    """

    SPARK = "spark"
    FAUST = "faust"
    DATAGEN = "datagen"

    @property
    def component(self) -> str:
        """The part of the local stack that it is."""
        return "worker" if self is Engine.FAUST else "spark"

    @staticmethod
    def of(component: str) -> list[Engine]:
        """Those that a part of the local stack is."""
        return [engine for engine in Engine if engine.component == component]

    @property
    def process(self) -> str:
        """What its process is called in messages."""
        return "lookup worker" if self is Engine.FAUST else "Spark runner"
