"""The queries between the inputs of a view and its topic, through all views that it reads, upstream first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass

from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.changelog.suggest import nearest
from dovetail.sql.catalog import Catalog
from dovetail.sql.engines import Engine
from dovetail.sql.fragments import Fragment
from dovetail.sql.planner import Plan, plan_query, stream_of
from dovetail.sql.syntax.statements import CreateStream, CreateView

_WHERE = "WAIT FOR"


@dataclass(frozen=True)
class ChainedQuery:
    """A fragment of ``view``: the topics that it reads, not those of what it looks up, and the one that it writes."""

    name: str
    view: str
    reads: Set[str]
    writes: str


@dataclass(frozen=True)
class InputChain:
    """queries  upstream first: what one has written is input of a later one; the last one is the view's own
    inputs   relation → topic, of those that are read
    asides   relations whose rows are taken as they stand, without a count of what was read: looked up, or read once
    waits    views whose rows may wait for a watermark
    """

    view: str
    queries: tuple[ChainedQuery, ...]
    inputs: Mapping[str, str]
    asides: Set[str]
    waits: tuple[str, ...]

    @staticmethod
    def of(catalog: Catalog, view: str) -> InputChain:
        """Raises SqlError for what is no materialized view, or one whose query was terminated."""
        _view(catalog, view)
        living = [query for query in catalog.queries() if not query.generates]
        if view not in {query.view for query in living}:
            raise SqlError(
                f'no query runs for "{view}": it was terminated',
                where=_WHERE,
                fix=f"create it again: SHOW CREATE {view} has its statement",
            )
        writers: dict[str, list[str]] = {}
        for query in living:
            writers.setdefault(query.topic, []).append(query.view)
        plans = {plan.name: plan for plan in _upstream_first(catalog, view, writers, set())}
        queries = tuple(
            ChainedQuery(fragment.name, plan.name, frozenset(fragment.topics), fragment.output.topic)
            for plan in plans.values()
            for fragment in plan.fragments
        )
        read = {topic for query in queries for topic in query.reads}
        named = dict.fromkeys(name for plan in plans.values() for name in plan.reads)
        topics = {name: topic for name in named if (topic := _topic(catalog, name)) in read}
        waits = tuple(plan.name for plan in plans.values() if any(map(_waits, plan.fragments)))
        return InputChain(view, queries, topics, named.keys() - topics.keys(), waits)

    @property
    def sources(self) -> list[str]:
        """The topics that no query of the chain writes."""
        written = {query.writes for query in self.queries}
        return sorted({topic for query in self.queries for topic in query.reads} - written)

    @property
    def topic(self) -> str:
        """That of the view."""
        return self.queries[-1].writes

    def names_of(self, topic: str) -> str:
        """What the topic is called in statements."""
        return next((name for name, found in self.inputs.items() if found == topic), topic)

    def topic_of(self, catalog: Catalog, name: str) -> str:
        """The topic of an input. Raises SqlError for what is none; UnknownName where there is no such thing."""
        if name in self.inputs:
            return self.inputs[name]
        topic = _topic(catalog, name)
        if topic in self.inputs.values():
            return topic
        listed = f"it reads {', '.join(sorted(self.inputs))}"
        if catalog.find(name) is None:
            best = nearest(name, self.inputs)
            fix = listed if best is None else f'did you mean "{best}"? {listed}'
            raise UnknownName(f'there is no stream or view "{name}"', where=_WHERE, fix=fix)
        if name in self.asides:
            what = f'"{self.view}" takes rows of "{name}" as they stand when it needs them, and counts no offsets of it'
        else:
            what = f'"{self.view}" does not read "{name}"'
        raise SqlError(what, where=_WHERE, fix=f"{listed}: name what was written to one of them")

    def between(self, topics: Collection[str]) -> tuple[ChainedQuery, ...]:
        """The queries on the ways from some topics to the view."""
        reached, found = set(topics), []
        for query in self.queries:
            if reached & query.reads:
                reached.add(query.writes)
                found.append(query)
        return tuple(found)


def _view(catalog: Catalog, name: str) -> CreateView:
    definition = catalog.get(name).materialized_view
    if definition is None:
        raise SqlError(
            f'"{name}" is not a materialized view', where=_WHERE, fix="SHOW VIEWS lists them; nothing else is behind"
        )
    return definition


def _upstream_first(catalog: Catalog, name: str, writers: Mapping[str, list[str]], seen: set[str]) -> Iterator[Plan]:
    """The plans of the views that ``name`` reads, also INTO streams, and its own as the last one."""
    seen.add(name)
    plan = plan_query(name, _view(catalog, name), catalog)
    for topic in (topic for fragment in plan.fragments for topic in fragment.topics):
        for writer in writers.get(topic, ()):
            if writer not in seen:
                yield from _upstream_first(catalog, writer, writers, seen)
    yield plan


def _waits(fragment: Fragment) -> bool:
    return fragment.engine is Engine.SPARK and fragment.dataflow.waits


def _topic(catalog: Catalog, name: str) -> str:
    """'' of what has none."""
    found = catalog.find(name)
    if found is None or not isinstance(found.definition, CreateStream | CreateView):
        return ""
    if isinstance(found.definition, CreateView) and not found.definition.materialized:
        return ""
    return stream_of(catalog, name).topic
