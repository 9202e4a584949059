"""From a statement to its plan: bind, rewrite by the rules, compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import InternalError, SqlError, UnknownName, Unsupported
from dovetail.changelog.schema import TIME, Column, Kind, StreamSchema
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.bind.aggregates import is_grouped
from dovetail.sql.bind.binder import Binder
from dovetail.sql.bind.bounded.bounded_query import snapshot_of
from dovetail.sql.bind.ending_limit import without_ending_limit
from dovetail.sql.bind.from_clause.inlined_view import inlined
from dovetail.sql.bind.named_columns import named_as
from dovetail.sql.bind.reading import reading
from dovetail.sql.bind.static import is_static
from dovetail.sql.bind.zoned_times import zoned_times
from dovetail.sql.compile.snapshot import Snapshot, snapshot_of_plan
from dovetail.sql.fragments import Fragment
from dovetail.sql.functions.growth import counted
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.plan.conditions.idle_terms import comparisons_with_null, gaps_between_windows
from dovetail.sql.plan.conditions.unfit_constants import refuse_unfit_constants, unfit_constants
from dovetail.sql.plan.explain import explain
from dovetail.sql.plan.join_order import JoinOrder
from dovetail.sql.plan.nodes import Aggregate, LookupJoin, LookupTable, Node, Output, Scan, Static, StaticJoin
from dovetail.sql.plan.properties import rules_of, walk
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.plan.state.delta_choice import DeltaChoice
from dovetail.sql.plan.state.unbounded_joins import unbounded_joins
from dovetail.sql.query_settings import QuerySettings, Value, checked
from dovetail.sql.relations import Dependencies, Relations, Sizes, Stream, TrackedCatalog
from dovetail.sql.rules import meeting, rewritten
from dovetail.sql.syntax.faults import unforeseen_as_errors
from dovetail.sql.syntax.grammar.hints.foreign_names import with_own_names
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateIndex, CreateStream, CreateView, Emit, Select
from dovetail.sql.system_tables import is_of_system
from dovetail.sql.watermarks import check_late_topic

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
    dependencies: Dependencies = field(default=Dependencies())
    """What its text names besides."""
    limit: int | None = None
    """Of a streaming SELECT: after how many changes it ends."""
    orders: tuple[JoinOrder, ...] = ()
    """Of chains of joins that are not in the order of the text."""
    deltas: tuple[DeltaChoice, ...] = ()
    """Chains of joins that are delta joins."""
    rules: Rules = Rules.TIMEPLUS
    """The dialect that a bounded query is read in."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """That of each output column whose texts have one."""
    notes: tuple[str, ...] = ()
    """What is to be known of its rows."""

    @property
    def uses(self) -> tuple[str, ...]:
        """All without which it cannot be planned, or run."""
        return (*self.reads, *self.dependencies.views, *self.dependencies.functions)

    @property
    def bounded(self) -> bool:
        return self.snapshot is not None

    @property
    def constant(self) -> bool:
        """Whether its rows are the same at any time: it reads nothing."""
        return self.snapshot is not None and not self.snapshot.relations

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

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be known before the query runs: state that has no end, conditions that no row passes,
        windows with gaps.
        """
        checks = (unbounded_joins, unfit_constants, comparisons_with_null, gaps_between_windows)
        found = (warning for one in checks for fragment in self.fragments for warning in one(fragment.output))
        return tuple(dict.fromkeys((*self.notes, *found)))

    def explain(self) -> str:
        if len(self.fragments) > 1:
            parts = (f"Fragment {one.name}  engine={one.engine}\n{one.explain()}" for one in self.fragments)
            return "\n\n".join([*self._head, *parts])
        if self.output is not None:
            return "\n".join([*self._head, explain(self.output)])
        relations, past = ((), {}) if self.snapshot is None else (self.snapshot.relations, self.snapshot.past)
        reads = ", ".join(name if name in past else f"table({name})" for name in relations)
        return f"Snapshot {self.name}  engine=duckdb  columns={','.join(self.columns)}\n└─ {reads}  read once"

    @property
    def _head(self) -> list[str]:
        limit = [] if self.limit is None else [f"Limit {self.limit}  ends after so many changes"]
        return [*limit, *(order.readable for order in self.orders), *(delta.readable for delta in self.deltas)]

    def stream(self) -> Stream:
        """The output topic as an input of other queries."""
        if self.constant:
            return Stream(StreamSchema(self.name, self.declared, Kind.CHANGELOG), self.name, self.rules, trusted=True)
        if self.output is None:
            raise Unsupported(f'"{self.name}" is bounded: it has no topic', fix="read a stream in its query")
        made = self.output
        kind = Kind.APPEND
        if made.updating or made.marked:
            kind = Kind.UPSERT if made.format == "upsert" else Kind.CHANGELOG
        names = {name for name, _ in made.columns}
        schema = StreamSchema(
            name=self.name,
            columns=self.declared,
            kind=kind,
            primary_key=made.key if made.unique and set(made.key) <= names else (),
            event_time=TIME if TIME in names else None,
            value=made.value_format,
            key=made.key_format,
        )
        return Stream(
            schema, made.topic, rules_of(made.input), upstream_watermarks=_upstream_watermarks(made), trusted=True
        )

    @property
    def declared(self) -> tuple[Column, ...]:
        """The output columns as those of a stream."""
        return tuple(Column(one.name, one.type, form=self.forms.get(one.name, "")) for one in self.schema)


def _upstream_watermarks(made: Output) -> tuple[Watermark, ...]:
    """The watermarks over its columns. The query has rejected the times that cannot be used."""
    columns = () if made.clock is None else made.clock.columns
    return tuple(Watermark(name, -later, max_future_ms=None, from_heartbeats=True) for name, later in columns)


def plan_query(
    name: str,
    statement: Select | CreateView,
    catalog: Relations,
    settings: Mapping[str, Value] | None = None,
    sizes: Sizes | None = None,
) -> Plan:
    """The plan of a SELECT, or of the query of a materialized view; settings of the statement go before ``settings``.
    With ``sizes`` joins are put in an order that fits them; a plan that others have to make again is made without.

    Raises a SqlError that names the clause and the nearest thing that works.
    """
    try:
        with unforeseen_as_errors("planning it"):
            return _planned_by_name(name, statement, catalog, settings, sizes)
    except UnknownName as fault:
        fix = _named_as_here(name, statement, catalog, settings)
        raise UnknownName(fault.what, where=fault.where, fix=fix or fault.fix) from None


def _named_as_here(
    name: str, statement: Select | CreateView, catalog: Relations, settings: Mapping[str, Value] | None
) -> str:
    """The statement with what goes by another name here than elsewhere, where that runs; else ''."""
    for form in dict.fromkeys(with_own_names(statement.text, rules) for rules in Rules):
        if not form:
            continue
        try:
            meant = parse_one(form)
            if isinstance(meant, Select | CreateView):
                _planned_by_name(name, meant, catalog, settings, None)
                return form
        except SqlError:
            continue
    return ""


def _planned_by_name(
    name: str,
    statement: Select | CreateView,
    catalog: Relations,
    settings: Mapping[str, Value] | None,
    sizes: Sizes | None,
) -> Plan:
    merged = checked({**(settings or {}), **statement.settings})
    with counted():
        return _planned(name, statement, TrackedCatalog.of(catalog), merged, sizes)


def _planned(
    name: str, statement: Select | CreateView, catalog: TrackedCatalog, merged: QuerySettings, sizes: Sizes | None
) -> Plan:
    if is_static(statement.query, {}, catalog):
        _refuse_of_streams(statement)
        query, dialect = reading(statement, catalog)
        snapshot = snapshot_of(query, catalog, _stream_of(catalog), dialect)
        reads = tuple(relation for relation in snapshot.reads if not is_of_system(relation))
        return Plan(
            name,
            merged,
            snapshot=snapshot,
            reads=reads,
            dependencies=catalog.dependencies,
            rules=dialect.rules,
            forms=snapshot.forms,
            notes=tuple(zoned_times(query, dialect.rules)),
        )
    bound = bound_query(name, statement, catalog, merged)
    made = rewritten(replace(bound, sizes=sizes))
    fragments = tuple(map(Fragment.of, made.fragments))
    for fragment in fragments:
        refuse_unfit_constants(fragment.output)
        _refuse_lone_table(fragment.output)
    check_late_topic(made.settings, _topics(fragments))
    reads = _reads(fragments, catalog)
    if made.target is not None and made.target.schema.name in reads:
        raise _endless(made.target.schema.name)
    return Plan(
        name,
        made.settings,
        fragments[-1].output,
        reads=reads,
        fragments=fragments,
        dependencies=catalog.dependencies,
        limit=made.limit,
        orders=made.orders,
        deltas=made.deltas,
        forms={name: expr.form for name, expr in bound.columns if expr.form},
        notes=tuple(zoned_times(statement.query, reading(statement, catalog)[1].rules)),
    )


def _refuse_lone_table(plan: Output) -> None:
    """Raises Unsupported where rows that are read once are to flow as those of a stream do."""
    for node in walk(plan):
        for below in node.inputs:
            if isinstance(below, Static) and not isinstance(node, StaticJoin):
                raise Unsupported(
                    f'the rows of "{below.alias}" are read once, at the start, and make no stream by themselves',
                    where="in FROM",
                    fix=f"join a stream with them: FROM stream JOIN {below.alias} ON ..",
                )


def plan_snapshot(statement: Select, catalog: Relations) -> Snapshot:
    """The query over what its relations hold now: ``x`` is read as ``table(x)``, which in RisingWave is what it means.

    Raises as ``plan_query``.
    """
    with unforeseen_as_errors("planning it"), counted():
        _refuse_of_streams(statement)
        return _bounded(statement, catalog)


def _bounded(statement: Select | CreateView, catalog: Relations) -> Snapshot:
    query, dialect = reading(statement, catalog)
    return snapshot_of(query, catalog, _stream_of(catalog), dialect)


def bound_query(name: str, statement: Select | CreateView, catalog: Relations, settings: QuerySettings) -> QueryPlan:
    """A streaming query as it is written, before any rule; ``settings`` are those of the statement, and others."""
    catalog = catalog if isinstance(catalog, TrackedCatalog) else TrackedCatalog(catalog)
    query, dialect, of_view = _read(statement, catalog, settings)
    # A view goes on: what it held after so many changes would be left to chance.
    query, limit = without_ending_limit(query) if isinstance(statement, Select) else (query, None)
    delay_ms = (statement.emit.delay_ms or 0) if statement.emit is not None else 0
    merged = _delayed(checked({**of_view, **settings.values}), delay_ms)
    bound = Binder(catalog, merged, _stream_of(catalog), dialect=dialect).bind(query)
    _refuse_idle_policy(statement.emit, bound.node)
    into = statement.into if isinstance(statement, CreateView) else None
    return QueryPlan(
        name=name,
        rows=bound.node,
        columns=tuple(named_as(query, bound.columns)),
        settings=merged,
        marked=bound.marked or (statement.emit is not None and statement.emit.changelog),
        final=_closes(statement.emit),
        delay_ms=delay_ms,
        period_ms=_period_ms(statement.emit),
        limit=limit,
        target=None if into is None else _target(into, catalog),
        emits_watermark=isinstance(statement, CreateView) and statement.materialized and into is None,
    )


def meeting_plan(name: str, statement: Select | CreateView, catalog: Relations) -> tuple[QueryPlan, Dialect]:
    """Which rows of its inputs meet in a streaming query, as one tree; and the dialect of its expressions."""
    merged = checked(statement.settings)
    _, dialect, _ = _read(statement, catalog, merged)
    return meeting(bound_query(name, statement, catalog, merged)), dialect


def _read(
    statement: Select | CreateView, catalog: Relations, settings: QuerySettings
) -> tuple[exp.Query, Dialect, Mapping[str, Value]]:
    """The query, its dialect, and the settings that come with it: not every view tells which of its rows are final."""
    query, dialect = reading(statement, catalog)
    final = _closes(statement.emit) or (settings["output"] == "append" and is_grouped(query))
    query, of_view = inlined(query, catalog, lambda view: _tells(view, catalog)) if final else (query, {})
    return query, dialect, of_view


def _tells(view: CreateView, catalog: Relations) -> bool:
    """Whether the topic of a view says how far its rows have come."""
    return view.materialized and bool(_stream_of(catalog)(view).upstream_watermarks)


def _refuse_of_streams(statement: Select | CreateView) -> None:
    """What a bounded query is told that is about operators, and about changes that leave them."""
    if statement.emit is not None:
        raise Unsupported(
            "EMIT says when changes leave a query, and one over table(x) is answered once",
            where="in EMIT",
            fix="leave EMIT out; or read the stream itself: FROM x in place of FROM table(x)",
        )
    for name in statement.settings if isinstance(statement, Select) else ():
        if name.lower() != "dialect":
            raise Unsupported(
                f"{name} is a setting of streaming queries, and this one is answered once",
                where="SETTINGS",
                fix="leave it out",
            )


def _closes(emit: Emit | None) -> bool:
    """Whether EMIT asks for final rows only. Raises Unsupported for what it cannot ask for."""
    if emit is None:
        return False
    if emit.delay_ms is not None and emit.policy != "after window close":
        raise Unsupported(
            "EMIT .. WITH DELAY is for rows that leave when their window closes",
            where="EMIT",
            fix=f"EMIT AFTER WINDOW CLOSE WITH DELAY {emit.delay_ms}ms; or leave it out: every change is emitted when "
            "it comes",
        )
    if not emit.policy:
        return False
    if emit.policy in _EVERY_CHANGE:
        return False
    if emit.policy != "after window close":
        raise Unsupported(
            f"EMIT {emit.policy.upper()} is not supported in this release",
            where="EMIT",
            fix="leave it out: every change is emitted when it comes",
        )
    if emit.timeout_ms is not None:
        raise Unsupported(
            "EMIT AFTER WINDOW CLOSE .. TIMEOUT is not supported: windows go by the time of rows, not by the clock",
            where="EMIT",
            fix=f"SETTINGS idle_timeout = '{emit.timeout_ms}ms' ends the wait for a silent partition; a heartbeat "
            "closes the last window",
        )
    return True


def _delayed(settings: QuerySettings, delay_ms: int) -> QuerySettings:
    """``settings`` under WITH DELAY: a stream that gets its watermark by them gets it so much later."""
    if not delay_ms:
        return settings
    delay_ms += settings.distance("watermark_delay", whole=False) or 0
    return checked({**settings.values, "watermark_delay": f"{delay_ms}ms"})


def _period_ms(emit: Emit | None) -> int:
    """EMIT PERIODIC d, and ON UPDATE WITH BATCH d, which says the same."""
    if emit is None or emit.policy not in _EVERY_CHANGE:
        return 0
    if emit.repeat:
        raise Unsupported(
            "EMIT PERIODIC .. REPEAT is not supported: what has not changed is in the changelog already",
            where="EMIT",
            fix=f"EMIT PERIODIC {emit.every_ms}ms; the content of the view is FROM table(view)",
        )
    return emit.every_ms or 0


def _refuse_idle_policy(emit: Emit | None, node: Node) -> None:
    """EMIT PERIODIC and ON UPDATE are about the changes of groups."""
    if emit is None or emit.policy not in _EVERY_CHANGE:
        return
    if not any(isinstance(below, Aggregate) for below in walk(node)):
        raise Unsupported(
            f"EMIT {emit.policy.upper()} is for aggregates, and this query has none",
            where="EMIT",
            fix="leave it out: every change is emitted when it comes",
        )


def recompute(name: str, statement: Select | CreateView, catalog: Relations) -> Snapshot:
    """The batch query that says what the rows of ``statement`` should be now: the plan of a streaming query before any
    rule, as DuckDB computes it.
    """
    if is_static(statement.query, {}, catalog):
        return _bounded(statement, catalog)
    bound = bound_query(name, statement, catalog, checked(statement.settings))
    return snapshot_of_plan(bound.rows, bound.columns)


def stream_of(catalog: Relations, name: str) -> Stream:
    """The topic behind a stream or a materialized view, and its schema. Raises UnknownName, Unsupported."""
    definition = catalog.get(name).definition
    match definition:
        case CreateStream():
            return Stream.declared(definition)
        case CreateView() if definition.materialized:
            return _written(definition, TrackedCatalog.of(catalog))
    raise Unsupported(
        f'"{name}" is no stream: it has no topic', fix="SHOW STREAMS and SHOW VIEWS list those that have one"
    )


def _stream_of(catalog: Relations) -> Callable[[CreateView], Stream]:
    """How the output of a materialized view is read by others."""
    tracked = TrackedCatalog.of(catalog)
    return lambda view: _written(view, tracked)


def _written(view: CreateView, catalog: TrackedCatalog) -> Stream:
    """As the catalog has it, else as the view is planned."""
    known = catalog.known.written
    if view.name not in known:
        known[view.name] = catalog.get(view.name).written or plan_query(view.name, view, catalog).stream()
    return known[view.name]


def _topics(fragments: Sequence[Fragment]) -> Iterator[str]:
    """What the query reads and writes."""
    for fragment in fragments:
        yield fragment.output.topic
        yield from (node.topic for node in walk(fragment.output) if isinstance(node, Scan))


def _reads(fragments: Sequence[Fragment], catalog: Relations) -> tuple[str, ...]:
    """The relations without which the query cannot run: the topics between its fragments are its own."""
    names: list[str] = []
    indexes: list[str] = []
    for node in (node for fragment in fragments for node in walk(fragment.output)):
        if isinstance(node, Scan):
            names.append(node.stream.name)
        elif isinstance(node, Static):
            names += node.relations
        elif isinstance(node, LookupTable):
            names.append(node.name)
        elif isinstance(node, LookupJoin) and _is_index(node.index, catalog):
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


def _endless(name: str) -> Unsupported:
    return Unsupported(
        f'the view would read what it writes to "{name}", forever', where="INTO", fix="INTO another stream"
    )
