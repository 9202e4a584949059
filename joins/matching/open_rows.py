"""The left rows of an updating ASOF join whose match may still become another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import numbered
from dovetail.joins.inputs.timed import TimedNormalizer
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import EARLIEST, Times, shifted
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class OpenRows:
    """The rows of ``side`` by join key and time; those that have found nothing until they were passed are ``open``.

    left      ──a────b────│bound──c───▶      looking forward b found nothing before the bound:
    right     ───r1───────│───────r2──▶      it is open until r2 has been passed too
    """

    side: TimedNormalizer
    rows: Arrangement
    open: Arrangement

    @staticmethod
    def of(side: TimedNormalizer, name: str, store: RunStore) -> OpenRows:
        return OpenRows(side, side.arrangement(name, store), side.arrangement(f"{name}.open", store))

    @property
    def empty(self) -> bool:
        return self.rows.empty and self.open.empty

    def insert(self, changes: Changes) -> None:
        """A row before the bound is final as it comes."""
        self.rows.insert(self.side.since(changes, self.rows.expired))

    def found_between(self, rows: pa.Table, low: Times, high: Times, keys: Sequence[str]) -> Changes:
        return Changes.concat(stored.found_between(rows, low, high, keys) for stored in (self.rows, self.open))

    def drop(self, bound: int) -> None:
        """Forget the rows before ``bound``."""
        self.rows.expire(bound)
        self.open.expire(bound)

    def forget_matched(self, bound: int, passed: Changes, right: TimedNormalizer, inclusive: bool) -> None:
        """Looking forward: forget the rows before ``bound`` for which one of the right rows ``passed`` is the match.

        These are all right rows before the bound that there ever were since the last one.
        """
        upto = shifted(right.times(passed), 0 if inclusive else -1)
        everything = np.full(len(passed), EARLIEST)
        self.open.insert(self.open.found_between(passed.table, everything, upto, right.port.keys).negated())
        gone = self.rows.expire(bound)
        ours, theirs = (rows.table.select(list(side.port.keys)) for rows, side in ((gone, self.side), (passed, right)))
        groups, firsts = numbered(pa.concat_tables([ours, theirs.rename_columns(ours.column_names)]).combine_chunks())
        latest = np.full(len(firsts), EARLIEST)
        np.maximum.at(latest, groups[len(gone) :], upto)
        found = self.side.times(gone) <= latest[groups[: len(gone)]]
        self.open.insert(gone.where(~found))
