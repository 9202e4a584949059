"""Typed trees: an expression as the engine computes it, with the type of its value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions import engine

TypeOf = Callable[[exp.Expr], pa.DataType]
"""The type that the engine gives a tree."""

Literal = str | int | float | bool


@dataclass
class Typed:
    """``tree`` in the engine's SQL. Its type is told where it is known, else the engine is asked, when it is needed.

    literal  the value, where the user wrote one: some functions take nothing else
    zone     the time zone that a time was put into: its parts and its text are of this zone
    """

    tree: exp.Expr
    ask: TypeOf
    known_type: pa.DataType | None = None
    literal: Literal | None = None
    zone: str | None = None

    @property
    def type(self) -> pa.DataType:
        if self.known_type is None:
            self.known_type = self.ask(self.tree)
        return _stored(self.known_type)

    def of(self, tree: exp.Expr, kind: pa.DataType | None = None) -> Typed:
        """Another tree over the same rows."""
        return Typed(tree, self.ask, kind)

    @property
    def is_integer(self) -> bool:
        return bool(pa.types.is_integer(self.type))

    @property
    def is_unsigned(self) -> bool:
        return bool(pa.types.is_unsigned_integer(self.type))

    @property
    def is_float(self) -> bool:
        return bool(pa.types.is_floating(self.type))

    @property
    def is_decimal(self) -> bool:
        return bool(pa.types.is_decimal(self.type))

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.is_float or self.is_decimal

    @property
    def is_boolean(self) -> bool:
        return bool(pa.types.is_boolean(self.type))

    @property
    def is_text(self) -> bool:
        return bool(pa.types.is_string(self.type) or pa.types.is_large_string(self.type))

    @property
    def is_date(self) -> bool:
        return bool(pa.types.is_date(self.type))

    @property
    def is_instant(self) -> bool:
        return bool(pa.types.is_timestamp(self.type))

    @property
    def is_list(self) -> bool:
        return bool(pa.types.is_list(self.type) or pa.types.is_large_list(self.type))

    @property
    def is_map(self) -> bool:
        return bool(pa.types.is_map(self.type))

    @property
    def is_struct(self) -> bool:
        return bool(pa.types.is_struct(self.type))

    @property
    def is_null(self) -> bool:
        return bool(pa.types.is_null(self.type))

    @property
    def family(self) -> str:
        """What it is, as an error says it."""
        for what in ("number", "boolean", "text", "date", "instant", "list", "map", "struct"):
            if getattr(self, f"is_{what}"):
                return {"instant": "time", "struct": "tuple", "list": "array"}.get(what, what)
        return str(self.type)


def _stored(kind: pa.DataType) -> pa.DataType:
    """What an extension type adds (a text that is a JSON document) matters to functions alone."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_list(kind):
        return pa.list_(_stored(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    return kind


_ATOMS = (exp.Column, exp.Literal, exp.Anonymous, exp.Paren, exp.Null, exp.Boolean, exp.Array, exp.Cast, exp.Lambda)
_BINDING = (
    *(exp.Binary, exp.Not, exp.Neg, exp.BitwiseNot, exp.Bracket, exp.Between, exp.In, exp.AtTimeZone, exp.Slice),
    *(exp.Ordered, exp.Interval),
)
"""What a part of must be in brackets, lest it be read another way."""
_PLACE = re.compile(r"\{(\d+|\*)\}")


def bracketed(tree: exp.Expr) -> exp.Expr:
    """``tree`` as a part of another one, in brackets wherever they could matter."""
    return tree.copy() if isinstance(tree, _ATOMS) else exp.Paren(this=tree.copy())


def filled(template: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """The engine's SQL with arguments in its places ``{0}``, ``{1}``, ..; ``{*}``, in a list, is all of them."""
    tree = _template(template).copy()
    for place in list(tree.find_all(exp.Column)):
        if place.name == "arg_all":
            _spread(place, arguments)
        elif place.name.startswith("arg_"):
            part = arguments[int(place.name.removeprefix("arg_"))]
            if place is tree:
                return part.copy()
            place.replace(bracketed(part) if isinstance(place.parent, _BINDING) else part.copy())
    return tree


def _spread(place: exp.Expr, arguments: Sequence[exp.Expr]) -> None:
    parent = place.parent
    assert parent is not None
    before = [part for part in parent.expressions if part is not place]
    position = next(index for index, part in enumerate(parent.expressions) if part is place)
    parent.set("expressions", [*before[:position], *(one.copy() for one in arguments), *before[position:]])


@lru_cache(maxsize=4096)
def _template(template: str) -> exp.Expr:
    return engine.parsed(_PLACE.sub(lambda found: "arg_all" if found[1] == "*" else f"arg_{found[1]}", template))


def places(template: str) -> int | None:
    """How many arguments a template takes; None for ``{*}``."""
    found = [place[1] for place in _PLACE.finditer(template)]
    if "*" in found:
        return None
    return max((int(place) + 1 for place in found), default=0)


def once(value: exp.Expr, name: str, template: str, arguments: Sequence[exp.Expr] = ()) -> exp.Expr:
    """A template over ``name``, which stands for a value that is computed once."""
    body = filled(template, arguments)
    return filled(f"list_extract(list_transform([{{0}}], lambda {name}: {{1}}), 1)", [value, body])
