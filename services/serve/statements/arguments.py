"""The values of parameters, as JSON has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal

from pydantic import Field

from dovetail.services.serve.refusals import RequestRefused
from dovetail.sql.syntax.parameters.bound_literals import Arguments

TYPED: Mapping[str, tuple[Callable[[str], object], str]] = {
    "decimal": (Decimal, '{"decimal": "12.50"}'),
    "date": (date.fromisoformat, '{"date": "2026-01-31"}'),
    "time": (datetime.fromisoformat, '{"time": "2026-01-31T12:00:00.5Z"}'),
}
"""What JSON has no type for: an object with one member, and how it is read."""


_Typed = Annotated[dict[Literal["decimal", "date", "time"], str], Field(min_length=1, max_length=1)]
_Value = str | int | float | bool | _Typed | None
Written = list[_Value] | dict[str, _Value]
"""As OpenAPI has them."""


def arguments_of(given: object) -> Arguments:
    """Raises RequestRefused for what is neither an array nor an object, and for an object that is no value."""
    match given:
        case list():
            return [_value(value, f"arguments[{place}]") for place, value in enumerate(given)]
        case dict():
            return {name: _value(value, f"arguments.{name}") for name, value in given.items()}
    raise RequestRefused(
        'the member "arguments" is neither an array nor an object',
        where="body",
        fix='send the values of ? as [1, "x"], those of :name as {"name": 1}',
    )


def _value(value: object, where: str) -> object:
    if not isinstance(value, dict):
        return value
    for kind, (read, written) in TYPED.items():
        text = value.get(kind)
        if len(value) == 1 and isinstance(text, str):
            try:
                return read(text)
            except (ValueError, InvalidOperation):
                raise RequestRefused(f"{text!r} is no {kind}", where=where, fix=f"send {written}") from None
    forms = ", ".join(written for _, written in TYPED.values())
    raise RequestRefused("an object is no value", where=where, fix=f"send a plain value, or one of {forms}")
