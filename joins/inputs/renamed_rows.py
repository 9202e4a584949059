"""Rows that are held once, under names of their own for each side of a join that they are.

orders AS a JOIN orders AS b ON a.customer = b.customer

held      customer  id  amount          one arrangement, by customer
as a      a.customer  a.id
as b      b.customer  b.amount          of each side the columns that it needs
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.joins.inputs.arrangement_view import ArrangementView
from dovetail.joins.state.arrangement import Matches

Names = tuple[tuple[str, str], ...]
"""Of each column its name, and the one under which it is held; every column of the key is among them."""


def renamed(changes: Changes, names: Names) -> Changes:
    """``changes`` of the rows held, under ``names``. Rows that now are equal stay rows of their own."""
    return Changes(_renamed(changes.table, names))


@dataclass(frozen=True)
class RenamedRows:
    """``held``, for reading, under ``names``."""

    held: ArrangementView
    names: Names

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self.held.schema.field(below).with_name(name) for name, below in self.names])

    @cached_property
    def keys(self) -> tuple[str, ...]:
        called = {below: name for name, below in reversed(self.names)}
        return tuple(called[key] for key in self.held.keys)

    @property
    def null_safe(self) -> tuple[bool, ...]:
        return self.held.null_safe

    @property
    def size(self) -> int:
        return self.held.size

    def strict(self) -> list[str]:
        return [name for name, safe in zip(self.keys, self.null_safe, strict=True) if not safe]

    def counts(self, rows: pa.Table, keys: Sequence[str] | None = None) -> npt.NDArray[np.int64]:
        return self.held.counts(rows, self._keys_or_own(keys))

    def probe(self, rows: pa.Table, keys: Sequence[str] | None = None) -> Matches:
        return self._found(self.held.probe(rows, self._keys_or_own(keys)))

    def probed(self, rows: pa.Table, keys: Sequence[str] | None = None) -> Iterator[Matches]:
        return map(self._found, self.held.probed(rows, self._keys_or_own(keys)))

    def _keys_or_own(self, keys: Sequence[str] | None) -> Sequence[str]:
        return self.keys if keys is None else keys

    def _found(self, matches: Matches) -> Matches:
        return Matches(matches.probe, _renamed(matches.rows, self.names))


def _renamed(rows: pa.Table, names: Names) -> pa.Table:
    return rows.select([*(below for _, below in names), DELTA]).rename_columns([*(name for name, _ in names), DELTA])
