"""Fragments: the parts of a query, each for one engine, joined by topics.

    fragment v.f1   spark   scan a ─┬─ join ──▶ topic v.f1
                            scan b ─┘
    fragment v      faust   scan v.f1 ── lookup ──▶ topic v

A tree is cut above the uppermost operator of an engine, where one of the other engine follows. What lies between two
operators goes with the lower one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from changelog.errors import InternalError
from changelog.schema import Column, Kind, StreamSchema
from joins.dataflow.graph import Dataflow
from joins.dataflow.lookup import LookupFlow
from sql.bind.output import output
from sql.compile.dataflow import dataflow
from sql.compile.lookup_flow import lookup_flow
from sql.plan.explain import explain, fingerprint
from sql.plan.maps import identity
from sql.plan.nodes import (
    Aggregate,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    Node,
    Output,
    Scan,
    Static,
    StaticJoin,
    Window,
    rebuilt,
)
from sql.plan.properties import Engine, rules_of, runs_on, walk
from sql.query_settings import QuerySettings
from sql.rules.prune import pruned

__all__ = ["Engine", "Fragment", "Parts", "cut"]


@dataclass(frozen=True)
class Fragment:
    """A part of a query that one engine runs. The last one has the query's own name; ``output.topic`` is written."""

    name: str
    engine: Engine
    output: Output

    @staticmethod
    def of(made: Output) -> Fragment:
        return Fragment(made.name, runs_on(made.input) or Engine.SPARK, made)

    @cached_property
    def dataflow(self) -> Dataflow:
        """The physical plan of a fragment of Spark."""
        if self.engine is not Engine.SPARK:
            raise InternalError(f'the fragment "{self.name}" is for {self.engine}, which runs no dataflow')
        return dataflow(self.output)

    @cached_property
    def lookup_flow(self) -> LookupFlow:
        """The physical plan of a fragment of Faust."""
        if self.engine is not Engine.FAUST:
            raise InternalError(f'the fragment "{self.name}" is for {self.engine}, which looks nothing up')
        return lookup_flow(self.output)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that it reads, in order of name; not those of what it looks up."""
        return tuple(sorted({node.topic for node in walk(self.output) if isinstance(node, Scan)}))

    @property
    def fingerprint(self) -> str:
        """Equal for fragments whose state fits each other."""
        return fingerprint(self.output)

    def explain(self) -> str:
        return explain(self.output)


@dataclass
class Parts:
    """A tree that is cut: ``top`` reads what ``lower`` ones write, upstream first."""

    name: str
    top: Node
    lower: list[Output] = field(default_factory=list)

    def under(self, made: Output) -> tuple[Fragment, ...]:
        """The fragments of a query of which ``made`` is the output over ``top``: each writes what is read of it."""
        fragments = [Fragment.of(pruned(made))]
        for part in reversed(self.lower):
            read = {name for fragment in fragments for name in _columns_read(fragment.output, part.topic)}
            columns = tuple(column for column in part.columns if column[0] in read or column[0] in part.key)
            fragments.insert(0, Fragment.of(pruned(replace(part, columns=columns))))
        return tuple(fragments)


def cut(name: str, node: Node) -> Parts:
    """The parts of a rewritten plan; those below the top are called ``<name>.f1``, ``<name>.f2``, .."""
    parts = Parts(name, node)
    parts.top = _cut(parts, node)
    return parts


def _cut(parts: Parts, node: Node) -> Node:
    match node:
        case Map() | Window() | StaticJoin() | Keyed() | Scan() | Static() | LookupTable():
            return rebuilt(node, lambda below: _cut(parts, below))
        case LookupJoin():
            return replace(node, input=_for(parts, node.input, Engine.FAUST))
        case Aggregate() | Join():
            return rebuilt(node, lambda below: _for(parts, below, Engine.SPARK))
        case _:
            assert_never(node)


def _for(parts: Parts, node: Node, engine: Engine) -> Node:
    """``node`` as the input of an operator of ``engine``: read from a topic, where the other engine makes it."""
    below = _cut(parts, node)
    return below if runs_on(below) in (None, engine) else _read_from(_written(parts, below))


def _written(parts: Parts, node: Node) -> Output:
    name = f"{parts.name}.f{len(parts.lower) + 1}"
    made = output(name, name, node, identity(node), marked=False, settings=QuerySettings({}))
    parts.lower.append(made)
    return made


def _read_from(made: Output) -> Scan:
    """The rows of another fragment: its columns keep their internal names."""
    schema = StreamSchema(
        name=made.name,
        columns=tuple(Column(name, expr.type) for name, expr in made.columns),
        kind=Kind.CHANGELOG if made.updating else Kind.APPEND,
        primary_key=made.key if made.unique else (),
    )
    names = tuple((name, name) for name, _ in made.columns)
    return Scan(made.name, schema, made.topic, rules_of(made.input), names, trusted=True)


def _columns_read(made: Output, topic: str) -> set[str]:
    scans = [node for node in walk(made) if isinstance(node, Scan) and node.topic == topic]
    return {name for scan in scans for _, name in scan.columns}
