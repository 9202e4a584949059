"""What enters an operator and what happens on the way there: kinds of rows, watermarks, stateless steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import DAY_MS
from dovetail.changelog.values import normalised


class Ingest(StrEnum):
    """What the rows that reach a port are."""

    APPEND = "append"
    CHANGES = "changes"
    """Changes of an operator upstream: consistent by construction."""
    UPSERT = "upsert"
    CHANGELOG_KV = "changelog_kv"
    CHANGELOG = "changelog"

    @property
    def compared(self) -> bool:
        """Whether a row means what it means only beside those held: they are looked for one by one."""
        return self not in (Ingest.APPEND, Ingest.CHANGES)


class JoinKind(StrEnum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    """The left rows that match something; their columns alone leave."""
    ANTI = "anti"
    """The left rows that match nothing; their columns alone leave."""
    MARK = "mark"
    """Every left row, with a column besides, the mark, that says whether it matches something."""

    @property
    def is_existence(self) -> bool:
        """Whether each left row is asked if it matches something: no column of the right side leaves."""
        return self in EXISTENCE_JOINS


EXISTENCE_JOINS = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)


class SetKind(StrEnum):
    """A set operation on two inputs; UNION ALL, which compares no rows, is none of them."""

    INTERSECT = "intersect"
    INTERSECT_ALL = "intersect all"
    EXCEPT = "except"
    EXCEPT_ALL = "except all"

    @property
    def distinct(self) -> bool:
        """Whether a row stands once, if at all."""
        return self in (SetKind.INTERSECT, SetKind.EXCEPT)

    @property
    def intersects(self) -> bool:
        """Whether a row must be on both sides."""
        return self in (SetKind.INTERSECT, SetKind.INTERSECT_ALL)


def refuse_other_kinds(join: object, kind: JoinKind, possible: Sequence[JoinKind]) -> None:
    """Raise InternalError unless ``kind`` is one of those that ``join``, a specification or a reference, implements."""
    if kind not in possible:
        name, kinds = type(join).__name__, ", ".join(one.upper() for one in possible)
        raise InternalError(f"{name} implements no {kind.upper()} join", fix=f"use one of {kinds}")


class Pad(StrEnum):
    """What the columns of the missing side of an outer row hold."""

    NULL = "null"
    DEFAULT = "default"
    """The default of the column's type: 0, '', the epoch (``join_use_nulls = 0``)."""


class Predicate(Protocol):
    """A condition over rows; NULL counts as false. Pickles."""

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]: ...


class Transform(Protocol):
    """A stateless step on the rows of an edge: keeps ``delta`` and, where present, ``arrival``. Pickles."""

    def __call__(self, rows: pa.Table) -> pa.Table: ...

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Transform:
        """The step with the static tables it needs at hand; itself where it needs none."""
        ...


def transformed(rows: pa.Table, transforms: Sequence[Transform]) -> pa.Table:
    """``rows`` after all steps; what these have computed is in the one form of ``changelog.values``."""
    for step in transforms:
        rows = step(rows)
    return normalised(rows) if transforms else rows


@dataclass(frozen=True)
class Watermark:
    """``column`` is an event time of the rows; the watermark is the greatest one seen less ``delay_ms``.

    A time counts in ms since the epoch, digits beyond cut off; a whole number counts as it is, the delay too.

    idle_ms        a partition read to its end that gave no record for so long holds it back no more; None: never
    shared         rows are late when they are behind the least watermark of the join's inputs, not behind their own
    max_future_ms  a time so far after that of its record cannot be used; None: any time can. Not of whole numbers
    drops_late     rows behind it are late; false: it only tells how far the input has come
    from_heartbeats  heartbeats alone move it, no row does: the writer, a query, knows what it has yet to write
    """

    column: str
    delay_ms: int
    idle_ms: int | None = None
    shared: bool = False
    max_future_ms: int | None = DAY_MS
    drops_late: bool = True
    from_heartbeats: bool = False


@dataclass(frozen=True)
class Port:
    """One input of an operator.

    schema       the row columns, without ``arrival`` and ``delta``
    keys         the columns by which the rows are exchanged, the join key
    primary_key  for UPSERT and CHANGELOG_KV; holds every column of ``keys``
    watermark    over a column of ``schema``; insertions behind it (as of the batches before) are late: dropped, counted
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    ingest: Ingest
    primary_key: tuple[str, ...] = ()
    watermark: Watermark | None = None
    identity: tuple[str, ...] = ()
    """The columns in which a retraction must equal the row it takes away; all if empty. Times of arrival are left out:
    a retraction comes later than its row."""
    version: str = ""
    """UPSERT: of the records of a primary key that of the greatest ``version`` counts, of equal ones the last. A delete
    has no version: what came before it counts no more, whatever its version."""
    first_stays: bool = False
    """Of records of one version the first counts."""
    tie_break_by_arrival: bool = False
    """The operator orders equal rows by arrival."""
    everywhere: bool = False
    """All rows come to each bucket: the edge is broadcast."""
    max_rows_per_key: int | None = None
    """A record that would be one row more of its key is refused (``joins.inputs.row_budget``); None: none is."""

    @property
    def ordered(self) -> bool:
        """Whether rows must carry ``arrival``. The changes of an operator have none: they are numbered as they come."""
        by_arrival = self.tie_break_by_arrival and self.ingest is not Ingest.CHANGES
        return by_arrival or self.ingest.compared or self.max_rows_per_key is not None

    @property
    def identity_columns(self) -> tuple[str, ...]:
        """The columns in which a retraction must equal the row it takes away."""
        return self.identity or tuple(self.schema.names)
