"""What the arrangements of a bucket hold: rows, bytes, keys, and the keys that have the most rows.

No pass over the rows is made. Each run knows how many keys it has and which are the heaviest of it; these few are
counted in all runs, by binary search. So a key is overlooked only where it is among the heaviest of no run, and the
largest run has most of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.changelog.hashing import Hashes
from dovetail.changelog.rows import Positions, any_null
from dovetail.joins.state.order import Times, times_of
from dovetail.joins.state.run_search import LOW
from dovetail.joins.state.store import KeyLayout, Run, RunStore

TOP = 5
"""How many of the heaviest keys are named."""
_LONGEST_TEXT = 60


@dataclass(frozen=True)
class KeyRows:
    """A join key, as a text, and how many rows stand under it."""

    key: str
    rows: int


@dataclass(frozen=True)
class ArrangementStats:
    """What is held under the name of one arrangement.

    rows, bytes  a row and its retraction count both, until they meet in a merge
    keys         at least, and at most, so many: different runs may have the same keys
    fan_out      the most rows of one key that can match: so many a row of the other side meets
    top          the keys with the most rows, the greatest number first; those of a single row are not named. A key with
                 a NULL that equals nothing is among them: its rows are held, and meet none
    """

    rows: int
    bytes: int
    keys: tuple[int, int]
    fan_out: int
    top: tuple[KeyRows, ...]


def holdings(store: RunStore) -> dict[str, ArrangementStats]:
    """By name, of the arrangements that were opened on ``store``."""
    return {name: _holding(store.runs[name], layout) for name, layout in sorted(store.layouts.items())}


def _holding(runs: Sequence[Run], layout: KeyLayout) -> ArrangementStats:
    keys = [run.weights.keys for run in runs]
    words = np.array(sorted({word for run in runs for word in run.weights.heaviest}), dtype=np.uint64)
    counts = sum((_counts(run, words, layout.order) for run in runs), np.zeros(len(words), dtype=np.int64))
    heaviest = [at for at in np.argsort(-counts, kind="stable")[:TOP] if counts[at] > 1]
    keyed = [(_key(runs, words[at], layout.keys), int(counts[at])) for at in heaviest]
    matching = [count for key, count in keyed if not any_null(key, layout.strict).any()]
    return ArrangementStats(
        rows=sum(map(len, runs)),
        bytes=sum(run.bytes for run in runs),
        keys=(max(keys, default=0), sum(keys)),
        fan_out=max(matching, default=min(int(counts.max(initial=0)), 1)),
        top=tuple(KeyRows(key_text(key), count) for key, count in keyed),
    )


def _counts(run: Run, words: Hashes, order: str) -> Positions:
    """How many rows of ``run`` stand under each of ``words``."""
    low, high = np.searchsorted(run.sort, words, "left"), np.searchsorted(run.sort, words | LOW, "right")
    if run.unit and not order:
        return high - low
    return np.array([_live_rows(run, int(a), int(b), order) for a, b in zip(low, high, strict=True)], dtype=np.int64)


def _live_rows(run: Run, low: int, high: int, order: str) -> int:
    """The sum of the deltas of the rows from ``low`` to ``high`` that have not expired."""
    if low == high:
        return 0
    deltas = run.deltas[low:high]
    if order and _times(run, order, low, low + 1)[0] < run.since:
        deltas = deltas[_times(run, order, low, high) >= run.since]
    return len(deltas) if run.unit else int(deltas.sum())


def _times(run: Run, order: str, low: int, high: int) -> Times:
    return times_of(run.table.slice(low, high - low).column(order))


def _key(runs: Sequence[Run], word: np.uint64, keys: Sequence[str]) -> pa.Table:
    """The key columns of one row that lies under ``word``."""
    for run in runs:
        at = int(np.searchsorted(run.sort, word, "left"))
        if at < len(run) and run.sort[at] <= word | LOW:
            return run.table.select(list(keys)).slice(at, 1)
    raise InternalError("a run knows of a key that no run holds")


def key_text(key: pa.Table) -> str:
    """The values of one row, as they are read in SQL, cut where they are long."""
    values = ("NULL" if column[0].as_py() is None else str(column[0].as_py()) for column in key.columns)
    text = ", ".join(values) or "every row"
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 2] + ".."
