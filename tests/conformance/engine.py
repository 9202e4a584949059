"""What the runner asks of an engine; hosts of the same plan and operators stand behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dovetail.changelog.errors import Unsupported
from dovetail.sql.query_settings import Value
from tests.conformance.case import Row, Wait


@dataclass(frozen=True)
class Change:
    """A row of the output and its signed count, as the record in the output topic says."""

    row: Row
    delta: int


class NotRunnable(Unsupported):
    """The step is beyond the engine; the case counts as failed."""


class Engine(Protocol):
    """One case's world: its tables, its query, its output. Methods raise the errors of ``changelog.errors``."""

    def create(self, statement: str) -> None:
        """Run a statement of the DDL."""
        ...

    def start(self, query: str, settings: Mapping[str, Value]) -> None:
        """Plan the query and start it; what the tables hold by then is its history."""
        ...

    def insert(self, table: str, rows: Sequence[Row]) -> None: ...

    def update(self, table: str, pairs: Sequence[tuple[Row, Row]]) -> None: ...

    def delete(self, table: str, rows: Sequence[Row]) -> None: ...

    def source(self, table: str, rows: Sequence[Row], deleted: Sequence[Row]) -> None:
        """Upsert into, or delete from, a table of an external database."""
        ...

    def run(self, statement: str) -> None:
        """Run a statement while the query runs."""
        ...

    def drain(self) -> list[Change]:
        """Let the query take in all input; the changes since the last drain, in the order of their emission."""
        ...

    def wait(self, kind: Wait) -> None: ...

    def restart(self) -> None:
        """Stop the query, then resume it from its checkpoint."""
        ...

    def snapshot(self, query: str) -> list[Row]:
        """The answer of a bounded query, now."""
        ...

    def close(self) -> None: ...
