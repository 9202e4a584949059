"""What runs the dataflows of a case: topics, and queries between them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from dovetail.sql.catalog import Catalog
from dovetail.sql.fragments import Fragment
from dovetail.sql.syntax.statements import System
from tests.conformance.external import Database
from tests.conformance.records import Record


@dataclass
class Clock:
    """The clock of the machine, and by how much a case has moved it."""

    ahead_ms: int = 0

    @property
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms


@dataclass(frozen=True)
class Launch:
    """A fragment of a planned query.

    view       the query that it is a fragment of, and ``sql``, the text of this
    snapshots  the static tables as they are now
    catalog    holds what the query reads
    """

    fragment: Fragment
    view: str
    sql: str
    snapshots: Mapping[str, pa.Table]
    catalog: Catalog

    @property
    def name(self) -> str:
        return self.fragment.name

    @property
    def topic(self) -> str:
        return self.fragment.output.topic


class Host(Protocol):
    """Topics have one partition, so that the rows of a step count in the order given."""

    def create_topic(self, topic: str) -> None: ...

    def send(self, topic: str, records: Iterable[Record]) -> None: ...

    def records(self, topic: str) -> Sequence[Record]:
        """All records of a topic, in order."""
        ...

    def launch(self, query: Launch) -> None: ...

    @property
    def databases(self) -> Mapping[str, Database]:
        """The external databases, by the kind of source that stands for them."""
        ...

    @property
    def prefix(self) -> str:
        """What the names of a case's tables begin with, where several cases share a database."""
        ...

    def pass_time(self, ms: int) -> None:
        """So much time goes by."""
        ...

    def run(self, statement: System) -> None: ...

    def settle(self) -> None:
        """Every query has taken in all of its input. Raises what ended one."""
        ...

    def restart(self, name: str) -> None: ...

    def close(self) -> None: ...
