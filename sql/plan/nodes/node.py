"""What every node of a plan answers of itself, and the families that share answers.

    Leaf         has no input: a stream, a table
    OneInput     makes its rows of those of one other
      RowByRow   gives rows for each row by itself, and keeps none
        Chained   runs on the way from one operator to the next
      Partitioned   keeps what it has met, by some of its columns
    Operator     takes its rows bucket by bucket
      Exchanged    in one stage, from an exchange of each input

An answer is a property, computed once for each node from those of its inputs. Where a wrong answer would give wrong
rows it is abstract, and a node that lacks it cannot be made; where it would only lose what could have been known, the
answer of ``Node`` is that nothing is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import Column
from dovetail.joins.dataflow.ports import Watermark
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.engines import Engine
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.linear import offset_column
from dovetail.sql.plan.canonical_values import Form
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.joins.method import JoinInput, Key
from dovetail.sql.plan.nodes.event_time import EventTime
from dovetail.sql.plan.nodes.upserts import Upserts
from dovetail.sql.plan.nodes.window_column import WindowColumn

HIDDEN = "__k"
"""What the names of columns begin with that only hold a join key."""

Cut = tuple[Expr | None, ...]
"""The expressions by which rows were cut into buckets; None in the place of one whose columns have ended."""
CUT_SOMEHOW: Cut = (None,)
"""By nothing that could be said of all rows."""


@dataclass(frozen=True)
class Exchange:
    """An input of an operator, and how its rows come to the buckets: by ``keys``, or all of them to each."""

    node: Node
    keys: tuple[str, ...]
    broadcast: bool = False


class Node(ABC):
    """A part of the plan of a query: rows, made of those of its inputs."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that it makes its rows of."""

    @abstractmethod
    def with_inputs(self, *inputs: Node) -> Self:
        """The same over other inputs, as many."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The row columns that leave it."""

    @cached_property
    def forms(self) -> Mapping[str, str]:
        """The form of each column whose texts have one (``changelog.formats.text_forms``)."""
        below = {name: form for one in self.inputs for name, form in one.forms.items()}
        return {name: below[name] for name in self.schema.names if name in below} if below else below

    # -- changes --

    @property
    @abstractmethod
    def updates(self) -> bool:
        """Whether the rows that leave are current rows, which others replace: a keyed stream or a changelog, and
        groups. Which join two sides make goes by this; groups can be so though none of them goes: ``retracts``.
        """

    @property
    def retracts(self) -> bool:
        """Whether rows that leave can be taken back."""
        return self.updates

    @property
    @abstractmethod
    def grows(self) -> bool:
        """Whether the rows that stand become ever more, because an append stream is among what they are made of. Of
        keyed streams there are as many as keys; what a changelog takes back is its own affair.
        """

    def column_grows(self, name: str) -> bool:
        """Whether a column has ever more values: those of a stream that only grows."""
        return self.grows

    @property
    def single_row(self) -> bool:
        """Whether no more than one row ever stands: that of an aggregate without groups, or the first of all rows."""
        return False

    @property
    def upserts(self) -> Upserts | None:
        """How rows replace one another that are the records of a stream by primary key, unfiltered, as long as key and
        version travel; None of any others.
        """
        return None

    @property
    def compared(self) -> bool:
        """Whether an operator above keeps the rows to compare retractions with those that they take away. Those that
        an operator makes need not be.
        """
        return False

    # -- keys --

    @property
    @abstractmethod
    def unique_keys(self) -> list[Key]:
        """Sets of columns no two rows of the running table share, the shortest first; none is known of a multiset."""

    @property
    @abstractmethod
    def nullable(self) -> Set[str]:
        """The columns that can be NULL in a unique key: those that an outer join fills where a row has no match, those
        by which rows are grouped or replace one another.
        """

    @property
    def not_null(self) -> Set[str]:
        """The columns that are known to have a value in every row."""
        return frozenset()

    @property
    def equal_columns(self) -> Mapping[str, Set[str]]:
        """Column -> columns that, in a key, can stand for it: its partner in a join key.

        A LEFT join's right column is NULL or equal to its left partner, so the left one stands for it, not the reverse.
        """
        return {}

    @property
    def arrival_columns(self) -> Set[str]:
        """The columns that are, or are computed from, the time and the place of a record in its topic."""
        return frozenset()

    @cached_property
    def retraction_key(self) -> tuple[str, ...]:
        """Columns in which a retraction agrees with the row that it takes away."""
        if self.upserts is not None:
            return self.upserts.key
        if self.unique_keys:
            return self.unique_keys[0]
        return tuple(name for name in self.schema.names if name not in self.arrival_columns)

    # -- event time --

    @property
    def output_watermark(self) -> Watermark | None:
        """The watermark of the rows that leave, under the name that its column has there; None where there is none, or
        where the column does not travel so far.
        """
        return None

    def watermark_over(self, column: str) -> Watermark | None:
        """The watermark of the rows that leave, if it is to be over ``column``."""
        return self.output_watermark

    def column_time(self, name: str) -> EventTime | None:
        """The event time that a column follows: that of a scan, or of an operator that lets rows go in time."""
        return None

    def event_time(self, expr: Expr) -> EventTime | None:
        """As ``column_time``, of an expression over the node: one column, plus or minus a constant."""
        found = offset_column(expr, self.schema)
        below = None if found is None else self.column_time(found[0])
        return None if found is None or below is None else below.shifted(found[1])

    def clock_shifts(self, column: str) -> tuple[int, ...] | None:
        """By input, how much less than its watermark the ``column`` of a row may be that is yet to leave; None where
        nothing tells.
        """
        return None

    def window_column(self, name: str) -> WindowColumn | None:
        """The window whose start or end a column is; None if it is neither."""
        return None

    # -- execution --

    @property
    @abstractmethod
    def engine(self) -> Engine | None:
        """That of the uppermost operator; None where there is none: either can do it."""

    @property
    def own_engine(self) -> Engine | None:
        """That of the node itself; None where it runs with what is below it."""
        return None

    @property
    @abstractmethod
    def bucket_key(self) -> Cut | None:
        """The expressions over its columns by which its rows were cut into buckets; None where they never were."""

    @property
    def partition_key(self) -> Cut | None:
        """The expressions by which the rows that reach a lookup join lie in partitions, if these are known: those of
        ``bucket_key``; of a scan its primary key, which is the key of its records.
        """
        return self.bucket_key

    def memory(self, hybrid: HybridState) -> StateMemory | None:
        """How much of its state may be in memory at once; None: all of it, or it has none."""
        return None

    def keeps(self, below: Node) -> bool:
        """Whether it keeps the rows of an input as they are."""
        return True

    @property
    def shared_with(self) -> str:
        """The alias of the scan with whose rows these are kept; '': they are kept for themselves."""
        return ""

    # -- rules --

    @abstractmethod
    def pruned(self, needed: Set[str]) -> Node:
        """The same rows with no columns but those ``needed`` above, and those that it needs itself."""

    def filters_below(self, terms: Sequence[Expr]) -> list[Expr]:
        """Those of some conditions that may as well be tested on the rows of its inputs."""
        return []

    # -- words --

    @property
    @abstractmethod
    def line(self) -> str:
        """Its line of EXPLAIN: what it does, of what, with which state and on which engine."""

    @property
    @abstractmethod
    def canonical(self) -> Form:
        """What state and output depend on, and nothing else, its inputs inside.

        A checkpoint outlives the release that wrote it. So the form has words of its own that no renamed class and no
        reworded EXPLAIN changes. It leaves out what only messages say, what limits state without making another one of
        it, and what the query does not read of its streams.
        """

    @property
    def aliases(self) -> tuple[str, ...]:
        """What the query calls the streams that it is made of."""
        return tuple(name for below in self.inputs for name in below.aliases)

    # -- what follows --

    def column_rises(self, name: str) -> bool:
        """Whether the values of a column, one after the other, never fall: those of a clock."""
        return False

    def column(self, name: str) -> Expr:
        """A column that leaves it, by itself."""
        return Expr.column(name, self.schema.field(name).type, self.forms.get(name, ""))

    @property
    def as_join_input(self) -> JoinInput:
        """What a join's method goes by."""
        return JoinInput(self.schema, self.updates, self.output_watermark, self.grows)


class Leaf(Node):
    """A node without inputs."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def with_inputs(self, *inputs: Node) -> Self:
        if inputs:
            raise InternalError(f"{type(self).__name__} has no inputs")
        return self

    @property
    def nullable(self) -> Set[str]:
        return frozenset()

    @property
    def engine(self) -> Engine | None:
        return None

    @property
    def bucket_key(self) -> Cut | None:
        return None


class Table(Leaf):
    """What does not change while a query runs, or whose changes emit nothing."""

    @property
    def updates(self) -> bool:
        return False

    @property
    def grows(self) -> bool:
        return False


@dataclass(frozen=True)
class OneInput(Node):
    """A node that makes its rows of those of one other, ``input``: answers that rows keep on the way through it."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, *inputs: Node) -> Self:
        (below,) = inputs
        return replace(self, input=below)

    @cached_property
    def grows(self) -> bool:
        return self.input.grows

    @cached_property
    def nullable(self) -> Set[str]:
        return self.input.nullable

    @cached_property
    def not_null(self) -> Set[str]:
        return self.input.not_null

    @cached_property
    def equal_columns(self) -> Mapping[str, Set[str]]:
        return self.input.equal_columns


class RowByRow(OneInput):
    """Rows for each row by itself, without a state: what is true of the input, under the names of the output."""

    @cached_property
    def updates(self) -> bool:
        return self.input.updates

    @cached_property
    def retracts(self) -> bool:
        return self.input.retracts

    def column_grows(self, name: str) -> bool:
        return name in self.input.schema.names and self.input.column_grows(name)

    def window_column(self, name: str) -> WindowColumn | None:
        below = self.name_below(name)
        return None if below is None else self.input.window_column(below)

    @cached_property
    def partition_key(self) -> Cut | None:
        return self.input.partition_key

    def name_below(self, name: str) -> str | None:
        """The column of the input that a column is, unchanged; None if it is computed here."""
        return name if name in self.input.schema.names else None

    def name_above(self, name: str) -> str | None:
        """Under which name a column of the input leaves; None if it does not."""
        return name


class Chained(RowByRow):
    """A step on the way between two operators, on the engine of the one below."""

    @cached_property
    def engine(self) -> Engine | None:
        return self.input.engine

    @cached_property
    def bucket_key(self) -> Cut | None:
        return self.input.bucket_key

    @cached_property
    def compared(self) -> bool:
        return self.input.compared

    @cached_property
    def arrival_columns(self) -> Set[str]:
        return self.input.arrival_columns

    @cached_property
    def output_watermark(self) -> Watermark | None:
        below = self.input.output_watermark
        name = None if below is None else self.name_above(below.column)
        return None if below is None or name is None else replace(below, column=name)

    def column_time(self, name: str) -> EventTime | None:
        below = self.name_below(name)
        return None if below is None else self.input.column_time(below)


class Operator(Node):
    """What runs on Spark, over rows that were exchanged."""

    @property
    def engine(self) -> Engine | None:
        return Engine.SPARK

    @property
    def own_engine(self) -> Engine | None:
        return Engine.SPARK


class Exchanged(Operator):
    """An operator of one stage, which takes its inputs as they are. (A delta join has a stage for each step.)"""

    @property
    @abstractmethod
    def exchanges(self) -> tuple[Exchange, ...]:
        """Its inputs, as they come to its buckets."""


class Partitioned(OneInput, Exchanged):
    """An operator whose rows of one partition meet in one bucket."""

    @property
    @abstractmethod
    def partition(self) -> tuple[str, ...]:
        """The columns in which the rows of a partition agree."""

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return (Exchange(self.input, self.partition),)

    @cached_property
    def bucket_key(self) -> Cut | None:
        return tuple(self.column(name) for name in self.partition)

    def filters_below(self, terms: Sequence[Expr]) -> list[Expr]:
        """A condition on the keys alone leaves out whole partitions; any other would change the values of others."""
        return over(terms, self.partition)


def over(terms: Iterable[Expr], names: Iterable[str]) -> list[Expr]:
    """The conditions whose columns, at least one, are all among ``names``."""
    known = set(names)
    return [term for term in terms if term.columns and set(term.columns) <= known]


def names_read(*exprs: Expr | None) -> set[str]:
    """The columns that they read."""
    return {name for expr in exprs if expr is not None for name in expr.columns}


def declared_forms(columns: Iterable[tuple[str, str]], declared: Iterable[Column]) -> Mapping[str, str]:
    """The form of each of ``columns``, internal and declared names, that has one as it is declared."""
    forms = {column.name: column.form for column in declared if column.form}
    return {internal: forms[name] for internal, name in columns if name in forms}


def clock_column(node: Node) -> set[str]:
    """The column that has the watermark, if one has."""
    watermark = node.output_watermark
    return set() if watermark is None else {watermark.column}
