"""The runs of a bucket's arrangements, and the journal of what makes them durable.

An arrangement's rows lie in **runs**: immutable tables sorted by ``__sort``. Runs merge geometrically, so their content
is written again and again in memory and in local files; the durable copy is not. It holds **entries**: each new run is
one (or, above ``ENTRY_ROWS``, several). A merge of large runs only adds their lists of entries up; entries are written
anew when the merged run is small, or when it holds half of their rows or less. So durable writes stay near one per row,
and the durable copy below twice the live rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Deltas
from dovetail.changelog.rows import numpy_column
from dovetail.joins.state.key_weights import KeyWeights
from dovetail.joins.state.part_of_names import PartOfNames
from dovetail.joins.state.partitioned_by import PartitionedBy

SORT = "__sort"
ENTRY_ROWS = 65_536
NEXT_ID = "next_id"
"""Among the durable scalars: what no entry was called yet."""


@dataclass(frozen=True)
class Run:
    """Sorted rows. ``table``: the row columns, ``delta``, and ``__sort`` last.

    unit    every delta is 1
    clean   no two join keys of the run share the upper bits of ``__sort``
    since   where rows are ordered by time: those before it have expired, and are there no more
    weights how its rows are spread over their join keys
    """

    uid: int
    table: pa.Table
    unit: bool
    clean: bool
    entries: tuple[int, ...]
    durable_rows: int
    since: int
    weights: KeyWeights

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def sort(self) -> npt.NDArray[np.uint64]:
        return numpy_column(self.table, SORT)

    @property
    def deltas(self) -> Deltas:
        return numpy_column(self.table, DELTA)

    @cached_property
    def bytes(self) -> int:
        """The Arrow size of its rows, ``__sort`` left out. Arrow adds it up anew whenever it is asked."""
        return int(self.table.nbytes) - 8 * len(self)


@dataclass(frozen=True)
class KeyLayout:
    """Of an arrangement.

    keys    the columns of its join key
    strict  those of them in which NULL equals nothing
    order   the column by which the rows of a key are ordered, if any
    """

    keys: tuple[str, ...]
    strict: tuple[str, ...]
    order: str


@dataclass(frozen=True)
class RunEntry:
    """A durable piece of an arrangement: rows and their deltas, without ``__sort``."""

    arrangement: str
    table: pa.Table


@dataclass(frozen=True)
class Journal:
    """What has to be written and removed to make the store's present content durable."""

    written: Mapping[int, RunEntry]
    dropped: frozenset[int]
    scalars: Mapping[str, int]


@dataclass
class RunStore:
    """The state of one bucket: runs by arrangement, oldest first, and a few numbers (``scalars``)."""

    runs: MutableMapping[str, list[Run]] = field(default_factory=dict)
    scalars: MutableMapping[str, int] = field(default_factory=dict)
    unsorted: MutableMapping[str, list[tuple[int, pa.Table]]] = field(default_factory=dict)
    """Entries read back, by arrangement; the arrangement sorts them into one run when it is opened."""
    next_id: int = 0
    partitioned_by: MutableMapping[str, PartitionedBy] = field(default_factory=dict)
    """By arrangement, how its rows came into this bucket; those that were opened say so."""
    layouts: MutableMapping[str, KeyLayout] = field(default_factory=dict)
    """By arrangement, of those that were opened."""
    _written: dict[int, RunEntry] = field(default_factory=dict)
    _dropped: set[int] = field(default_factory=set)

    @staticmethod
    def restored(entries: Iterable[tuple[int, RunEntry]], scalars: Mapping[str, int]) -> RunStore:
        """The store whose durable copy holds ``entries``; they may come in any order."""
        store = RunStore(scalars=dict(scalars))
        store.next_id = store.scalars.pop(NEXT_ID, 0)
        for entry_id, entry in sorted(entries, key=lambda pair: pair[0]):
            store.unsorted.setdefault(entry.arrangement, []).append((entry_id, entry.table))
            store.next_id = max(store.next_id, entry_id + 1)
        return store

    @staticmethod
    def seeded(pieces: Iterable[RunEntry], scalars: Mapping[str, int], next_id: int = 0) -> RunStore:
        """A store that begins with ``pieces``, in their order; nothing of it is durable yet."""
        store = RunStore(scalars=dict(scalars), next_id=next_id)
        store._begin_with(pieces)
        return store

    def begin_anew(self, pieces: Iterable[RunEntry]) -> None:
        """Hold ``pieces``, in their order, instead of all that is held."""
        scalars = dict(self.scalars)
        self.drop("")
        self.scalars.update(scalars)
        self._begin_with(pieces)

    def _begin_with(self, pieces: Iterable[RunEntry]) -> None:
        found: dict[str, list[pa.Table]] = {}
        for piece in pieces:
            found.setdefault(piece.arrangement, []).append(piece.table)
        for arrangement, tables in found.items():
            ids = self.write(arrangement, pa.concat_tables(tables).combine_chunks())
            self.unsorted[arrangement] = [(entry_id, self._written[entry_id].table) for entry_id in ids]

    def part(self, prefix: str) -> RunStore:
        """What of it has names that begin with ``prefix``, as a store in which they stand without it."""
        return _Part(self, prefix)

    def drop(self, prefix: str) -> None:
        """Remove what has names that begin with ``prefix``."""
        part = self.part(prefix)
        for _, run in part.all_runs():
            self.discard(run.entries)
        for entries in part.unsorted.values():
            self.discard(entry_id for entry_id, _ in entries)
        for names in (part.runs, part.unsorted, part.scalars, part.partitioned_by):
            names.clear()

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def write(self, arrangement: str, table: pa.Table) -> tuple[int, ...]:
        """Note ``table`` (rows and ``delta``) to be made durable; the ids of its entries."""
        ids = []
        for start in range(0, table.num_rows, ENTRY_ROWS):
            ids.append(self.new_id())
            self._written[ids[-1]] = RunEntry(arrangement, table.slice(start, ENTRY_ROWS))
        return tuple(ids)

    def discard(self, entries: Iterable[int]) -> None:
        for entry_id in entries:
            if self._written.pop(entry_id, None) is None:
                self._dropped.add(entry_id)

    def flush(self) -> Journal:
        """The changes since the last flush, handed over once."""
        journal = Journal(self._written, frozenset(self._dropped), {**self.scalars, NEXT_ID: self.next_id})
        self._written, self._dropped = {}, set()
        return journal

    def all_runs(self) -> Iterator[tuple[str, Run]]:
        for arrangement, runs in sorted(self.runs.items()):
            for run in runs:
                yield arrangement, run

    @property
    def rows(self) -> int:
        return sum(len(run) for _, run in self.all_runs())

    @property
    def buffered_bytes(self) -> int:
        """The Arrow size of the rows held."""
        return sum(run.bytes for _, run in self.all_runs())


class _Part(RunStore):
    """Its entries are numbered, noted and made durable with those of the whole."""

    def __init__(self, whole: RunStore, prefix: str) -> None:
        super().__init__(
            runs=PartOfNames(whole.runs, prefix),
            scalars=PartOfNames(whole.scalars, prefix),
            unsorted=PartOfNames(whole.unsorted, prefix),
            partitioned_by=PartOfNames(whole.partitioned_by, prefix),
            layouts=PartOfNames(whole.layouts, prefix),
        )
        self._whole, self._prefix = whole, prefix

    def new_id(self) -> int:
        return self._whole.new_id()

    def write(self, arrangement: str, table: pa.Table) -> tuple[int, ...]:
        return self._whole.write(f"{self._prefix}{arrangement}", table)

    def discard(self, entries: Iterable[int]) -> None:
        self._whole.discard(entries)
