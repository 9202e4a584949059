"""Pairs of values that differ in one place, made from the types of their members."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.schema import Column, Included, RecordPart, StreamSchema
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.joins import Apply, UnresolvedJoin
from dovetail.sql.plan.nodes import Join, LookupTable, Node, Scan, Static


class Variant(NamedTuple):
    """``path``: where ``one`` and ``other`` differ, as ``.member[].member``."""

    path: str
    one: Any
    other: Any


_PLAIN: Mapping[object, tuple[Any, Any]] = {
    str: ("x", "y"),
    int: (1, 2),
    bool: (False, True),
    Any: (1, 2),
    pa.DataType: (pa.int64(), pa.string()),
    pa.Schema: (pa.schema({"a": pa.int64()}), pa.schema({"a": pa.string()})),
}
_TWO_COLUMNS = (Column("a", pa.int64()), Column("b", pa.int64()))
_ONE_PART = (Included("c", pa.int64(), RecordPart.KEY),)
_COLUMN_A = (("a", "a"),)
_GIVEN: Mapping[tuple[type, str], Any] = {
    (Scan, "columns"): (*_COLUMN_A, ("c", "c")),
    (StreamSchema, "columns"): _TWO_COLUMNS,
    (StreamSchema, "included"): _ONE_PART,
    (LookupTable, "columns"): _COLUMN_A,
    (LookupTable, "declared"): _TWO_COLUMNS,
}
"""Members that other members of the same object go by."""


def variants_of(kind: type) -> Iterator[Variant]:
    """Of the nodes of a kind: at least one pair for every member, however deep, but for those of its inputs."""
    for path, one, other in _of_members(kind):
        yield Variant(f"{kind.__name__}{path}", one, other)


def variants(hint: Any) -> Iterator[Variant]:
    """Of the values of a type."""
    if hint in _PLAIN:
        yield Variant("", *_PLAIN[hint])
    elif hint is Expr:
        yield Variant("", Expr.column("a", pa.int64()), Expr.column("b", pa.int64()))
        yield Variant(".type", Expr.column("a", pa.int64()), Expr.column("a", pa.int32()))
        yield Variant(".tree", Expr.condition(exp.true()), Expr.condition(exp.false()))
    elif hint == Node:
        yield Variant("", sample(Static), sample(Scan))
    elif hint in get_args(Node):
        yield Variant("", sample(hint), sample(hint, **{"mark" if hint is Join else "alias": "other"}))
    elif get_origin(hint) in (Union, types.UnionType):
        yield from _of_union([arm for arm in get_args(hint) if arm not in (UnresolvedJoin, Apply)])
    elif get_origin(hint) is tuple:
        yield from _of_tuple(get_args(hint))
    elif isinstance(hint, type) and issubclass(hint, StrEnum):
        yield Variant("", *list(hint)[:2])
    elif is_dataclass(hint):
        yield from _of_members(hint)
    else:
        raise AssertionError(f"no values of {hint} are known here: give it two, in _PLAIN or in variants")


def sample(hint: Any, **given: Any) -> Any:
    """A value of the type."""
    if hint is types.NoneType:
        return None
    if not isinstance(hint, type) or not is_dataclass(hint) or hint is Expr:
        return next(variants(hint)).one
    hints = get_type_hints(hint)
    made = {
        one.name: given.get(one.name, _GIVEN.get((hint, one.name), _absent(hints[one.name]))) for one in fields(hint)
    }
    return hint(**made)


def _absent(hint: Any) -> Any:
    if types.NoneType in get_args(hint):
        return None
    return sample(Static) if hint == Node else sample(hint)


def _of_union(arms: list[Any]) -> Iterator[Variant]:
    values = [sample(arm) for arm in arms]
    for one, other in pairwise(values):
        yield Variant("", one, other)
    for arm in arms:
        if arm is not types.NoneType:
            yield from (Variant(f"<{arm.__name__}>{path}", *pair) for path, *pair in variants(arm))


def _of_tuple(arms: tuple[Any, ...]) -> Iterator[Variant]:
    if arms[1:] == (...,):
        yield Variant("", (), (sample(arms[0]),))
        yield from (Variant(f"[]{path}", (one,), (other,)) for path, one, other in variants(arms[0]))
        return
    whole = [sample(arm) for arm in arms]
    for place, arm in enumerate(arms):
        for path, one, other in variants(arm):
            before, after = whole[:place], whole[place + 1 :]
            yield Variant(f"[{place}]{path}", (*before, one, *after), (*before, other, *after))


def _of_members(kind: Any) -> Iterator[Variant]:
    hints = get_type_hints(kind)
    for one in fields(kind):
        given = _GIVEN.get((kind, one.name))
        for path, *values in variants(hints[one.name]) if given is None else _of_columns(given):
            pair = [sample(kind, **{one.name: value}) for value in values]
            yield Variant(f".{one.name}{path}", *pair)


def _of_columns(given: Any) -> Iterator[Variant]:
    """Of members that others go by: what differs is what can differ alone."""
    first, *rest = given
    if not isinstance(first, Column | Included):
        yield Variant("[0]", given, (("other", "a"), *rest))
        yield Variant("[1]", given, (("a", "b"), *rest))
        return
    for path, one, other in variants(type(first)):
        if path != ".name":
            named = [replace(column, name=first.name) for column in (one, other)]
            yield Variant(f"[]{path}", *((column, *rest) for column in named))
