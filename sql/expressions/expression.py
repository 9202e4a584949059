"""An expression of a plan: what the engine is to compute from the columns of a node, as a tree, and its type.

The binder makes the trees; they are printed where they leave the plan, for the hosts and for EXPLAIN. Until then they
are compared as trees: brackets, quotes and the case of a call's name are only how a tree is written.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions import engine
from dovetail.sql.expressions.evaluate import engine_type, readable
from dovetail.sql.expressions.misfits import EngineRefused, refused_part
from dovetail.sql.expressions.times.timestamp_precision import with_precision

Structure = Hashable
"""Equal for trees that compute the same in the same way."""

KIND = "type"
"""The key in the metadata of a tree under which its type stands, where the engine could not tell it."""

FORM = "form"
"""The key under which the form of its texts stands, one of ``changelog.formats.text_forms``."""

_MARKS = frozenset({"big_int", "safe", "typed"})
"""What the parser notes on a node beside its parts; a node that is built by hand has none of it."""


@dataclass(frozen=True, eq=False)
class Expr:
    """A value. ``tree`` is never changed: whoever builds on it takes a copy.

    type  that of the column which holds the value; the value is cast to it, where its own is another one
    """

    tree: exp.Expr
    type: pa.DataType

    @staticmethod
    def column(name: str, kind: pa.DataType, form: str = "") -> Expr:
        tree = column_named(name)
        return Expr(of_form(tree, form) if form else tree, kind)

    @staticmethod
    def condition(tree: exp.Expr) -> Expr:
        return Expr(tree, pa.bool_())

    @staticmethod
    def over(tree: exp.Expr, schema: pa.Schema, place: str = "") -> Expr:
        """With the type that the engine gives ``tree`` over rows of ``schema``, a time as fine as it is; a plain column
        keeps its own.

        Raises UnknownName for a function that the engine does not have, SqlError for one that does not fit its
        arguments.
        """
        if (known := tree.meta.get(KIND)) is not None:
            return Expr(tree, known)
        untyped = Expr(tree, pa.null())
        if (plain := untyped.plain) is not None:
            return untyped.held_as(schema.field(plain).type)
        try:
            kind = _engine_type(without_subqueries(tree), schema, place)
        except EngineRefused as fault:
            types = dict(zip(schema.names, schema.types, strict=True))
            raise refused_part(tree, types, lambda part: _engine_type(part, schema, place), fault) from None
        return untyped.held_as(with_precision(kind, tree, schema))

    def held_as(self, kind: pa.DataType) -> Expr:
        """The value in a column of another type."""
        return self if kind == self.type else Expr(self.tree, kind)

    def substituted(self, by_column: Mapping[str, Expr]) -> Expr:
        """The expression with columns replaced by other expressions."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if not _is_read(node, None) or node.name not in by_column:
                return node
            other = by_column[node.name].tree.copy()
            return other if isinstance(other, exp.Column | exp.Literal) else exp.Paren(this=other)

        return Expr(self.tree.transform(replaced), self.type)

    @cached_property
    def structure(self) -> Structure:
        return structure(self.tree)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_read(self.tree)

    @cached_property
    def plain(self) -> str | None:
        """The column that it merely names, if that is all it does."""
        return self.tree.name if isinstance(self.tree, exp.Column) else None

    @property
    def form(self) -> str:
        """Of its texts, one of ``changelog.formats.text_forms``; '' where they have none."""
        return str(self.tree.meta.get(FORM, ""))

    @cached_property
    def text(self) -> str:
        """The engine's SQL."""
        return engine.text(self.tree)

    @cached_property
    def readable(self) -> str:
        return readable(self.text)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr) or hash(self) != hash(other):
            return False
        return bool(self.type == other.type) and self.structure == other.structure

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.structure)

    def __repr__(self) -> str:
        return f"Expr({self.text}, {self.type})"


def of_form(tree: exp.Expr, form: str) -> exp.Expr:
    """``tree``, noted as one whose texts are of ``form``."""
    tree.meta[FORM] = form
    return tree


def as_formed(tree: exp.Expr, before: exp.Expr) -> exp.Expr:
    """``tree``, noted as of the form of ``before``, which it is with parts of it replaced."""
    return of_form(tree, before.meta[FORM]) if FORM in before.meta else tree


def coalesce(*values: Expr) -> exp.Expr:
    """The first of the values that is not NULL."""
    return exp.Anonymous(this="COALESCE", expressions=[value.tree.copy() for value in values])


def equality(left: Expr, right: Expr) -> exp.Expr:
    return exp.EQ(this=left.tree.copy(), expression=right.tree.copy())


def without_subqueries(tree: exp.Expr) -> exp.Expr:
    """The tree with a value of its type in the place of each subquery, whose names are its own."""
    if tree.find(exp.Query, exp.Exists) is None:
        return tree
    return tree.copy().transform(lambda node: node if (kind := node.meta.get(KIND)) is None else null_of(kind))


def null_of(kind: pa.DataType) -> exp.Expr:
    if pa.types.is_null(kind):
        return exp.Null()
    return exp.Cast(this=exp.Null(), to=exp.DataType.build(engine.type_name(kind), dialect="duckdb"))


def columns_read(tree: exp.Expr) -> tuple[str, ...]:
    """The columns that a tree reads, in order of appearance; those that a subquery in it reads are its own affair."""
    return tuple(dict.fromkeys(node.name for node in tree.find_all(exp.Column, bfs=False) if _is_read(node, tree)))


def structure(tree: exp.Expr) -> Structure:
    """What a tree is, apart from how it is written."""
    while (inner := tree.unnest()) is not tree:
        tree = inner
    if isinstance(tree, exp.Identifier):
        return exp.Identifier, tree.name
    parts = ((name, _part(tree, tree.args[name])) for name in sorted(tree.args) if name not in _MARKS)
    return type(tree), *((name, part) for name, part in parts if part is not None and part is not False and part != ())


def _part(tree: exp.Expr, part: object) -> Structure:
    if isinstance(part, exp.Expr):
        return structure(part)
    if isinstance(part, list):
        return tuple(structure(one) if isinstance(one, exp.Expr) else one for one in part)
    return part.lower() if isinstance(part, str) and isinstance(tree, exp.Anonymous) else part


def _is_read(node: exp.Expr, root: exp.Expr | None) -> bool:
    """Whether a node below ``root`` is a column of the rows, rather than the argument of a lambda around it.

    A lambda above ``root`` does not count: in the body of ``x -> x + 1`` by itself ``x`` is a column.
    """
    if not isinstance(node, exp.Column):
        return False
    around: exp.Expr | None = node
    while around is not None and around is not root:
        around = around.parent
        if isinstance(around, exp.Query):
            return False
        # ``entry.key`` is a field of the argument ``entry``.
        if isinstance(around, exp.Lambda) and node.parts[0].name in {argument.name for argument in around.expressions}:
            return False
    return True


@lru_cache(maxsize=4096)
def _engine_type(tree: exp.Expr, schema: pa.Schema, place: str) -> pa.DataType:
    reads = tuple((name, schema.field(name).type) for name in columns_read(tree))
    return engine_type(engine.text(tree), reads, place)


def column_named(name: str) -> exp.Expr:
    """The column of that name, as it is."""
    return exp.column(exp.to_identifier(name, quoted=True))
