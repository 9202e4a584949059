"""The changes of a view or a query, one after the other, as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dovetail.changelog.schema import WIRE_DELTA
from dovetail.services.session import Changelog


@dataclass(frozen=True)
class RowChange:
    """A row that came (``delta`` is 1), or that is taken back (-1): an update is both, the old row first."""

    row: dict[str, Any]
    delta: int


class ChangeFeed:
    """Iterate it, with ``for`` or ``async for``; without ``until_idle`` there is no end.

    Each iteration begins anew. A query runs from the first row that is asked for until the loop is left.
    """

    def __init__(self, opened: Callable[[], AbstractContextManager[Changelog]], *, until_idle: bool) -> None:
        self._opened = opened
        self._until_idle = until_idle

    def batches(self) -> Iterator[pa.Table]:
        """The same as tables, in which a last column ``_tp_delta`` counts each row, where rows can be taken back."""
        return (batch for batch in self._batches() if batch.num_rows)

    def __iter__(self) -> Iterator[RowChange]:
        for batch in self._batches():
            yield from _changes(batch)

    async def __aiter__(self) -> AsyncIterator[RowChange]:
        # A batch comes every now and then, be it empty: so whoever is cancelled does not wait for a row.
        batches, step = self._batches(), None
        try:
            while True:
                step = asyncio.ensure_future(asyncio.to_thread(next, batches, None))
                if (batch := await asyncio.shield(step)) is None:
                    return
                for change in _changes(batch):
                    yield change
        finally:
            if step is not None and not step.done():
                with suppress(Exception):
                    await step
            await asyncio.to_thread(batches.close)

    def _batches(self) -> Any:
        with self._opened() as changelog:
            yield from changelog.batches(until_idle=self._until_idle)


def _changes(batch: pa.Table) -> Iterator[RowChange]:
    for row in batch.to_pylist():
        delta = row.pop(WIRE_DELTA, 1)
        yield RowChange(row, delta)
