"""Accumulators: what is kept of the values of a group so that an aggregate over them is known after each change.

An accumulator has columns of its own in the row of each group, NULL where a group is new. ``updated`` gives their new
content from the old one and from the changes of the values. Counts and sums are linear: their update costs what the
changes are, not what the group is. The least and the greatest value are linear too while values only come; where they
can go, the values are kept besides, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Positions, equal_rows
from dovetail.joins.aggregates.exact_sums import (
    INFINITY,
    MINUS_INFINITY,
    NAN,
    Digits,
    Doubles,
    as_decimals,
    as_integers,
    balanced,
    digits_of,
    normalized,
    placed,
    quotients,
    rounded,
    width,
    with_specials,
    zero_filled,
)
from dovetail.joins.aggregates.group_values import OrderedValues, Values, best, drop
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.store import RunStore

_PLACE, _DIGIT = "__place", "__digit"


class Accumulator(Protocol):
    @property
    def fields(self) -> Sequence[pa.Field]:
        """Its columns in the row of a group."""
        ...

    def updated(self, before: pa.Table, values: Values) -> list[pa.Array]:
        """The new content of its columns, from that ``before`` the changes ``values`` and from these."""
        ...

    def drop(self, groups: pa.Table) -> None:
        """Forget ``groups``, given by their keys, as far as it keeps more than its columns."""
        ...


class Count:
    """How many values there are."""

    def __init__(self, name: str) -> None:
        self._name = f"{name}.count"

    @property
    def fields(self) -> Sequence[pa.Field]:
        return [pa.field(self._name, pa.int64())]

    def updated(self, before: pa.Table, values: Values) -> list[pa.Array]:
        return [pa.array(self.counts(before) + values.totals(values.deltas))]

    def counts(self, rows: pa.Table) -> Digits:
        return zero_filled(rows.column(self._name))

    def drop(self, groups: pa.Table) -> None:
        return


class Sum(Accumulator, Protocol):
    def sums(self, rows: pa.Table, kind: pa.DataType) -> pa.Array:
        """The sum of each group, as ``kind``; NULL where it has more digits than that."""
        ...

    def means(self, rows: pa.Table, counts: Digits) -> Doubles:
        """The sum of each group divided by how many values it has, one at least."""
        ...


class WholeSum:
    """The sum of integers or decimals, by its digits."""

    def __init__(self, name: str, kind: pa.DataType) -> None:
        self._names = [f"{name}.digit{place}" for place in range(width(kind))]
        self._scale = kind.scale if pa.types.is_decimal(kind) else 0

    @property
    def fields(self) -> Sequence[pa.Field]:
        return [pa.field(name, pa.int64()) for name in self._names]

    def updated(self, before: pa.Table, values: Values) -> list[pa.Array]:
        change = values.totals(digits_of(values.values) * values.deltas[:, None])
        digits = normalized(self._digits(before) + change)
        return [pa.array(digits[:, place]) for place in range(len(self._names))]

    def _digits(self, rows: pa.Table) -> Digits:
        return np.column_stack([zero_filled(rows.column(name)) for name in self._names])

    def sums(self, rows: pa.Table, kind: pa.DataType) -> pa.Array:
        digits = self._digits(rows)
        return as_decimals(digits, kind) if pa.types.is_decimal(kind) else as_integers(digits, kind)

    def means(self, rows: pa.Table, counts: Digits) -> Doubles:
        return quotients(self._digits(rows), counts, self._scale)

    def drop(self, groups: pa.Table) -> None:
        return


class RealSum:
    """The sum of doubles, rounded once, from its digits: they are kept in an arrangement, some few for each group."""

    def __init__(self, name: str, store: RunStore, place: str, keys: pa.Schema) -> None:
        self._name = f"{name}.sum"
        schema = pa.schema([*keys, pa.field(_PLACE, pa.int64()), pa.field(_DIGIT, pa.int64())])
        self._digits = Arrangement(store, place, schema, keys.names, (), (True,) * len(keys))

    @property
    def fields(self) -> Sequence[pa.Field]:
        return [pa.field(self._name, pa.float64())]

    def updated(self, before: pa.Table, values: Values) -> list[pa.Array]:
        places, digits = placed(values.values.to_numpy(zero_copy_only=False))
        found = self._digits.probe(values.groups).summed()
        group = np.concatenate([np.repeat(values.group, 3), found.probe])
        place = np.concatenate([places.ravel(), found.rows.column(_PLACE).to_numpy()])
        digit = np.concatenate([(digits * values.deltas[:, None]).ravel(), found.rows.column(_DIGIT).to_numpy()])
        total, kept = _added_up(values.groups.num_rows, group, place, digit)
        kept_rows = self._rows(values.groups, *kept)
        replaced = Changes.concat([found.changes.negated(), Changes.of(kept_rows.cast(self._digits.schema))])
        self._digits.insert(replaced.consolidated())
        return [pa.array(total)]

    def _rows(self, groups: pa.Table, group: Positions, place: Digits, digit: Digits) -> pa.Table:
        rows = groups.take(pa.array(group)).append_column(_PLACE, pa.array(place))
        return rows.append_column(_DIGIT, pa.array(digit))

    def sums(self, rows: pa.Table, kind: pa.DataType) -> pa.Array:
        return pa.array(self._sums(rows))

    def means(self, rows: pa.Table, counts: Digits) -> Doubles:
        return self._sums(rows) / counts

    def _sums(self, rows: pa.Table) -> Doubles:
        sums: Doubles = pc.fill_null(rows.column(self._name), 0.0).to_numpy()
        return sums

    def drop(self, groups: pa.Table) -> None:
        drop(self._digits, groups)


def _added_up(
    groups: int, group: Positions, place: Digits, digit: Digits
) -> tuple[Doubles, tuple[Positions, Digits, Digits]]:
    """The sum of each group, rounded, and its digits: group, place and digit of those that are not 0."""
    special = place < 0
    counts = np.zeros((groups, 3), dtype=np.int64)
    np.add.at(counts, (group[special], -1 - place[special]), digit[special])
    first = int(place[~special].min(initial=0 if special.all() else np.iinfo(np.int64).max))
    last = int(place[~special].max(initial=first))
    dense = np.zeros((groups, last - first + 3), dtype=np.int64)
    np.add.at(dense, (group[~special], place[~special] - first), digit[~special])
    dense = balanced(dense)
    total = with_specials(rounded(dense, first), *(counts[:, -1 - which] for which in (NAN, INFINITY, MINUS_INFINITY)))
    finite, infinite = np.nonzero(dense), np.nonzero(counts)
    return total, (
        np.concatenate([finite[0], infinite[0]]),
        np.concatenate([finite[1] + first, -1 - infinite[1]]),
        np.concatenate([dense[finite], counts[infinite]]),
    )


class Extreme:
    """The greatest or the least value, of values or of their set.

    ordered   the values in order, where they can go again: the next one is found there. They are of the set then
    """

    def __init__(self, name: str, kind: pa.DataType, greatest: bool, ordered: OrderedValues | None) -> None:
        self._name = f"{name}.{'max' if greatest else 'min'}"
        self._kind = kind
        self._greatest = greatest
        self._ordered = ordered

    @property
    def fields(self) -> Sequence[pa.Field]:
        return [pa.field(self._name, self._kind)]

    def updated(self, before: pa.Table, values: Values) -> list[pa.Array]:
        extremes = before.column(self._name).combine_chunks()
        lost = self._lost(extremes, values)
        unchanged = np.setdiff1d(np.flatnonzero(extremes.is_valid().to_numpy(zero_copy_only=False)), lost)
        come = values.where(values.deltas > 0)
        groups = [unchanged, come.group]
        candidates = [extremes.take(pa.array(unchanged)), come.values]
        if self._ordered is not None and len(lost):
            found, next_values = self._ordered.extremes(values.groups.take(pa.array(lost)), self._greatest)
            groups.append(lost[found])
            candidates.append(next_values)
        group = np.concatenate(groups)
        every = pa.concat_arrays(candidates)
        chosen = best(group, every, self._greatest)
        after = np.full(values.groups.num_rows, -1, dtype=np.int64)
        after[group[chosen]] = chosen
        return [every.take(pa.array(after, mask=after < 0))]

    def _lost(self, before: pa.Array, values: Values) -> Positions:
        """The groups whose extreme value is gone."""
        gone = values.where(values.deltas < 0)
        extremes = before.take(pa.array(gone.group))
        pair = pa.table({"gone": gone.values, "extreme": extremes})
        return np.unique(gone.group[equal_rows(pair, pair, [("gone", "extreme")], [False])])

    def values(self, rows: pa.Table) -> pa.Array:
        return rows.column(self._name).combine_chunks()

    def drop(self, groups: pa.Table) -> None:
        return
