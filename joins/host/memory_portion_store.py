"""The portions of a bucket in the in-process host, each beside its durable copy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dovetail.joins.state.durable_copy import DurableCopy
from dovetail.joins.state.portion import WHOLE, Portion
from dovetail.joins.state.store import RunEntry, RunStore


class MemoryPortionStore:
    """``whole``: what the bucket begins with."""

    def __init__(self, whole: RunStore | None = None) -> None:
        self._portions = {WHOLE.number: WHOLE}
        self._copies: dict[int, DurableCopy] = defaultdict(DurableCopy)
        self._stores: dict[int, RunStore] = {}
        if whole is not None:
            self._copies[WHOLE.number].save(whole)

    @property
    def portions(self) -> Sequence[Portion]:
        return list(self._portions.values())

    def attach(self, portion: Portion) -> RunStore:
        if portion.number not in self._stores:
            self._stores[portion.number] = self._copies[portion.number].restored()
        return self._stores[portion.number]

    def put(self, portion: Portion, store: RunStore) -> None:
        self._portions[portion.number] = portion
        self._stores[portion.number] = store
        self._copies[portion.number].save(store)

    def restart(self) -> None:
        """Lose all that is in memory, save the durable copies."""
        self._stores.clear()

    @property
    def stores(self) -> Iterator[RunStore]:
        """Of all portions."""
        return map(self.attach, self.portions)

    @property
    def entries(self) -> Iterator[tuple[int, RunEntry]]:
        """The durable ones, by portion and in their order."""
        for _, copy in sorted(self._copies.items()):
            yield from sorted(copy.entries.items(), key=lambda pair: pair[0])

    @property
    def scalars(self) -> Iterator[Mapping[str, int]]:
        """Of each portion that has any."""
        return (copy.scalars for _, copy in sorted(self._copies.items()))
