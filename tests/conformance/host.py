"""What runs the dataflows of a case: topics, and queries between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from joins.dataflow import Dataflow
from tests.conformance.records import Record


@dataclass(frozen=True)
class Launch:
    """A planned query. ``plan`` is its text; ``snapshots`` are the static tables as they are now."""

    name: str
    dataflow: Dataflow
    topic: str
    plan: str
    fingerprint: str
    snapshots: Mapping[str, pa.Table]


class Host(Protocol):
    """Topics have one partition, so that the rows of a step count in the order given."""

    def create_topic(self, topic: str) -> None: ...

    def send(self, topic: str, records: Iterable[Record]) -> None: ...

    def records(self, topic: str) -> Sequence[Record]:
        """All records of a topic, in order."""
        ...

    def launch(self, query: Launch) -> None: ...

    def settle(self) -> None:
        """Every query has taken in all of its input. Raises what ended one."""
        ...

    def restart(self, name: str) -> None: ...

    def close(self) -> None: ...
