"""What a function takes: the kinds of arguments that a row names, and what must be written out.

Timeplus takes a value as it is, or refuses it; how RisingWave casts it is in ``risingwave.signatures``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from dovetail.sql.functions.registry import Build, Row, Unfit
from dovetail.sql.functions.typed import Typed


def whole(value: Typed) -> bool:
    """Whether it counts as an integer: a truth value is 0 or 1."""
    return value.is_integer or value.is_boolean


_KINDS: Mapping[str, tuple[Callable[[Typed], bool], str]] = {
    "text": (lambda value: value.is_text, "a text, not a {}"),
    "number": (lambda value: value.is_number or value.is_boolean, "numbers, not {}"),
    "integer": (whole, "whole numbers"),
    "array": (lambda value: value.is_list, "an array, not a {}"),
}
"""Kind -> whether a value is one, and what is said where it is none. NULL is of every kind."""


def expect(kind: str, *values: Typed) -> None:
    """Raises Unfit for a value of another kind."""
    fits, wanted = _KINDS[kind]
    for value in values:
        if not (value.is_null or fits(value)):
            raise Unfit(f"takes {wanted.format(value.family)}")


def checked(check: Callable[..., None], template: str) -> Build:
    """``template`` over arguments that ``check`` does not refuse."""

    def build(arguments: Sequence[Typed]) -> str:
        check(*arguments)
        return template

    return build


def compiled(row: Row, arguments: Sequence[Typed]) -> Typed | exp.Expr | str:
    """The call of a row whose arguments are what it takes."""
    for index, value in enumerate(arguments):
        if (kind := row.place(index)) != "any":
            expect(kind, value)
    return row.built(arguments)


def written_text(value: Typed, what: str) -> str:
    """The text of a literal. Raises Unfit for what is computed."""
    if not isinstance(value.literal, str):
        raise Unfit(f"takes {what} as a text that is written out")
    return value.literal


def trees_of(values: Sequence[Typed]) -> list[exp.Expr]:
    return [value.tree for value in values]
