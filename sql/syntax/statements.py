"""The statements of the language, one frozen dataclass each.

Every statement keeps the user's own ``text``. Expressions inside a statement are sqlglot trees; names are as written.
Nothing here has been looked up: whether a stream or a column exists is the binder's question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.encodings.schema_id_framing.subjects import of_topic
from dovetail.changelog.encodings.settings import key_format, value_format
from dovetail.changelog.errors import SqlError, TextPlace
from dovetail.changelog.schema import Column, Included, Kind, StreamSchema
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.syntax.rules import Rules

Setting = str | int | float | bool
Settings = Mapping[str, Setting]
KAFKA, DATAGEN = "kafka", "datagen"
"""Connectors: of records in a topic, and of rows that are generated."""
FIELDS = "fields."
"""How settings begin that say of which values a generated column is: ``fields.<column>.<option>``."""
Literal = Any
"""A Python value written as a literal: None, bool, int, float, Decimal, str, list or dict."""


@dataclass(frozen=True)
class Computed:
    """A value that is written as an expression, without columns: ``now64(3)``."""

    text: str


@dataclass(frozen=True)
class DefaultValue:
    """DEFAULT in VALUES: what the column has where nothing is given."""


@dataclass(frozen=True)
class StatementParameter:
    """``?``, or ``:name``, at a place of the script: its value is given beside the text."""

    at: int
    name: str = ""


@dataclass(frozen=True)
class Emit:
    """The EMIT clause.

    form     'changelog', 'stream', or '' where only a policy is given
    policy   'periodic', 'on update', 'after window close' (EMIT ON WINDOW CLOSE is the same), 'after key expire',
             'per event', or '' for the default of the query
    """

    form: str = ""
    policy: str = ""
    every_ms: int | None = None
    delay_ms: int | None = None
    timeout_ms: int | None = None
    max_span_ms: int | None = None
    repeat: bool = False

    @property
    def changelog(self) -> bool:
        return self.form == "changelog"


@dataclass(frozen=True)
class Index:
    """A secondary index: rows are looked up by a prefix of ``columns``; ``storing`` ones need no second read."""

    name: str
    columns: tuple[str, ...]
    storing: tuple[str, ...] = ()
    unique: bool = False


class Span(NamedTuple):
    """Where something with a name stands in a text, from ``start`` to before ``end``."""

    name: str
    start: int
    end: int

    def moved(self, by: int) -> Span:
        return Span(self.name, self.start + by, self.end + by)


@dataclass(frozen=True)
class CreateStream:
    """CREATE [MUTABLE | EXTERNAL | RANDOM] STREAM (Timeplus rules), CREATE TABLE and CREATE SOURCE (RisingWave rules).

    columns      as declared, without the reserved ``_tp_time``, ``_tp_delta`` and ``_tp_sn``
    mutable      whether rows can be updated and deleted: MUTABLE STREAM, and TABLE unless APPEND ONLY
    external     the topic is not Dovetail's own: EXTERNAL STREAM, and SOURCE or TABLE WITH (connector ..)
    source       CREATE SOURCE: it takes no INSERT
    included     columns that are parts of the record
    topic        the topic to read, if the statement names one; else it is named after the stream
    brokers      the brokers of that topic, if the statement names them
    event_time   the column that gives ``_tp_time``: the setting ``event_time_column``, or the WATERMARK column
    settings     SETTINGS and WITH (..) together, by name in lower case
    with_data    WITH DATA: its topic is emptied, if Dovetail has made it
    expressions  of a RANDOM STREAM: what the values of columns are made by, by column
    of_schema    there are more columns, those of the newest schema of the topic's values; none of the catalog is so
    sort_key     the PRIMARY KEY of an append stream, which is the order of Timeplus' store and says nothing of its rows
    spans        what stands in the brackets behind the name; what is no column has no name
    """

    name: str
    columns: tuple[Column, ...]
    kind: Kind
    rules: Rules
    primary_key: tuple[str, ...] = ()
    mutable: bool = False
    external: bool = False
    source: bool = False
    append_only: bool = False
    topic: str | None = None
    brokers: str | None = None
    event_time: str | None = None
    watermark: Watermark | None = None
    indexes: tuple[Index, ...] = ()
    settings: Settings = field(default_factory=dict)
    if_not_exists: bool = False
    or_replace: bool = False
    with_data: bool = False
    text: str = ""
    included: tuple[Included, ...] = ()
    expressions: Mapping[str, exp.Expr] = field(default_factory=dict)
    of_schema: bool = False
    sort_key: tuple[str, ...] = ()
    spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)

    @property
    def noun(self) -> str:
        """What it is called: ``table``, ``source``, ``external stream``, ``stream``."""
        if self.rules is Rules.RISINGWAVE:
            return "source" if self.source else "table"
        return "external stream" if self.external else "stream"

    @property
    def generated(self) -> bool:
        """Whether its rows are made here, and written by nobody else."""
        return self.settings.get("connector") == DATAGEN

    @property
    def version(self) -> str:
        """The column of the setting ``version_column``; '': the last record of a primary key counts."""
        return str(self.settings.get("version_column", ""))

    @property
    def schema(self) -> StreamSchema:
        first_stays = str(self.settings.get("late_insert_overrides", True)).lower() in ("false", "0")
        return StreamSchema(
            self.name,
            self.columns,
            self.kind,
            self.primary_key,
            self.event_time,
            self.version,
            bool(self.version) and first_stays,
            value=of_topic(value_format(self.settings), self.topic or self.name),
            key=of_topic(key_format(self.settings), self.topic or self.name, of_keys=True),
            included=self.included,
        )


@dataclass(frozen=True)
class AddColumn:
    """ADD COLUMN; ``declaration`` is its text with the name, read by the rules of the stream, and where it stands."""

    name: str
    declaration: TextPlace
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropColumn:
    """DROP COLUMN: the members of the records stay, and nobody reads them."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class RenameColumn:
    """RENAME COLUMN: records of before are read under the former name, those to come have the new one."""

    name: str
    new: str
    if_exists: bool = False


Alteration = AddColumn | DropColumn | RenameColumn


@dataclass(frozen=True)
class AlterStream:
    """ALTER STREAM | TABLE name action, ..: another definition of the same records."""

    name: str
    actions: tuple[Alteration, ...]
    if_exists: bool = False
    text: str = ""


@dataclass(frozen=True)
class AlterView:
    """ALTER VIEW name SET (setting = value, ..): another setting of a query that goes on."""

    name: str
    settings: Settings
    if_exists: bool = False
    text: str = ""


@dataclass(frozen=True)
class AlterQuery:
    """ALTER MATERIALIZED VIEW name AS query: the view goes on in its topic with it. ``view`` as in a DryRun."""

    view: CreateView
    text: str = ""


@dataclass(frozen=True)
class Rollback:
    """ALTER VIEW name ROLLBACK: the view gets the query again that it had before the last ALTER VIEW name AS."""

    name: str
    text: str = ""


@dataclass(frozen=True)
class DryRun:
    """ALTER MATERIALIZED VIEW name AS query DRY RUN: which rows another query would give the view, and take from it.

    ``view`` is the view as it would be: the settings that the statement names, and the query.
    """

    view: CreateView
    text: str = ""


@dataclass(frozen=True)
class CreateIndex:
    """CREATE INDEX name ON stream (columns) [INCLUDE (columns)]."""

    index: Index
    stream: str
    if_not_exists: bool = False
    text: str = ""

    @property
    def name(self) -> str:
        return self.index.name


class OnDemand(Mapping[Rules, exp.Query | SqlError]):
    """Each reading of a query, made when it is first asked for."""

    def __init__(self, read: Callable[[Rules], exp.Query | SqlError]) -> None:
        self._read = read
        self.made: dict[Rules, exp.Query | SqlError] = {}

    def __getitem__(self, rules: Rules) -> exp.Query | SqlError:
        if rules not in self.made:
            self.made[rules] = self._read(rules)
        return self.made[rules]

    def __iter__(self) -> Iterator[Rules]:
        return iter(Rules)

    def __len__(self) -> int:
        return len(Rules)


@dataclass(frozen=True)
class Readings:
    """A query as each dialect reads it, or why it cannot: which of them counts is known by the relations of FROM."""

    by_rules: Mapping[Rules, exp.Query | SqlError]

    def of(self, rules: Rules) -> exp.Query:
        """Raises SqlError where the dialect cannot read it."""
        found = self.by_rules[rules]
        if isinstance(found, SqlError):
            raise found
        return found


@dataclass(frozen=True)
class CreateView:
    """CREATE MATERIALIZED VIEW: a query that runs until it is dropped. ``into`` names the stream that its rows go to.

    Without MATERIALIZED (``materialized`` false) it is a name for a query, and runs only as part of others. ``query``
    and ``readings`` are those of a Select, ``spans`` the values of its settings.
    """

    name: str
    query: exp.Query
    emit: Emit | None = None
    settings: Settings = field(default_factory=dict)
    into: str | None = None
    materialized: bool = True
    if_not_exists: bool = False
    or_replace: bool = False
    with_data: bool = False
    text: str = ""
    readings: Readings | None = None
    columns: tuple[str, ...] = ()
    """Names for the columns of the query, the first so many of them."""
    spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Clause:
    """A named clause with parameters, as SOURCE(MYSQL(HOST 'db' PORT 3306)): names in lower case."""

    name: str
    parameters: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True)
class CreateDictionary:
    """CREATE DICTIONARY: a table elsewhere, looked up by key. ``lifetime_s``: (least, greatest); (0, 0) = never.

    ``external``: CREATE EXTERNAL TABLE, which is asked directly, by any columns. It may name no columns, or no primary
    key: then those of the table itself count.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    source: Clause
    layout: Clause
    lifetime_s: tuple[int, int] | None = None
    range_columns: tuple[str, str] | None = None
    settings: Settings = field(default_factory=dict)
    comment: str = ""
    external: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    text: str = ""


@dataclass(frozen=True)
class CreateFunction:
    """CREATE FUNCTION name(arguments) RETURNS type LANGUAGE python AS $$ body $$.

    name       in lower case: a call finds it however it is written
    arguments  each with its name, '' for none, and its type
    body       Python, which defines a function of that name
    volatile   for equal arguments it may give another value each time
    """

    name: str
    arguments: tuple[tuple[str, pa.DataType], ...]
    returns: pa.DataType
    body: str
    volatile: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    text: str = ""


@dataclass(frozen=True)
class CreateTableAs:
    """CREATE TABLE name [(columns)] AS query: a table with the rows that the query gives now. ``columns`` are names."""

    name: str
    query: Select
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    text: str = ""


@dataclass(frozen=True)
class Insert:
    """INSERT INTO stream [(columns)] VALUES .. | SELECT ..; empty ``columns`` = the declared ones, in order.

    left_out   the columns of ``* EXCEPT``: all others are meant
    bound      parameters of its text have got their values
    returning  the select list of RETURNING, over the rows that are written; '': nothing is asked
    """

    stream: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Literal | Computed | DefaultValue | StatementParameter, ...], ...] = ()
    query: Select | None = None
    bound: bool = False
    text: str = ""
    returning: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Update:
    """UPDATE stream SET column = expression, .. [WHERE condition] [RETURNING ..]: the rows as they become."""

    stream: str
    assignments: tuple[tuple[str, exp.Expr], ...]
    where: exp.Expr | None = None
    text: str = ""
    returning: str = ""


@dataclass(frozen=True)
class Delete:
    """DELETE FROM stream [WHERE condition] [RETURNING ..]: the rows that went."""

    stream: str
    where: exp.Expr | None = None
    text: str = ""
    returning: str = ""


@dataclass(frozen=True)
class Select:
    """A query that is run at once: SELECT or WITH .. SELECT, [EMIT ..] [SETTINGS ..].

    ``query`` is as Timeplus reads it, or RisingWave where Timeplus cannot; ``readings`` tell both. ``bound``: values
    are in its trees that its text does not have.
    """

    query: exp.Query
    emit: Emit | None = None
    settings: Settings = field(default_factory=dict)
    text: str = ""
    readings: Readings | None = None
    bound: bool = False


@dataclass(frozen=True)
class Show:
    """SHOW streams | views | dictionaries | indexes | functions | queries | schemas | settings | dead letters [FROM f],
    SHOW STATE OF v. ``of`` is what follows FROM, or OF.
    """

    what: str
    like: str | None = None
    of: str = ""
    text: str = ""


@dataclass(frozen=True)
class Describe:
    name: str
    text: str = ""


@dataclass(frozen=True)
class ShowCreate:
    name: str
    text: str = ""


@dataclass(frozen=True)
class CreateSchema:
    name: str
    if_not_exists: bool = False
    text: str = ""


@dataclass(frozen=True)
class Drop:
    """DROP stream | view | dictionary | index | function | topic | schema name. TABLE and SOURCE are streams.

    with_data  the records go too, which stay in their topic otherwise
    noun       the words behind DROP where they ask for some of ``what`` only, in small letters: ``source``
    """

    what: str
    name: str
    if_exists: bool = False
    cascade: bool = False
    with_data: bool = False
    text: str = ""
    noun: str = ""


@dataclass(frozen=True)
class Explain:
    """EXPLAIN of a SELECT or a CREATE MATERIALIZED VIEW: the plan is shown, nothing is run."""

    statement: Select | CreateView
    text: str = ""


@dataclass(frozen=True)
class ExplainAlter:
    """EXPLAIN ALTER MATERIALIZED VIEW name AS query: what another query of the view would cost, and who would see it.

    ``view`` as in a DryRun.
    """

    view: CreateView
    text: str = ""


@dataclass(frozen=True)
class ExplainView:
    """EXPLAIN of a view that is there, or of a query that is named."""

    name: str
    text: str = ""


@dataclass(frozen=True)
class Print:
    """PRINT topic [FROM BEGINNING] [LIMIT n]: the records of a topic; of a stream or a view, of its topic."""

    name: str
    from_beginning: bool = False
    limit: int | None = None
    text: str = ""


@dataclass(frozen=True)
class ExplainAnalyze:
    """EXPLAIN ANALYZE view [FORMAT form]: the plan of a running query, and what each node has done.

    form   'text', 'json' or 'mermaid'
    """

    name: str
    form: str = "text"
    text: str = ""


@dataclass(frozen=True)
class Pause:
    """PAUSE name: the query stops, its checkpoint stays."""

    name: str
    text: str = ""


@dataclass(frozen=True)
class Resume:
    """RESUME name: a paused query goes on from its checkpoint."""

    name: str
    text: str = ""


@dataclass(frozen=True)
class Terminate:
    """TERMINATE name: the query stops for good, its checkpoint is removed."""

    name: str
    text: str = ""


@dataclass(frozen=True)
class Replay:
    """REPLAY v.dead_letter [LIKE pattern, ..] [DRY RUN]: dead letters go back to where they came from.

    reasons   patterns, of which the reason of a letter is to match one; none: any reason
    dry_run   only what would be done is told
    """

    topic: str
    reasons: tuple[str, ...] = ()
    dry_run: bool = False
    text: str = ""


@dataclass(frozen=True)
class BackupView:
    """BACKUP VIEW name TO 'path': what the view resumes from is copied to a folder."""

    name: str
    path: str
    text: str = ""


@dataclass(frozen=True)
class RestoreView:
    """RESTORE VIEW name FROM 'path': the view goes on from a backup."""

    name: str
    path: str
    text: str = ""


@dataclass(frozen=True)
class System:
    """SYSTEM commands of the cluster: ``action`` 'reload dictionary' (``name``), or 'reload dictionaries'."""

    action: str
    name: str | None = None
    text: str = ""


@dataclass(frozen=True)
class Why:
    """WHY [NOT] view [SINCE moment] WHERE condition: the records behind some rows of a view, or why there are none.

    since      a moment as ``seek_to`` has it: of append streams no record is looked at that was written before; '': all
    arguments  the values of the parameters in the text, in order or by name
    """

    view: str
    where: exp.Expr
    absent: bool = False
    text: str = ""
    since: str = ""
    arguments: Sequence[object] | Mapping[str, object] = ()


@dataclass(frozen=True)
class InputOffset:
    """A record of an input, by its place: ``name[partition]@offset``."""

    name: str
    partition: int
    offset: int

    @property
    def readable(self) -> str:
        return f"{self.name}[{self.partition}]@{self.offset}"


@dataclass(frozen=True)
class WaitFor:
    """WAIT FOR view [TO INCLUDE input[partition]@offset, ..] [TIMEOUT seconds]: until the view has answered records.

    offsets    those records; none: all that its inputs hold now
    timeout_s  None: what is usual
    """

    view: str
    offsets: tuple[InputOffset, ...] = ()
    timeout_s: float | None = None
    text: str = ""


Statement = (
    CreateStream
    | CreateTableAs
    | AlterStream
    | AlterQuery
    | AlterView
    | Rollback
    | DryRun
    | CreateIndex
    | CreateView
    | CreateDictionary
    | CreateFunction
    | CreateSchema
    | Insert
    | Update
    | Delete
    | Select
    | Show
    | Describe
    | ShowCreate
    | Drop
    | Explain
    | ExplainAlter
    | ExplainAnalyze
    | ExplainView
    | Print
    | Pause
    | Resume
    | Terminate
    | Replay
    | BackupView
    | RestoreView
    | System
    | Why
    | WaitFor
)

_KIND_WORDS = (
    *("OR", "REPLACE", "UNIQUE", "MUTABLE", "EXTERNAL", "RANDOM", "MATERIALIZED", "VIEW", "STREAM", "TABLE", "SOURCE"),
    *("DICTIONARY", "FUNCTION", "INDEX", "SCHEMA", "TOPIC", "INTO", "FROM"),
)


def opening_words(statement: Statement) -> str:
    """What its text begins with, up to the first name: ``CREATE MATERIALIZED VIEW``."""
    first, *others = statement.text.upper().split()
    return " ".join([first, *takewhile(_KIND_WORDS.__contains__, others)])
