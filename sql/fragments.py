"""A fragment: the part of a query that one engine runs, with its physical plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.lookup import LookupFlow
from dovetail.sql.compile.dataflow import dataflow
from dovetail.sql.compile.lookup_flow import lookup_flow
from dovetail.sql.engines import Engine
from dovetail.sql.plan.explain import explain
from dovetail.sql.plan.fingerprint import fingerprint
from dovetail.sql.plan.nodes import (
    Output,
    Scan,
)
from dovetail.sql.plan.properties import walk


@dataclass(frozen=True)
class Fragment:
    """A part of a query that one engine runs. The last one has the query's own name; ``output.topic`` is written."""

    name: str
    engine: Engine
    output: Output

    @staticmethod
    def of(made: Output) -> Fragment:
        return Fragment(made.name, made.input.engine or Engine.SPARK, made)

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
