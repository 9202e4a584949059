"""Lookup joins: each left row is answered once, with the rows that stand under its key at that moment.

    scan ──▶ transforms ──▶ LookupStage ──▶ LookupStage ──▶ ... ──▶ sink

A right change alone emits nothing and touches no earlier output. Everything here pickles, and nothing here knows where
the looked-up rows live: a host hands over one ``Lookup`` (``changelog/lookup.py``) for each ``Access``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from dovetail.joins.dataflow.graph import Sink, TopicScan
from dovetail.joins.dataflow.ports import EXISTENCE_JOINS, Ingest, JoinKind, Predicate, Transform, refuse_other_kinds


class LookupTarget(StrEnum):
    """What is looked up."""

    DICTIONARY = "dictionary"
    EXTERNAL = "external"
    """A table of another database, asked every time."""
    STREAM = "stream"
    """The current rows of a keyed stream, TABLE or materialized view."""


@dataclass(frozen=True)
class Access:
    """A way to look rows up: ``table`` by equality of the columns ``by``.

    columns  of a looked-up row, in order; ``types`` are theirs
    index    what serves the lookup: 'primary key', 'primary key prefix', or the name of an index
    """

    target: LookupTarget
    table: str
    by: tuple[str, ...]
    columns: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    index: str = "primary key"


@dataclass(frozen=True)
class LookupJoinSpec:
    """The join of rows with what is looked up by ``keys`` (columns of the left rows, in the order of ``access.by``).

    kind       INNER or LEFT: a row without a match is lost, or padded with ``padding``; SEMI, ANTI or MARK: no column
               of what is looked up leaves, and ``mark`` is the one that MARK adds
    columns    (internal name, column of the access) of each column that the join adds, in order
    schema     of these columns
    condition  the residual condition, over the left columns and the added ones
    """

    kind: JoinKind
    access: Access
    keys: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    schema: pa.Schema
    padding: tuple[Any, ...]
    condition: Predicate | None = None
    mark: str = ""

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, (JoinKind.INNER, JoinKind.LEFT, *EXISTENCE_JOINS))


@dataclass(frozen=True)
class LookupStage:
    """A join, and what happens to its rows before the next one."""

    join: LookupJoinSpec
    transforms: tuple[Transform, ...] = ()


@dataclass(frozen=True)
class LookupFlow:
    """A whole lookup query.

    scan      the left input; its transforms run before the first stage
    ingest    APPEND: answers are final, no state. Otherwise what was answered is kept in a memo, by ``identity``
    identity  columns of the scan's transformed rows: the primary key of UPSERT and CHANGELOG_KV; of CHANGES and
              CHANGELOG all columns in which a retraction equals its row
    """

    scan: TopicScan
    stages: tuple[LookupStage, ...]
    sink: Sink
    ingest: Ingest
    identity: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(dict.fromkeys(stage.join.access for stage in self.stages))
