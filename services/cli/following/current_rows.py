"""The rows that a changelog adds up to, kept while it is read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA
from dovetail.changelog.schema import ARRIVAL, WIRE_DELTA, Kind, StreamSchema
from dovetail.changelog.topic_content import content


class CurrentRows:
    """What ``SELECT .. FROM table(x)`` gives of all that was added, in the order in which the rows came.

    A retraction of a row that was not added counts for nothing: it came before somebody looked.

    stream   how the rows become changes; None: nothing is taken back
    most     of rows that are never taken back no more are kept; of others all, for each may change
    changes  how many were added
    """

    def __init__(self, schema: pa.Schema, stream: StreamSchema | None, most: int) -> None:
        self._stream = stream if stream is not None and stream.kind is not Kind.APPEND else None
        self._most = most
        self._rows = _nullable(pa.schema([field for field in schema if field.name != WIRE_DELTA]).empty_table())
        self._new: list[pa.Table] = []
        self.changes = 0

    def add(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self.changes += rows.num_rows
            self._new.append(_nullable(rows))

    @property
    def count(self) -> int:
        return self.changes if self._stream is None else self._folded().num_rows

    def newest(self, most: int) -> pa.Table:
        """The rows that came last, at most so many; of rows that are never taken back no more than are kept."""
        rows = self._folded()
        return rows.slice(max(0, rows.num_rows - most))

    def _folded(self) -> pa.Table:
        if self._new:
            new, self._new = pa.concat_tables(self._new), []
            self._rows = self._last(new) if self._stream is None else self._current(new, self._stream)
        return self._rows

    def _last(self, new: pa.Table) -> pa.Table:
        rows = pa.concat_tables([self._rows, new.slice(max(0, new.num_rows - self._most))])
        # Copied: a slice would hold the tables that it is of.
        return rows.take(pa.array(np.arange(max(0, rows.num_rows - self._most), rows.num_rows)))

    def _current(self, new: pa.Table, stream: StreamSchema) -> pa.Table:
        """What stands is inserted once more, before what is new."""
        once = pa.array(np.ones(self._rows.num_rows, np.int64)).cast(new.field(WIRE_DELTA).type)
        both = pa.concat_tables([self._rows.append_column(WIRE_DELTA, once), new]).combine_chunks()
        decoded = both.drop_columns([WIRE_DELTA])
        decoded = decoded.append_column(ARRIVAL, pa.array(np.arange(both.num_rows)))
        return content(stream, decoded.append_column(DELTA, both.column(WIRE_DELTA).cast(pa.int64())))


def _nullable(rows: pa.Table) -> pa.Table:
    """Of one schema, whichever columns were known to have no NULL."""
    return pa.table(rows.columns, names=rows.column_names)
