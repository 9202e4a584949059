"""A query is cut into fragments, each for one engine, joined by topics.

    fragment v.f1   spark   scan a ─┬─ join ──▶ topic v.f1
                            scan b ─┘
    fragment v      faust   scan v.f1 ── lookup ──▶ topic v

A tree is cut above the uppermost operator of an engine, where one of the other engine follows. What lies between two
operators goes with the lower one. Fragments below the last are called ``<name>.f1``, ``<name>.f2``, ..
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.changelog.schema import Column, Kind, StreamSchema
from dovetail.sql.engines import Engine
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import (
    Node,
    Output,
    Scan,
    rebuilt,
)
from dovetail.sql.plan.output import output
from dovetail.sql.plan.properties import rules_of
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.query_settings import QuerySettings


def split_fragments(plan: QueryPlan) -> QueryPlan:
    cutter = _Cutter(plan.name)
    top = cutter.cut(plan.rows)
    return replace(plan, rows=top, upstream=tuple(cutter.lower))


@dataclass
class _Cutter:
    """``lower``: the parts that were cut off, upstream first."""

    name: str
    lower: list[Output] = field(default_factory=list)

    def cut(self, node: Node) -> Node:
        engine = node.own_engine
        return rebuilt(node, self.cut if engine is None else lambda below: self._input(below, engine))

    def _input(self, node: Node, engine: Engine) -> Node:
        """``node`` as the input of an operator of ``engine``: read from a topic, where the other engine makes it."""
        below = self.cut(node)
        return below if below.engine in (None, engine) else _read_from(self._written(below))

    def _written(self, node: Node) -> Output:
        name = f"{self.name}.f{len(self.lower) + 1}"
        made = output(name, name, node, identity(node), marked=False, settings=QuerySettings({}))
        self.lower.append(made)
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
