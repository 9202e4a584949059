"""The padded rows of an outer join: which rows of one side (``own``) match nothing on the ``other``, as changes.

Both forms are asked twice in a batch: ``before`` the changes are inserted into the arrangements, and ``after``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from changelog.changes import Changes
from changelog.rows import Mask, any_null
from joins.state.arrangement import Arrangement
from joins.state.store import RunStore


class Padding(Protocol):
    def before(self, own_changes: Changes, other_changes: Changes) -> None: ...

    def after(self) -> Changes:
        """The change of the unmatched rows of ``own``, not yet padded."""
        ...


@dataclass
class CountedPadding:
    """Without a residual condition the rows of a key are all unmatched, or none: as the other side holds rows.

    With n the number of other rows of a key: where n goes from 0 up, the own rows (as after the batch) are taken back;
    where it goes to 0, they are given; and the new own rows of keys with n = 0 before the batch are given. For a key
    that goes from 0 up that takes back new rows and gives them again: no change, as it should be.
    """

    own: Arrangement
    other: Arrangement
    _fresh: Changes = field(init=False)
    _touched: pa.Table = field(init=False)
    _counts: npt.NDArray[np.int64] = field(init=False)

    def before(self, own_changes: Changes, other_changes: Changes) -> None:
        unmatched = self.other.counts(own_changes.table, self.own.keys) == 0
        self._fresh = own_changes.where(unmatched)
        self._touched = distinct(other_changes.table, self.other.keys)
        self._counts = self.other.counts(self._touched)

    def after(self) -> Changes:
        counts = self.other.counts(self._touched)
        flipped = np.flatnonzero((self._counts == 0) != (counts == 0))
        found = self.own.probe(self._touched.take(pa.array(flipped)), self.other.keys)
        sign = np.where(counts[flipped] == 0, 1, -1).astype(np.int32)
        moved = Changes.with_deltas(found.changes.rows, found.deltas * sign[found.probe])
        return Changes.concat([self._fresh, moved])


@dataclass
class RederivedPadding:
    """With a residual condition each row for itself: the unmatched rows of the touched keys, after less before.

    matching(own rows, other rows)   whether the condition holds, row by row
    """

    own: Arrangement
    other: Arrangement
    matching: Callable[[pa.Table, pa.Table], Mask]
    _touched: pa.Table = field(init=False)
    _unkeyed: Changes = field(init=False)
    _unmatched: Changes = field(init=False)

    def before(self, own_changes: Changes, other_changes: Changes) -> None:
        unkeyed = any_null(own_changes.table, self.own.strict())
        self._unkeyed = own_changes.where(unkeyed)
        others = other_changes.table.select(self.other.keys).rename_columns(self.own.keys)
        touched = pa.concat_tables([own_changes.table.select(self.own.keys), others.cast(_keys(self.own))])
        self._touched = distinct(touched, self.own.keys)
        self._unmatched = self._derive()

    def after(self) -> Changes:
        return Changes.concat([self._unkeyed, self._derive(), self._unmatched.negated()]).consolidated()

    def _derive(self) -> Changes:
        own = self.own.probe(self._touched).changes.consolidated()
        other = self.other.probe(self._touched, self.own.keys).changes.consolidated()
        side = Arrangement(RunStore(), "other", self.other.schema, self.other.keys, null_safe=self.other.null_safe)
        side.insert(other)
        found = side.probe(own.table, self.own.keys)
        found = found.where(self.matching(own.take(found.probe).table, found.rows))
        return own.where(found.unmatched(len(own)))


def distinct(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The different keys of ``rows``."""
    return rows.select(list(keys)).group_by(list(keys), use_threads=False).aggregate([])


def _keys(arrangement: Arrangement) -> pa.Schema:
    return pa.schema([arrangement.schema.field(name) for name in arrangement.keys])
