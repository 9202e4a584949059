"""Types whose values can be compared, or stand in one column: numbers with numbers, times with dates, as in ClickHouse.

The engine casts what it finds beside each other, a text to a number, and what cannot be cast is NULL.
A text that is written out stands for the value that it is beside any type: ``at > '2026-01-01'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, product

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.misfits import column_name
from dovetail.sql.expressions.written_values import is_value
from dovetail.sql.functions.typed import Typed
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import display

_FAMILIES = {"boolean": "number", "date": "time"}
_NESTED = {"array", "tuple", "map"}
_KNOWN = ("number", "text", "time", *sorted(_NESTED))
"""Those whose values are never those of another."""


def expect_comparable(left: Typed, right: Typed) -> None:
    """Raises SqlError for two values of types that have no comparison."""
    if not _alike(left, right):
        raise SqlError(f"{_shown(left)} cannot be compared with {_shown(right)}", fix=_comparison(left, right))


def expect_one_type(values: Sequence[Typed], what: str) -> None:
    """Raises SqlError for values that no one type has, of which each is one that ``what`` gives."""
    texts = [value for value in values if isinstance(value.literal, str)]
    # One of each type: a CASE may have hundreds of branches.
    kinds = {value.type: value for value in values if not isinstance(value.literal, str)}
    for left, right in chain(combinations(kinds.values(), 2), product(kinds.values(), texts)):
        if not (_alike(left, right) and _is_read(left, right) and _is_read(right, left)):
            both = f"{_shown(left)} and {_shown(right)}"
            raise SqlError(f"{what} gives {both}, which have no type in common", fix=_as_texts(left, right))


def expect_element(array: Typed, value: Typed) -> None:
    """Raises SqlError for a value that the elements of an array are never equal to."""
    if not array.is_list:
        return
    element = array.of(exp.Null(), array.type.value_type)
    if not (_alike(element, value) and _is_read(value, element)):
        raise SqlError(
            f"{_shown(array)} holds no {_shown(value)}", fix=f"an element is of type {_shown(element)}: CAST(x AS type)"
        )


def _alike(left: Typed, right: Typed) -> bool:
    one, other = _family(left), _family(right)
    if one not in _KNOWN or other not in _KNOWN:
        return True
    if isinstance(left.literal, str) or isinstance(right.literal, str):
        # Beside a column a text has a refusal of its own, which names the column.
        refused = _NESTED & {one, other} or (left.literal is not None and right.literal is not None)
        return not refused or (_is_read(left, right) and _is_read(right, left))
    if one != other:
        return False
    constant = not (left.tree.find(exp.Column) and right.tree.find(exp.Column))
    return _alike_within(left.type, right.type, constant)


def _alike_within(left: pa.DataType, right: pa.DataType, constant: bool) -> bool:
    """As ``_alike``, of what arrays and tuples hold, where a text beside a ``constant`` may be read as its type."""
    if pa.types.is_list(left) and pa.types.is_list(right):
        return _alike_within(left.value_type, right.value_type, constant=False)
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        same = left.num_fields == right.num_fields
        pairs = zip(left, right, strict=False)
        return same and all(_alike_within(one.type, other.type, constant) for one, other in pairs)
    one, other = (_family_of(kind) for kind in (left, right))
    if one == other or one not in _KNOWN or other not in _KNOWN:
        return True
    return constant and "text" in (one, other) and not _NESTED & {one, other}


def _is_read(text: Typed, beside: Typed) -> bool:
    """Whether a text that is written out is a value of the type beside it."""
    literal = text.literal
    return not isinstance(literal, str) or beside.is_text or beside.is_null or is_value(literal, beside.type)


def _family(value: Typed) -> str:
    return _FAMILIES.get(value.family, value.family)


def _family_of(kind: pa.DataType) -> str:
    return _family(Typed(exp.Null(), lambda _: kind, kind))


def _shown(value: Typed) -> str:
    written, kind = _written(value), display(value.type, Rules.TIMEPLUS)
    return f"{written} ({kind})" if written else kind


def _written(value: Typed) -> str:
    """A column or a literal as the user has it; '' for all else."""
    tree = value.tree.unnest()
    return tree.sql() if isinstance(tree, exp.Literal) else column_name(tree)


def _comparison(left: Typed, right: Typed) -> str:
    for one, other in ((left, right), (right, left)):
        if one.is_list and _alike(one.of(exp.Null(), one.type.value_type), other):
            return f"ask for an element: has({_written(one) or 'array'}, {_written(other) or 'x'})"
        if _family(one) == "time" and other.is_number:
            return f"compare seconds: to_unix_timestamp({_written(one) or 'time'})"
    return _as_texts(left, right)


def _as_texts(left: Typed, right: Typed) -> str:
    cast = [f"to_string({_written(value) or 'x'})" for value in (left, right) if not value.is_text]
    return f"as texts: {' and '.join(dict.fromkeys(cast))}"
