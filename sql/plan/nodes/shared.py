"""Shared: an operator whose rows several read."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

import pyarrow as pa

from dovetail.sql.plan.canonical_values import Form
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Chained, Node


@dataclass(frozen=True)
class Shared(Chained):
    """The rows of ``input``, which is met under the same ``name`` wherever they are read, and runs once: each reading
    is a reference to one definition.

    So a plan prints as it was written, the definition where it is met first; its state is that of the definition.
    """

    name: str

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def single_row(self) -> bool:
        return self.input.single_row

    @property
    def unique_keys(self) -> list[Key]:
        return self.input.unique_keys

    @property
    def shared_with(self) -> str:
        return self.input.shared_with

    def pruned(self, needed: Set[str]) -> Node:
        return replace(self, input=self.input.pruned(needed))

    @property
    def line(self) -> str:
        return self.input.line

    @property
    def canonical(self) -> Form:
        """That something is shared says the output; what it is follows from the forms that are equal."""
        return self.input.canonical
