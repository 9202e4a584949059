"""What a statement gives back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from dovetail.changelog.schema import StreamSchema


@dataclass(frozen=True)
class Done:
    """A statement that changed something: one line that says what."""

    text: str


@dataclass(frozen=True)
class Text:
    """Lines to be shown as they are: a plan, a definition."""

    text: str


@dataclass(frozen=True)
class Rows:
    """The answer of a bounded query, or a listing; of ``wide`` columns a screen has room for the beginning only."""

    table: pa.Table
    note: str = ""
    wide: tuple[str, ...] = ()


class Changelog(Protocol):
    """The rows of a streaming query, as tables whose last column may be ``_tp_delta``."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def stream(self) -> StreamSchema | None:
        """How the rows become changes; None: nothing is taken back."""
        ...

    def batches(self, *, until_idle: bool) -> Iterator[pa.Table]:
        """Rows as they come; ``until_idle``: until all input there is has been answered. Some tables may be empty."""
        ...


@dataclass(frozen=True)
class Live:
    """Rows that come one after the other; ``notes`` say where they begin.

    query   whether a streaming query makes them, which runs from entering ``changelog`` to leaving it
    """

    changelog: AbstractContextManager[Changelog]
    notes: tuple[str, ...] = field(default=())
    query: bool = True


Result = Done | Text | Rows | Live
