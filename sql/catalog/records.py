"""The records of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from dovetail.changelog.errors import InternalError
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import (
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateStream,
    CreateView,
    Statement,
)

if TYPE_CHECKING:
    from dovetail.sql.relations import Stream

RelationDefinition = CreateStream | CreateView | CreateDictionary | CreateIndex | CreateFunction


class What(StrEnum):
    """The kinds of relations; a name belongs to one relation, whatever its kind."""

    STREAM = "stream"
    VIEW = "view"
    DICTIONARY = "dictionary"
    INDEX = "index"
    FUNCTION = "function"

    @staticmethod
    def of(definition: RelationDefinition) -> What:
        match definition:
            case CreateStream():
                return What.STREAM
            case CreateView():
                return What.VIEW
            case CreateDictionary():
                return What.DICTIONARY
            case CreateIndex():
                return What.INDEX
            case CreateFunction():
                return What.FUNCTION


@dataclass(frozen=True)
class FormerDefinition:
    """What a view was until ``ALTER VIEW v AS`` gave it another query, at ``altered_ms``."""

    ddl: str
    altered_ms: int


@dataclass(frozen=True)
class Relation:
    """A named thing and the statement that made it; ``ddl`` is the user's own text, passwords included.

    ``written_text``: ``written``, as ``sql.catalog.written_streams`` puts it down; '' where there is none.
    ``former``: None of what has never got another query.
    """

    name: str
    what: What
    ddl: str
    created_ms: int
    written_text: str = ""
    former: FormerDefinition | None = None

    @cached_property
    def written(self) -> Stream | None:
        """The stream that a materialized view writes, as it was planned; None where that is not known."""
        from dovetail.sql.catalog.written_streams import of_text  # noqa: PLC0415 - for who plans what reads the view

        return of_text(self.name, self.written_text) if self.written_text else None

    @cached_property
    def definition(self) -> RelationDefinition:
        """The statement itself, read from ``ddl``."""
        statement = _read(self.ddl)
        if not isinstance(statement, RelationDefinition):
            raise InternalError(f'the catalog holds no definition of "{self.name}"', where=self.shown)
        return statement

    @property
    def noun(self) -> str:
        """What messages and DROP call it: of a stream and of a dictionary the words that it was created by."""
        match self.definition:
            case CreateStream() as stream:
                return stream.noun
            case CreateDictionary(external=True):
                return "external table"
        return self.what.value

    def is_called(self, noun: str) -> bool:
        """Whether ``noun`` is a word for it, of the particular ones that DROP has."""
        match self.definition:
            case CreateStream(mutable=True, rules=Rules.TIMEPLUS) if noun == "mutable stream":
                return True
            case CreateView(materialized=True) if noun == "materialized view":
                return True
        return noun == self.noun

    @property
    def materialized_view(self) -> CreateView | None:
        """Its definition, if it is one that a query keeps."""
        definition = self.definition
        return definition if isinstance(definition, CreateView) and definition.materialized else None

    @cached_property
    def shown(self) -> str:
        """``ddl`` as SHOW CREATE shows it: without passwords."""
        from dovetail.sql.syntax.parse import as_shown  # noqa: PLC0415 - as above

        return as_shown(self.ddl)


@lru_cache(maxsize=1_000)
def _read(ddl: str) -> Statement:
    """Once for each version of a definition: whoever binds its tree copies it first."""
    from dovetail.sql.syntax.parse import parse_one  # noqa: PLC0415 - the grammar is for who asks what a relation is

    return parse_one(ddl)


class Desired(StrEnum):
    """What the user wants of a query."""

    RUNNING = "running"
    PAUSED = "paused"
    DROPPED = "dropped"


class Actual(StrEnum):
    """What the runner last said of a query.

    RECOVERING  ended by its environment, and started again until that is well; ``Query.error`` has the reason
    RESCALING   its state is cut into another number of buckets; ``Query.error`` has how far that is
    PACKING     it joins a pack of views, or leaves one; ``Query.error`` has which
    FAILED      ended by its data, its plan or a defect: it waits for a RESUME
    """

    PENDING = "pending"
    RUNNING = "running"
    RECOVERING = "recovering"
    RESCALING = "rescaling"
    PACKING = "packing"
    PAUSED = "paused"
    FAILED = "failed"
    STOPPED = "stopped"


WORKED_MS, WORKED_ROWS = "worked_ms", "worked_rows"
"""Of the counts of a query: for how long it has worked on batches that had records."""
RUNNER_GONE = "what ran it has gone"
"""Why a query is RECOVERING of which nobody has said anything since."""


@dataclass(frozen=True)
class Query:
    """A query that runs until it is dropped: the only fragment of a view or SELECT, or one of several.

    id           0 until the catalog gives one; names its checkpoint, and is never used again
    plan         the text of EXPLAIN
    fingerprint  of the plan: a checkpoint of another one is refused
    progress     what the runner reports, as JSON: rows in and out, offsets, rates
    restarts     how often its environment has ended it, and it was started again
    next_try_ms  when it is started again, while it is recovering; 0 while that goes on
    engine       who runs it: 'spark', 'faust' (the lookup workers), or 'datagen' (of a stream whose rows are generated)
    view         what it is a fragment of: ``sql`` planned under this name has a fragment called ``name``
    lease_ms     until when somebody answers for it, who says so again and again; 0: it lives until it is dropped
    """

    name: str
    sql: str
    plan: str
    fingerprint: str
    topic: str
    checkpoint: str = ""
    engine: str = "spark"
    view: str = ""
    id: int = 0
    desired: Desired = Desired.RUNNING
    actual: Actual = Actual.PENDING
    error: str = ""
    progress: Mapping[str, Any] = field(default_factory=dict)
    restarts: int = 0
    next_try_ms: int = 0
    created_ms: int = 0
    updated_ms: int = 0
    lease_ms: int = 0

    @property
    def generates(self) -> bool:
        """Whether it writes the rows of a stream, and is no view's or SELECT's."""
        return self.engine == Engine.DATAGEN

    @property
    def worked_s(self) -> float:
        """The time that its records have taken, without that in which there were none; by the rate of those whose time
        was taken, where a former release counted the others.
        """
        counts = self.progress.get("counts", {})
        timed = counts.get(WORKED_ROWS, 0)
        return float(counts.get(WORKED_MS, 0)) / 1000 * counts.get("rows_in", timed) / timed if timed else 0.0

    @property
    def unmade(self) -> bool:
        """Whether it was never wanted to run yet: its statement is still under way, or was killed."""
        return self.desired is Desired.PAUSED and not self.checkpoint


@dataclass(frozen=True)
class Worker:
    """A process that runs lookup queries; ``address`` answers its health and metrics, ``queries`` names what it runs.
    ``secrets`` are the names, without the values, of its variables that hold passwords of statements; None: of a former
    release, which did not say.

    Times are as told by the worker: ``seen_ms`` is its last sign of life.
    """

    id: str
    host: str
    pid: int
    address: str = ""
    queries: tuple[str, ...] = ()
    started_ms: int = 0
    seen_ms: int = 0
    secrets: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class Leadership:
    """Who does a work that only one process may do. ``holder`` is ``host:pid``; it has it until ``until_ms``."""

    name: str
    holder: str
    until_ms: int
    epoch: int = 0
