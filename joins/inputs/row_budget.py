"""A budget of rows for each join key on one side of a join, and the records that it refuses.

**Definition.** Records are taken in the order of their arrival, each by what stands when it comes. One that would be
one row more than ``most`` under its key is *refused*: it counts as never written. So does a retraction that takes a
refused row back; of equal rows the refused ones are taken back first. A record that replaces the row of its primary key
adds none, so it is not refused. A key with a NULL that equals nothing meets no row, and has no budget.

    most = 2    + a    + b    + c        - c        - a    + d
    held        a      a b    a b        a b        b      b d
    refused                   c          - c

The rows held, and all that is made of them, are those of the inputs without the refused records: what was refused does
not come in when a place becomes free. Which records are refused follows from their order alone, not from where batches
are cut.

**State.** Of inputs with retractions the refused rows that were not taken back yet, in the columns that tell rows
apart.

Refused alternatives: a budget of the *matches* of a row would have to be weighed again for each row of the other side
that comes or goes, and take back what had been joined. To leave the heaviest key out altogether would take back all of
its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.errors import InternalError
from dovetail.changelog.rows import Mask, Positions, any_null, numbered
from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.state.arrangement import Arrangement, Matches
from dovetail.joins.state.store import RunStore

REASON = "__reason"
"""The column of refused records that says why."""
BUDGETED = (Ingest.APPEND, Ingest.CHANGELOG, Ingest.UPSERT)
"""The inputs whose records have a budget: of others a row is no record, or no record tells which row it takes back."""


@dataclass
class RowBudget:
    """That of ``port``, whose rows are in ``held``; ``refused`` has those that were refused and still stand."""

    port: Port
    most: int
    held: Arrangement
    refused: Arrangement | None
    left_out: list[pa.Table] = field(default_factory=list)
    """The records refused since they were last asked for, with their REASON."""

    @staticmethod
    def of(port: Port, held: Arrangement, store: RunStore, name: str) -> RowBudget | None:
        """None where the port has no budget."""
        if port.max_rows_per_key is None:
            return None
        if port.ingest not in BUDGETED:
            raise InternalError(f"rows that are {port.ingest} have no budget", fix=f"one of {', '.join(BUDGETED)} has")
        refused = None
        if port.ingest is Ingest.CHANGELOG:
            identity = port.identity_columns
            schema = pa.schema([port.schema.field(one) for one in identity])
            refused = Arrangement(store, f"{name}.refused", schema, port.keys, identity, held.null_safe, counted=True)
        return RowBudget(port, port.max_rows_per_key, held, refused)

    def within(self, rows: pa.Table) -> pa.Table:
        """``rows``, in the order of their arrival, without those that are refused."""
        numbers, firsts = numbered(rows.select(list(self.port.keys)))
        keys = rows.take(pa.array(firsts))
        held, deltas = self.held.counts(keys), Changes(rows).deltas
        come = np.bincount(numbers[deltas > 0], minlength=len(firsts))
        judged = held + come > self.most
        if self.refused is not None and not self.refused.empty:
            judged |= self.refused.counts(keys) > 0
        judged &= ~any_null(keys, self.held.strict())
        suspects = np.flatnonzero(judged[numbers])
        if not len(suspects):
            return rows
        found = self._judged(rows.take(pa.array(suspects)), numbers[suspects], held)
        if not found.any():
            return rows
        gone = suspects[found]
        self._refuse(rows.take(pa.array(gone)))
        return rows.take(pa.array(np.delete(np.arange(rows.num_rows), gone)))

    def taken(self) -> pa.Table | None:
        """What was refused since this was last asked; None: nothing."""
        parts, self.left_out = self.left_out, []
        return pa.concat_tables(parts).combine_chunks() if parts else None

    def _judged(self, rows: pa.Table, keys: Positions, held: npt.NDArray[np.int64]) -> Mask:
        """Which of ``rows`` are refused, whose keys have these numbers; ``held``: rows by number of key."""
        deltas = Changes(rows).deltas
        match self.port.ingest:
            case Ingest.APPEND:
                return held[keys] + _places(keys) >= self.most
            case Ingest.UPSERT:
                identities, firsts = numbered(rows.select(list(self.port.primary_key)))
                there, _ = self.held.current(rows.take(pa.array(firsts)), self.port.primary_key)
                return _replacing(keys, identities, deltas, held, np.bincount(there, minlength=len(firsts)), self.most)
            case _:
                identities, firsts = numbered(rows.select(list(self.port.identity_columns)))
                candidates = rows.take(pa.array(firsts))
                known = _known(self.held.equal(candidates), len(firsts))
                refused = np.zeros_like(known)
                if self.refused is not None:
                    refused = _known(self.refused.equal(candidates), len(firsts))
                return _taken_back(keys, identities, deltas, held, known, refused, self.most)

    def _refuse(self, rows: pa.Table) -> None:
        changes = Changes(rows)
        if self.refused is not None:
            self.refused.insert(
                Changes.with_deltas(rows.select(self.refused.schema.names), changes.deltas).consolidated()
            )
        self.left_out.append(rows.append_column(REASON, self._reasons(rows, changes)))

    def _reasons(self, rows: pa.Table, changes: Changes) -> pa.Array:
        keys = [rows.column(name).to_pylist() for name in self.port.keys]
        named = ", ".join(name.rpartition(".")[2] for name in self.port.keys)
        reasons = []
        for delta, *values in zip(changes.deltas.tolist(), *keys, strict=True):
            key = f"({named}) = ({', '.join('NULL' if value is None else str(value) for value in values)})"
            reasons.append(
                f"max_fan_out = {self.most}: as many rows of the key {key} stand on this side of the join"
                if delta > 0
                else f"max_fan_out = {self.most}: takes back a row of the key {key} that was refused"
            )
        return pa.array(reasons, pa.string())


def _places(keys: Positions) -> Positions:
    """For each row, how many rows of its key come before it."""
    order = np.argsort(keys, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order)) - np.searchsorted(keys[order], keys[order], "left")
    return places


def _known(found: Matches, count: int) -> npt.NDArray[np.int64]:
    """How often each of ``count`` probing rows is there."""
    known = np.zeros(count, dtype=np.int64)
    np.add.at(known, found.probe, found.deltas)
    return known


def _replacing(
    keys: Positions,
    identities: Positions,
    deltas: npt.NDArray[np.int64],
    held: npt.NDArray[np.int64],
    there: npt.NDArray[np.int64],
    most: int,
) -> Mask:
    """Of upserts: which are one row too many. ``held``: rows by key; ``there``: whether there is one, by identity."""
    rows, stands = held.tolist(), [bool(count) for count in there.tolist()]
    refused = np.zeros(len(keys), dtype=np.bool_)
    for at, (key, one, delta) in enumerate(zip(keys.tolist(), identities.tolist(), deltas.tolist(), strict=True)):
        if delta > 0 and not stands[one]:
            if rows[key] >= most:
                refused[at] = True
                continue
            stands[one], rows[key] = True, rows[key] + 1
        elif delta < 0 and stands[one]:
            stands[one], rows[key] = False, rows[key] - 1
    return refused


def _taken_back(
    keys: Positions,
    identities: Positions,
    deltas: npt.NDArray[np.int64],
    held: npt.NDArray[np.int64],
    known: npt.NDArray[np.int64],
    left_out: npt.NDArray[np.int64],
    most: int,
) -> Mask:
    """Of a changelog: which are one row too many, or take back one that was. ``held``: rows by key; ``known`` and
    ``left_out``: rows held, and refused ones, by identity.
    """
    rows, present, gone = held.tolist(), known.tolist(), left_out.tolist()
    refused = np.zeros(len(keys), dtype=np.bool_)
    for at, (key, one, delta) in enumerate(zip(keys.tolist(), identities.tolist(), deltas.tolist(), strict=True)):
        if delta > 0:
            if rows[key] >= most:
                refused[at], gone[one] = True, gone[one] + 1
            else:
                rows[key], present[one] = rows[key] + 1, present[one] + 1
        elif gone[one]:
            refused[at], gone[one] = True, gone[one] - 1
        elif present[one]:
            rows[key], present[one] = rows[key] - 1, present[one] - 1
    return refused
