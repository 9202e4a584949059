"""The durable copy of a bucket's state, in memory: what a restart finds of a ``RunStore``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.joins.state.store import RunEntry, RunStore


@dataclass
class DurableCopy:
    """The entries of a store, by id, and its scalars, as of the last save; empty before the first."""

    entries: dict[int, RunEntry] = field(default_factory=dict)
    scalars: Mapping[str, int] = field(default_factory=dict)

    def save(self, store: RunStore) -> None:
        """Take over what has changed in ``store`` since its last flush."""
        journal = store.flush()
        for entry_id in journal.dropped:
            del self.entries[entry_id]
        self.entries.update(journal.written)
        self.scalars = journal.scalars

    def restored(self) -> RunStore:
        """The store as it was last saved; a new one each time."""
        return RunStore.restored(self.entries.items(), self.scalars)
