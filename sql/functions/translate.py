"""From the user's tree to the engine's: every call by the registry of its dialect, every operator as a call.

The tree comes with its columns under their internal names; their types stand in an ``Environment``. What is built is
typed bottom-up, so that a function can do one thing for texts and another for times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.formats import text_forms
from dovetail.sql.expressions.expression import FORM
from dovetail.sql.expressions.misfits import GIVE_WHAT_FITS, EngineRefused, misfit, note_written, shown
from dovetail.sql.functions import interval_columns
from dovetail.sql.functions.aggregate_calls import (
    DOCUMENTS,
    OF_ONE,
    Aggregated,
    aggregate_name,
    aggregate_tree,
    as_it_is,
    counts_distinct,
    extreme_of_all,
    is_aggregate,
)
from dovetail.sql.functions.documents import JSON
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.growth import expect_alike, grow
from dovetail.sql.functions.interval_columns import INTERVAL, aggregated_intervals
from dovetail.sql.functions.kept_values import is_interval, kept
from dovetail.sql.functions.leaves import is_leaf, leaf_numbers, number_leaves, refuse_unread_leaves
from dovetail.sql.functions.registry import Function, Registry, Unfit
from dovetail.sql.functions.typed import Typed, bracketed
from dovetail.sql.syntax.dialect import too_deep
from dovetail.sql.syntax.rules import Rules

T = TypeVar("T")
Visit = Callable[["Translator", exp.Expr], "Typed"]


@dataclass(frozen=True)
class OwnFunction:
    """A function that a user has made; ``volatile``: for equal arguments it may give another value each time."""

    function: Function
    volatile: bool


class Dialect(Protocol):
    """What differs between the dialects besides their functions.

    merged_first  the columns of USING stand before all others in SELECT *
    """

    @property
    def merged_first(self) -> bool: ...

    @property
    def rules(self) -> Rules: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def visits(self) -> Mapping[type[exp.Expr], Visit]:
        """How each form is read: ``forms.COMMON``, with what is the dialect's own."""
        ...

    def operator(self, node: exp.Expr, operands: Sequence[Typed]) -> Typed | exp.Expr | None:
        """An operator over its operands; None where the engine's own is right."""
        ...

    def literal(self, node: exp.Literal, environment: Environment) -> Typed: ...

    def cast(self, value: Typed, kind: pa.DataType) -> exp.Expr: ...

    def type_of(self, written: exp.DataType) -> pa.DataType: ...

    def own(self, name: str) -> OwnFunction | None:
        """The function of this name, in lower case, that a user has made."""
        ...


LONGEST_CHAIN = 400
"""The operators of one kind that may stand in a row: what is made of them grows with their square."""

Special = Callable[["Translator", exp.Expr], Typed]

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
OPERATORS = (
    *COMPARISONS,
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.DPipe, exp.Xor),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
    *(exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo),
)
"""What both dialects have between two operands; each adds its own among its visits."""


@dataclass(frozen=True)
class Translator:
    """``Translator(dialect, environment)(tree)`` is the engine's tree, typed. Raises SqlError.

    special     calls that mean something of their own in this place, by name
    aggregated  what becomes of the engine's aggregates
    at_once     the query is computed once: a function may give another value another time
    read        the numbers of the names and values that have been met
    """

    dialect: Dialect
    environment: Environment
    special: Mapping[str, Special] = field(default_factory=dict)
    aggregated: Aggregated = as_it_is
    at_once: bool = False
    read: set[int] = field(default_factory=set)

    def __call__(self, node: exp.Expr) -> Typed:
        if is_leaf(node):
            self.note_read(node)
        return self._noted(node, partial(self._value, node))

    def whole(self, tree: exp.Expr, translate: Callable[[exp.Expr], T]) -> T:
        """``translate(tree)``. Raises Unsupported for a name or a value of ``tree`` that is not read by it."""
        number_leaves(tree)
        made = translate(tree)
        refuse_unread_leaves(tree, self.read, self.environment.place)
        return made

    def note_read(self, node: exp.Expr) -> None:
        """The names and values of ``node`` have been taken as they are written."""
        self.read.update(leaf_numbers(node))

    def _noted(self, node: exp.Expr, made: Callable[[], Typed]) -> Typed:
        grow()
        try:
            value = made()
        except EngineRefused as fault:
            raise misfit(node, self.environment.types, fault) from None
        except Unfit as fault:
            what = f"{shown(node)} {fault.what}"
            raise SqlError(what, where=self.environment.place, fix=fault.fix or GIVE_WHAT_FITS) from None
        except SqlError as fault:
            fault.where = fault.where or self.environment.place
            raise
        expect_alike(value.tree, node, self.environment.place)
        note_written(value.tree, node)
        return value

    def _value(self, node: exp.Expr) -> Typed:
        visit = self.dialect.visits.get(type(node))
        if visit is not None:
            return visit(self, node)
        if type(node) in OPERATORS:
            return self._operator(node)
        if is_aggregate(node):
            return self.aggregate(node)
        raise self.unsupported(node)

    def unsupported(self, node: exp.Expr) -> Unsupported:
        return Unsupported(
            f"{node.sql(dialect='clickhouse')} is not supported",
            where=self.environment.place,
            fix="docs/functions.md lists what is",
        )

    def tree(self, node: exp.Expr) -> exp.Expr:
        return self(node).tree

    def known(self, tree: exp.Expr, kind: pa.DataType | None = None) -> Typed:
        return self.environment.known(tree, kind)

    def condition(self, node: exp.Expr) -> exp.Expr:
        """A value that is true or false: a number is true where it is not 0."""
        value = self(node)
        if value.is_boolean or value.is_null:
            return value.tree
        if value.is_number:
            return exp.NEQ(this=bracketed(value.tree), expression=exp.Literal.number(0))
        raise SqlError(
            f"a condition is true or false, and {node.sql(dialect='clickhouse')} is a {value.family}",
            where=self.environment.place,
            fix="compare it with something",
        )

    def call(self, name: str, arguments: Sequence[Typed]) -> Typed:
        function = self.dialect.registry.find(name, self.environment.place)
        return function(arguments, self.known(exp.Null(), pa.null()))

    def own(self, name: str, arguments: Sequence[exp.Expr]) -> Typed | None:
        """The call of a function that a user has made; None where there is none of this name."""
        own = self.dialect.own(name)
        if own is None:
            return None
        if own.volatile and not self.at_once:
            raise Unsupported(
                f"{name}() is VOLATILE, so a retraction could not equal its insertion",
                where=self.environment.place,
                fix="CREATE FUNCTION .. IMMUTABLE, if it gives the same for the same; or ask it over table(x)",
            )
        values = [self(argument) for argument in arguments]
        return own.function(values, self.known(exp.Null(), pa.null()))

    def operation(self, node: exp.Expr, left: Typed, right: Typed) -> Typed:
        """An operator over operands that are translated."""
        built = self.dialect.operator(node, (left, right))
        if isinstance(built, Typed):
            return built
        if built is not None:
            return self.known(built)
        kind = pa.bool_() if isinstance(node, exp.Predicate) else None
        return self.known(type(node)(this=bracketed(left.tree), expression=bracketed(right.tree)), kind)

    def _operator(self, node: exp.Expr) -> Typed:
        """A chain of operators, ``a + b - c``, from its first operand on: it may be longer than calls can be nested."""
        chain = [node]
        while type(chain[-1].this) in OPERATORS and type(chain[-1].this) not in self.dialect.visits:
            chain.append(chain[-1].this)
        if len(chain) > LONGEST_CHAIN:
            raise too_deep()
        value = self(chain[-1].this)
        for one in reversed(chain):
            value = self._noted(one, partial(self._operated, one, value))
        return value

    def _operated(self, node: exp.Expr, left: Typed) -> Typed:
        result = self.operation(node, left, self(node.expression))
        # NOT LIKE is a LIKE with a mark.
        return self.known(exp.Not(this=bracketed(result.tree)), pa.bool_()) if node.args.get("negate") else result

    def aggregate(self, node: exp.Expr) -> Typed:
        """A call of an aggregate, with its FILTER."""
        given: list[Typed] = []
        distinct = counts_distinct(node)

        def argument(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Star):
                return part.copy()
            given.append(self(part))
            return (self.key if distinct else self.kept)(given[-1]).tree

        tree = aggregate_tree(
            node, argument, lambda term: self.key(self(term)).tree, self.condition, self.environment.place
        )
        called = aggregate_name(node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node)
        made = self._made_of_others(node, called, tree, given[0]) if given else None
        if made is not None:
            return made
        kind = self._aggregate_type(called, tree, given)
        return self.known(self.aggregated(tree, kind, called, self.environment.place), kind)

    def _made_of_others(self, node: exp.Expr, called: str, tree: exp.Expr, value: Typed) -> Typed | None:
        """Of intervals, arrays and rows: what aggregates of other values say of them. None where none is needed."""
        if is_interval(value, self.dialect.rules):
            of_intervals = aggregated_intervals(called, tree, value.tree, self.environment.place)
            return None if of_intervals is None else self.known(of_intervals, INTERVAL)
        if value.is_list or value.is_struct:
            of_all = extreme_of_all(node, tree)
            return None if of_all is None else self.known(of_all, value.known_type)
        return None

    def _aggregate_type(self, called: str, tree: exp.Expr, given: Sequence[Typed]) -> pa.DataType | None:
        of_documents = bool(given) and given[0].known_type == JSON
        if called in DOCUMENTS or (of_documents and called in OF_ONE):
            return JSON
        return pa.list_(JSON) if of_documents and called == "array_agg" else self.environment.aggregate_type(tree)

    def key(self, value: Typed) -> Typed:
        """A value as rows are told apart by it."""
        if is_interval(value, self.dialect.rules):
            return value.of(interval_columns.length(value.tree), interval_columns.LENGTH)
        return self.kept(value)

    def kept(self, value: Typed) -> Typed:
        """A value as a column holds it."""
        return kept(value, self.environment.forms, self.dialect.rules)

    def ordered(self, order: exp.Expr) -> exp.Expr:
        """ORDER BY with its expressions translated."""
        made = order.copy()
        terms = []
        for written in order.expressions:
            value, term = self(written.this), written.copy()
            term.set("this", value.tree)
            terms += in_order_of(self.dialect.rules, value, term)
        made.set("expressions", terms)
        return made


def in_order_of(rules: Rules, value: Typed, term: exp.Expr) -> list[exp.Expr]:
    """The terms of ORDER BY for one of the dialect: Timeplus has NaN beside NULL, where the engine, as PostgreSQL, has
    it above all numbers. Intervals are in the order of their lengths.
    """
    of_text = term.this.meta.get(FORM) == text_forms.INTERVAL
    if of_text or is_interval(value, rules):
        term.set("this", interval_columns.length(interval_columns.read(value.tree) if of_text else value.tree))
        return [term]
    if rules is not Rules.TIMEPLUS or not value.is_float:
        return [term]
    beside = exp.Anonymous(this="isnan", expressions=[value.tree.copy()])
    first = bool(term.args.get("nulls_first"))
    return [exp.Ordered(this=beside, desc=first, nulls_first=first), term]
