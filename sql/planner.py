"""From a statement to its plan: bind, rewrite, find the key, prune, compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from changelog.errors import InternalError, SqlError, UnknownName, Unsupported
from changelog.schema import TIME, Column, Kind, StreamSchema
from joins.dataflow.graph import Dataflow
from sql.bind.aggregates import is_grouped
from sql.bind.binder import Binder
from sql.bind.output import output, together
from sql.bind.snapshot import Snapshot, snapshot_of
from sql.bind.static import is_static
from sql.expressions.evaluate import family
from sql.fragments import Fragment, cut
from sql.plan import nodes as logical
from sql.plan.explain import explain
from sql.plan.nodes import Output
from sql.plan.properties import Engine, rules_of, runs_on, walk
from sql.query_settings import QuerySettings, Value, checked
from sql.relations import Relations, Stream
from sql.rules import rewritten
from sql.rules.window_close import closed, opened
from sql.syntax.dialect import Dovetail
from sql.syntax.faults import too_deep
from sql.syntax.statements import CreateIndex, CreateStream, CreateView, Emit, Select
from sql.system_tables import SYSTEM_TABLES
from sql.watermarks import check_late_topic

_EVERY_CHANGE = ("periodic", "on update")
"""Policies of EMIT under which the output is the changes of groups, batch by batch."""


@dataclass(frozen=True)
class Plan:
    """A planned query: streaming (``output``, ``dataflow``) or bounded (``snapshot``)."""

    name: str
    settings: QuerySettings
    output: Output | None = None
    snapshot: Snapshot | None = None
    reads: tuple[str, ...] = field(default=())
    """The relations that it reads."""
    fragments: tuple[Fragment, ...] = ()
    """The parts that engines run, upstream first; none of a bounded query."""

    @property
    def bounded(self) -> bool:
        return self.snapshot is not None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @property
    def schema(self) -> pa.Schema:
        """The output columns and their types."""
        if self.output is not None:
            return self.output.schema
        return pa.schema(list(self.snapshot.columns.items()) if self.snapshot is not None else [])

    @property
    def updating(self) -> bool:
        """Whether its rows can be taken back."""
        return self.output is not None and self.output.updating

    @cached_property
    def dataflow(self) -> Dataflow:
        """The physical plan of a streaming query that Spark runs alone."""
        if self.output is None:
            raise SqlError(f'"{self.name}" reads table(x) only, so there is nothing to run', fix="ask it as a SELECT")
        return self.fragment(self.name).dataflow

    def fragment(self, name: str) -> Fragment:
        for fragment in self.fragments:
            if fragment.name == name:
                return fragment
        raise InternalError(f'the plan of "{self.name}" has no fragment "{name}"')

    @property
    def fingerprint(self) -> str:
        """Equal for plans whose checkpoints fit each other; '' for a bounded query."""
        return "-".join(fragment.fingerprint for fragment in self.fragments)

    def explain(self) -> str:
        if len(self.fragments) > 1:
            return "\n\n".join(f"Fragment {one.name}  engine={one.engine}\n{one.explain()}" for one in self.fragments)
        if self.output is not None:
            return explain(self.output)
        relations = self.snapshot.relations if self.snapshot is not None else ()
        reads = ", ".join(f"table({name})" for name in relations)
        return f"Snapshot {self.name}  engine=duckdb  columns={','.join(self.columns)}\n└─ {reads}  read once"

    def stream(self) -> Stream:
        """The output topic as an input of other queries."""
        if self.output is None:
            raise Unsupported(f'"{self.name}" is bounded: it has no topic', fix="read a stream in its query")
        made = self.output
        kind = Kind.APPEND
        if made.updating or made.marked:
            kind = Kind.UPSERT if made.format == "upsert" else Kind.CHANGELOG
        names = {name for name, _ in made.columns}
        schema = StreamSchema(
            name=self.name,
            columns=tuple(Column(name, expr.type) for name, expr in made.columns),
            kind=kind,
            primary_key=made.key if made.unique and set(made.key) <= names else (),
            event_time=TIME if TIME in names else None,
        )
        return Stream(schema, made.topic, rules_of(made.input), trusted=True)


def plan_query(
    name: str, statement: Select | CreateView, catalog: Relations, settings: Mapping[str, Value] | None = None
) -> Plan:
    """The plan of a SELECT, or of the query of a materialized view; settings of the statement go before ``settings``.

    Raises a SqlError that names the clause and the nearest thing that works.
    """
    merged = checked({**(settings or {}), **statement.settings})
    texts = select_list(statement.text)
    if is_static(statement.query, {}, catalog):
        snapshot = snapshot_of(statement.query, catalog, _stream_of(catalog), texts)
        reads = tuple(relation for relation in snapshot.relations if relation not in SYSTEM_TABLES)
        return Plan(name, merged, snapshot=snapshot, reads=reads)
    closes = _closes(statement.emit)
    query, of_view = _read(statement, catalog, merged)
    merged = checked({**of_view, **merged.values})
    try:
        bound = Binder(catalog, merged, _stream_of(catalog)).bind(query, texts)
        node = rewritten(bound.node, merged, closes)
    except RecursionError:
        raise too_deep() from None
    _refuse_idle_policy(statement.emit, node)
    marked = bound.marked or (statement.emit is not None and statement.emit.changelog)
    if closes:
        node = closed(node)
    into = statement.into if isinstance(statement, CreateView) else None
    target = _target(into, catalog) if into is not None else None
    parts = cut(name, node)
    made = output(name, target.topic if target else name, parts.top, bound.columns, marked, merged)
    if target is not None:
        made = _into(made, target)
    fragments = parts.under(made)
    check_late_topic(merged, _topics(fragments))
    reads = _reads(fragments, catalog)
    if target is not None and target.schema.name in reads:
        raise _endless(target.schema.name)
    return Plan(name, merged, fragments[-1].output, reads=reads, fragments=fragments)


def _read(
    statement: Select | CreateView, catalog: Relations, settings: QuerySettings
) -> tuple[exp.Query, Mapping[str, Value]]:
    """The query, and the settings that come with it: final rows are not told by the topic of a view."""
    final = _closes(statement.emit) or (settings["output"] == "append" and is_grouped(statement.query))
    return opened(statement.query, catalog) if final else (statement.query, {})


def _closes(emit: Emit | None) -> bool:
    """Whether EMIT asks for final rows only. Raises Unsupported for what it cannot ask for."""
    if emit is None or not emit.policy:
        return False
    if emit.policy in _EVERY_CHANGE:
        return False
    if emit.policy != "after window close":
        raise Unsupported(
            f"EMIT {emit.policy.upper()} is not supported in this release",
            where="EMIT",
            fix="leave it out: every change is emitted when it comes",
        )
    if emit.delay_ms is not None:
        raise Unsupported(
            "EMIT AFTER WINDOW CLOSE WITH DELAY is not supported: the delay is that of the watermark",
            where="EMIT",
            fix=f"SETTINGS watermark_delay = '{emit.delay_ms}ms'",
        )
    return True


def _refuse_idle_policy(emit: Emit | None, node: logical.Node) -> None:
    """EMIT PERIODIC and ON UPDATE: the changes of the groups leave with every batch, which is as often or more so."""
    if emit is None or emit.policy not in _EVERY_CHANGE:
        return
    if not any(isinstance(below, logical.Aggregate) for below in walk(node)):
        raise Unsupported(
            f"EMIT {emit.policy.upper()} is for aggregates, and this query has none",
            where="EMIT",
            fix="leave it out: every change is emitted when it comes",
        )


def recompute(name: str, statement: Select | CreateView, catalog: Relations) -> Snapshot:
    """The batch query that says what the rows of ``statement`` should be now."""
    query, _ = _read(statement, catalog, checked(statement.settings))
    return snapshot_of(query, catalog, _stream_of(catalog), select_list(statement.text))


def stream_of(catalog: Relations, name: str) -> Stream:
    """The topic behind a stream or a materialized view, and its schema. Raises UnknownName, Unsupported."""
    definition = catalog.get(name).definition
    match definition:
        case CreateStream():
            return Stream.declared(definition)
        case CreateView() if definition.materialized:
            return plan_query(name, definition, catalog).stream()
    raise Unsupported(
        f'"{name}" is no stream: it has no topic', fix="SHOW STREAMS and SHOW VIEWS list those that have one"
    )


def _stream_of(catalog: Relations) -> Callable[[CreateView], Stream]:
    """How the output of a materialized view is read by others."""

    def stream(view: CreateView) -> Stream:
        return plan_query(view.name, view, catalog).stream()

    return stream


def _topics(fragments: Sequence[Fragment]) -> Iterator[str]:
    """What the query reads and writes."""
    for fragment in fragments:
        yield fragment.output.topic
        yield from (node.topic for node in walk(fragment.output) if isinstance(node, logical.Scan))


def _reads(fragments: Sequence[Fragment], catalog: Relations) -> tuple[str, ...]:
    """The relations without which the query cannot run: the topics between its fragments are its own."""
    names: list[str] = []
    indexes: list[str] = []
    for node in (node for fragment in fragments for node in walk(fragment.output)):
        match node:
            case logical.Scan():
                names.append(node.stream.name)
            case logical.Static():
                names += node.relations
            case logical.LookupTable():
                names.append(node.name)
            case logical.LookupJoin() if _is_index(node.index, catalog):
                indexes.append(node.index)
    own = {fragment.name for fragment in fragments[:-1]}
    return tuple(name for name in dict.fromkeys(names + indexes) if name not in own)


def _is_index(name: str, catalog: Relations) -> bool:
    """Whether an index has an entry of its own, rather than a place in the declaration of its stream."""
    try:
        return isinstance(catalog.get(name).definition, CreateIndex)
    except UnknownName:
        return False


def _target(into: str, catalog: Relations) -> Stream:
    definition = catalog.get(into).definition
    if not isinstance(definition, CreateStream):
        raise Unsupported(f'INTO "{into}", which is no stream', where="INTO", fix="INTO a stream")
    return Stream.declared(definition)


def _into(made: Output, target: Stream) -> Output:
    """The output as ``target`` takes it: its columns, and the Kafka key is its primary key."""
    schema, names = target.schema, {name for name, _ in made.columns}
    declared = {column.name for column in schema.columns}
    if not names <= declared:
        raise SqlError(
            f'"{schema.name}" has no column "{min(names - declared)}"',
            where="INTO",
            fix=f"rename it with AS; there are: {', '.join(sorted(declared))}",
        )
    for name, expr in made.columns:
        if family(expr.type) != family(schema.column(name).type):
            raise SqlError(
                f'"{name}" is {expr.type}, and the column of "{schema.name}" is {schema.column(name).type}',
                where="INTO",
                fix=f"write CAST({name} AS ..) AS {name}",
            )
    if made.updating and schema.kind == Kind.APPEND:
        raise Unsupported(
            f'the rows of the view can be taken back, and "{schema.name}" is append-only',
            where="INTO",
            fix="INTO a stream with mode = 'changelog', or a mutable stream with the view's key",
        )
    if schema.kind not in (Kind.UPSERT, Kind.CHANGELOG_KV) or made.key == schema.primary_key:
        return made
    if not set(schema.primary_key) <= names:
        raise SqlError(
            f'the view does not give the primary key of "{schema.name}"',
            where="INTO",
            fix=f"select {', '.join(schema.primary_key)}",
        )
    if runs_on(made.input) == Engine.FAUST:
        return _into_from_lookup(made, schema)
    # Rows of one primary key must come in order, so they meet before they are written.
    return replace(made, key=schema.primary_key, key_names=schema.primary_key, hidden=(), exchanged=True, unique=False)


def _into_from_lookup(made: Output, schema: StreamSchema) -> Output:
    """Rows that are looked up are written partition by partition of the input: those of one key must lie in one."""
    if made.updating and not together(made, schema.primary_key):
        raise Unsupported(
            f'rows of one primary key of "{schema.name}" ({", ".join(schema.primary_key)}) come from several '
            "partitions of what is looked up, and could overtake one another",
            where="INTO",
            fix="INTO a stream with the primary key of the left side of the lookup",
        )
    return replace(made, key=schema.primary_key, key_names=schema.primary_key, hidden=(), unique=False)


def _endless(name: str) -> Unsupported:
    return Unsupported(
        f'the view would read what it writes to "{name}", for ever', where="INTO", fix="INTO another stream"
    )


def select_list(text: str) -> tuple[str, ...]:
    """The items of the outermost SELECT list, as they are written."""
    tokens = Dovetail().tokenize(text)
    depth, items, start, last = 0, [], -1, -1
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0 and start < 0 and token.token_type == TokenType.SELECT:
            start = last = token.end + 1
            continue
        if start < 0:
            continue
        if depth == 0 and token.token_type in (TokenType.COMMA, TokenType.FROM):
            items.append(text[start:last].strip())
            start = token.end + 1
            if token.token_type == TokenType.FROM:
                return tuple(items)
        last = token.end + 1
    return (*items, text[start:last].strip()) if start >= 0 else ()


_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
