"""A case of tests/cases: tables, input in steps, a query, and what must come out (tests/cases/README.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dovetail.sql.query_settings import Value

Row = Mapping[str, object]


class CaseFault(Exception):
    """A case or file that is not in the format of tests/cases/README.md."""


class Mode(StrEnum):
    CHANGELOG = "changelog"
    TABLE = "table"
    ROWS = "rows"
    ERROR = "error"


class Wait(StrEnum):
    WATERMARK = "watermark"
    TTL = "ttl"
    EMIT = "emit"
    SETTLE = "settle"


@dataclass(frozen=True)
class Insert:
    table: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Delete:
    table: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Update:
    """``rows`` are pairs of the full old row and the full new one."""

    table: str
    rows: tuple[tuple[Row, Row], ...]


@dataclass(frozen=True)
class Source:
    """Rows upserted into, or deleted by key from, a table of an external database."""

    table: str
    rows: tuple[Row, ...] = ()
    deleted: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Run:
    sql: str


@dataclass(frozen=True)
class Start:
    """All steps before it are history."""


@dataclass(frozen=True)
class Restart:
    """The query stops and resumes from its checkpoint."""


@dataclass(frozen=True)
class Pause:
    """``wait: <kind>``."""

    kind: Wait


Step = Insert | Delete | Update | Source | Run | Start | Restart | Pause


@dataclass(frozen=True)
class Expectation:
    """Rows of mode ``changelog`` hold ``_step`` and ``_tp_delta`` beside the columns; ``key`` None: not checked."""

    mode: Mode
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    key: tuple[str, ...] | None = None
    about: str = ""


@dataclass(frozen=True)
class Check:
    """What must have come out when step ``after_step``, counted from 1, is drained."""

    after_step: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Then:
    """A bounded query run after the last step."""

    query: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Case:
    id: str
    feature: str
    tier: int
    ddl: tuple[str, ...]
    settings: Mapping[str, Value]
    steps: tuple[Step, ...]
    query: str
    expect: Expectation
    origin: str = ""
    tags: tuple[str, ...] = ()
    may_refuse: bool = False
    lookup_tables: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    then: tuple[Then, ...] = ()
    note: str = ""

    @property
    def starts_by_step(self) -> bool:
        return any(isinstance(step, Start) for step in self.steps)


@dataclass(frozen=True)
class Misfit:
    """An entry that is no case; it counts as failed."""

    id: str
    fault: str
    feature: str = "(not a case)"


@dataclass
class Suite:
    """The cases of some folders, in the order of their files."""

    cases: list[Case] = field(default_factory=list)
    misfits: list[Misfit] = field(default_factory=list)
