"""Records to changes: what upserts and untrusted retractions mean, given the rows held.

The changes returned are consistent with the arrangement they were made against: every retraction is of a row that is
held, so nothing downstream goes below zero. The caller inserts them into it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import DELTA, Changes, Deltas
from dovetail.changelog.rows import Positions, RowsByKey, allotted, any_null, equal_rows, numbered, shortfalls
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.inputs.row_budget import RowBudget
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import sortable
from dovetail.joins.state.partitioned_by import PartitionedBy
from dovetail.joins.state.store import RunStore


@dataclass
class ChangeNormalizer:
    """The rows that reach a port, as changes to its arrangement.

    APPEND, CHANGES   as they are
    UPSERT            the last record of a primary key counts, or that of the greatest version: -1 of the row held,
                      +1 of the new one; a delete only -1
    CHANGELOG_KV      +1 is an upsert; -1 deletes the row it equals, else it is dangling
    CHANGELOG         -1 takes one equal row away; where none is there when it comes it is dangling

    Rows come in the order of their arrival. Dangling retractions are counted and left out; so are, before anything is
    made of them, the records that the budget of the port refuses.
    """

    port: Port
    arrangement: Arrangement
    dangling: int = 0
    _budget: RowBudget | None = field(default=None, kw_only=True)

    @staticmethod
    def of(
        port: Port,
        store: RunStore,
        name: str,
        null_safe: tuple[bool, ...] = (),
        order: str = "",
        counted: bool = False,
        partitioned_by: PartitionedBy | None = None,
    ) -> ChangeNormalizer:
        schema = port.schema
        subkeys: tuple[str, ...] = ()
        if port.ingest in (Ingest.UPSERT, Ingest.CHANGELOG_KV):
            subkeys = port.primary_key
        elif port.ingest is Ingest.CHANGELOG:
            subkeys = port.identity_columns
        if port.tie_break_by_arrival:
            schema = schema.append(pa.field(ARRIVAL, pa.int64()))
        if port.everywhere:
            partitioned_by = PartitionedBy((), everywhere=True)
        held = Arrangement(store, name, schema, port.keys, subkeys, null_safe, order, partitioned_by, counted)
        return ChangeNormalizer(port, held, _budget=RowBudget.of(port, held, store, name))

    def normalize(self, rows: pa.Table | None) -> Changes:
        """As ``changes``; None, or a table without rows: there are none."""
        if rows is None or rows.num_rows == 0:
            return Changes.empty(self.arrangement.schema)
        return self.changes(rows)

    def normalize_and_store(self, rows: pa.Table | None) -> Changes:
        """As ``normalize``; what later rows are compared with is inserted, and nothing where none are."""
        changes = self.normalize(rows)
        if self.port.ingest.compared:
            self.arrangement.insert(changes)
        return changes

    def store(self, changes: Changes) -> None:
        """Insert ``changes``; without the rows whose key can match nothing, where nobody looks for them either."""
        if not self.port.ingest.compared:
            changes = changes.where(~any_null(changes.table, self.arrangement.strict()))
        self.arrangement.insert(changes)

    def changes(self, rows: pa.Table) -> Changes:
        """``rows``: the port's columns, ``arrival`` where the port is ordered, ``delta``. Nothing is inserted yet."""
        names = [*self.arrangement.schema.names, DELTA]
        if self._budget is not None:
            rows = self._budget.within(rows)
            if rows.num_rows == 0:
                return Changes.empty(self.arrangement.schema)
        match self.port.ingest:
            case Ingest.UPSERT | Ingest.CHANGELOG_KV:
                return self._upserted(rows)
            case Ingest.CHANGELOG:
                return self._founded(Changes(rows.select(names)))
            case _:
                return Changes(rows.select(names))

    def refused(self) -> pa.Table | None:
        """The records that the budget has refused since this was last asked, with their REASON; None: none."""
        return None if self._budget is None else self._budget.taken()

    def _upserted(self, rows: pa.Table) -> Changes:
        """The difference between the rows held under the primary keys of ``rows`` and those after them."""
        groups = RowsByKey.by(rows, self.port.primary_key)
        deltas = rows.column(DELTA).to_numpy()
        rows = rows.select(self.arrangement.schema.names)
        owners, old = self.arrangement.current(rows.take(pa.array(groups.last)), self.port.primary_key)
        if self.port.ingest is Ingest.UPSERT and not self.port.version:
            final = np.where(deltas[groups.last] > 0, groups.last, -1)
            return _replaced(old, owners, rows, final)
        known = pa.concat_tables([rows, old.cast(rows.schema)]).combine_chunks()
        current = np.full(len(groups.last), -1, dtype=np.int64)
        current[owners] = rows.num_rows + np.arange(len(owners))
        after = self._greatest_versions if self.port.version else self._after_retractions
        return _replaced(old, owners, known, after(known, groups, deltas, current))

    def _greatest_versions(self, known: pa.Table, groups: RowsByKey, deltas: Deltas, current: Positions) -> Positions:
        """UPSERT: for each primary key the position in ``known`` of its row of the greatest version, or -1.

        What came before a delete counts no more, the row ``current`` included. A NULL version is less than any other.
        """
        owner, members = groups.owner_of_member, groups.members
        deleted = np.maximum.reduceat(np.where(deltas[members] < 0, members, -1), groups.begins)
        stands = (deltas[members] > 0) & (members > deleted[owner])
        kept = np.flatnonzero((current >= 0) & (deleted < 0))
        candidates = np.concatenate([current[kept], members[stands]])
        owners = np.concatenate([kept, owner[stands]])
        came = np.concatenate([np.full(len(kept), -1), members[stands]])
        order = pc.sort_indices(
            pa.table(
                {
                    "owner": owners,
                    "version": sortable(known.column(self.port.version).take(pa.array(candidates))),
                    "came": -came if self.port.first_stays else came,
                }
            ),
            sort_keys=[("owner", "ascending"), ("version", "ascending", "at_start"), ("came", "ascending")],
        ).to_numpy()
        greatest = np.full(len(groups.begins), -1, dtype=np.int64)
        # Of the candidates of an owner the one that is assigned last stays.
        greatest[owners[order]] = candidates[order]
        return greatest

    def _after_retractions(self, known: pa.Table, groups: RowsByKey, deltas: Deltas, current: Positions) -> Positions:
        """CHANGELOG_KV: for each primary key the position in ``known`` of its row after the batch, or -1.

        That is its last insertion, else the row ``current``; unless a retraction that came after it equals it.
        """
        inserted = np.maximum.reduceat(np.where(deltas[groups.members] > 0, groups.members, -1), groups.begins)
        target = np.where(inserted >= 0, inserted, current)
        owner = groups.owner_of_member
        retracting = np.flatnonzero((deltas[groups.members] < 0) & (groups.members > inserted[owner]))
        aimed = retracting[target[owner[retracting]] >= 0]
        equal = equal_rows(
            known.take(pa.array(groups.members[aimed])),
            known.take(pa.array(target[owner[aimed]])),
            [(name, name) for name in self.port.identity_columns],
            [True] * len(self.port.identity_columns),
        )
        deleted = np.unique(owner[aimed[equal]])
        self.dangling += len(retracting) - len(deleted)
        target[deleted] = -1
        return target

    def _founded(self, changes: Changes) -> Changes:
        """The insertions of ``changes``, and for each retraction a row that is there: held, or inserted before it.

        A retraction takes the row that equals it in the identity columns, the one held longest where there are several.
        """
        if changes.only_insertions:
            return changes.consolidated()
        inserted, deltas = changes.insertions, changes.deltas
        number, firsts = numbered(changes.table.select(list(self.port.identity_columns)))
        retracted = np.zeros(len(firsts), dtype=np.int64)
        np.subtract.at(retracted, number, np.minimum(deltas, 0))
        identities = changes.take(firsts).table
        fresh = Arrangement(RunStore(), "fresh", self.arrangement.schema, self.port.keys, self.port.identity_columns)
        fresh.insert(inserted)
        found = [side.equal(identities) for side in (self.arrangement, fresh)]
        held = np.zeros(len(firsts), dtype=np.int64)
        np.add.at(held, found[0].probe, found[0].deltas)
        missing = shortfalls(number, deltas, held)
        candidates = Changes.concat(match.changes for match in found)
        taken = allotted(np.concatenate([one.probe for one in found]), candidates.deltas, retracted - missing)
        self.dangling += int(missing.sum())
        gone = Changes.with_deltas(candidates.rows, -taken)
        return Changes.concat([inserted, gone]).consolidated()


def _replaced(old: pa.Table, owners: Positions, known: pa.Table, final: Positions) -> Changes:
    """-1 of each old row and +1 of each final one (a position in ``known``), without those that stayed equal.

    ``owners`` gives the group of each row of ``old``; ``final`` the row of each group, -1 for none.
    """
    replaced = np.flatnonzero(final[owners] >= 0)
    pairs = [(name, name) for name in known.column_names]
    equal = equal_rows(
        old.take(pa.array(replaced)), known.take(pa.array(final[owners[replaced]])), pairs, [True] * len(pairs)
    )
    unchanged = replaced[equal]
    stays = np.zeros(len(final), dtype=np.bool_)
    stays[owners[unchanged]] = True
    gone = old.take(pa.array(np.delete(np.arange(old.num_rows), unchanged)))
    come = known.take(pa.array(final[(final >= 0) & ~stays]))
    return Changes.concat([Changes.of(gone.cast(known.schema), -1), Changes.of(come, 1)])
