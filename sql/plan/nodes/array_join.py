"""ArrayJoin: a row for each element of arrays."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from dovetail.joins.dataflow.ports import Pad
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, computed, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Chained, Node, names_read, over


@dataclass(frozen=True)
class ArrayJoin(Chained):
    """Each row of ``input`` once for every place in the longest of its ``arrays``, with the elements at this place; an
    array that has ended gives NULL. A row without elements is left out, unless ``left``: it then has the default of
    each type, or NULL, as ``pad`` says. NULL is an array without elements.

    arrays   the column of the elements and the array that they are of, side by side
    dropped  columns that the arrays are made of and nothing above reads: they are not repeated for each element
    """

    arrays: tuple[tuple[str, Expr], ...]
    left: bool = False
    dropped: tuple[str, ...] = ()
    pad: Pad = Pad.DEFAULT

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns of the input that leave."""
        return tuple(name for name in self.input.schema.names if name not in self.dropped)

    @property
    def elements(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.arrays)

    @cached_property
    def schema(self) -> pa.Schema:
        kept = [field for field in self.input.schema if field.name not in self.dropped]
        return pa.schema([*kept, *(pa.field(name, array.type.value_type) for name, array in self.arrays)])

    def name_above(self, name: str) -> str | None:
        return None if name in self.dropped else name

    def column_grows(self, name: str) -> bool:
        arrays = dict(self.arrays)
        read = arrays[name].columns if name in arrays else (name,)
        return any(map(self.input.column_grows, read))

    @property
    def unique_keys(self) -> list[Key]:
        return []

    @cached_property
    def arrival_columns(self) -> Set[str]:
        below = self.input.arrival_columns
        return below | {name for name, array in self.arrays if below & set(array.columns)}

    def filters_below(self, terms: Sequence[Expr]) -> list[Expr]:
        return over(terms, self.input.schema.names)

    def pruned(self, needed: Set[str]) -> Node:
        """Every array stays: the longest says how many rows there are."""
        below = self.input.pruned((needed - set(self.elements)) | names_read(*(array for _, array in self.arrays)))
        return replace(self, input=below, dropped=tuple(name for name in below.schema.names if name not in needed))

    @property
    def line(self) -> str:
        arrays = [f"{name} = {array.readable}" for name, array in self.arrays]
        pad = ["unmatched=NULL"] if self._pads_null else []
        return "  ".join([f"ArrayJoin{' left' if self.left else ''}", ", ".join(arrays), *pad, "state: none"])

    @property
    def _pads_null(self) -> bool:
        return self.left and self.pad is Pad.NULL

    @property
    def canonical(self) -> Form:
        return members(
            node="array_join",
            arrays=computed(self.arrays),
            left=self.left,
            dropped=list(self.dropped),
            pads_null=self._pads_null,
            input=self.input.canonical,
        )
