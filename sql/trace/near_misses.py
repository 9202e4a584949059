"""Values that are nearly what is looked for: of another case, between blanks, a number written otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.sql.expressions.evaluate import evaluate, mask
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.trace.demand import Demand, compared, literal

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sought:
    """What one part of a demand says of an expression: that it is among ``values``."""

    expr: Expr
    values: tuple[object, ...]

    @cached_property
    def normal(self) -> frozenset[str]:
        return frozenset(normalised(value) for value in self.values)

    def near(self, rows: pa.Table) -> Mask:
        """Where the value is one of those that are looked for, or nearly."""
        [found] = evaluate(rows, [self.expr.text])
        known = pc.unique(found).to_pylist()
        close = [value for value in known if value is not None and normalised(value) in self.normal]
        return _among(found, pa.array(close, found.type))

    def described(self, rows: pa.Table) -> list[str]:
        """For each row what it has, and what is looked for; '' where these are the same."""
        [found] = evaluate(rows, [self.expr.text])
        return [self._described(value) for value in found.to_pylist()]

    def _described(self, value: object) -> str:
        if value in self.values:
            return ""
        wanted = [one for one in self.values if normalised(one) == normalised(value)]
        return f"{self.expr.readable} is {literal(value)}, and {literal(wanted[0])} is looked for" if wanted else ""


def normalised(value: object) -> str:
    """Equal for values that a person may take for one another."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).strip().lower()
    try:
        return repr(float(text))
    except ValueError:
        return text


def sought(demand: Demand, schema: pa.Schema) -> list[Sought]:
    """The equalities of a demand, over columns of ``schema``; other conditions have no near miss."""
    return [*_of_terms(demand.terms, schema), *_of_sets(demand)]


def _of_terms(terms: tuple[Expr, ...], schema: pa.Schema) -> Iterator[Sought]:
    for term in terms:
        found = compared(term)
        if found is not None:
            yield Sought(Expr.over(found[0].tree, schema), found[1])


def _of_sets(demand: Demand) -> Iterator[Sought]:
    for one in demand.sets:
        for place, expr in enumerate(one.exprs):
            yield Sought(expr, tuple({value[place] for value in one.values} - {None}))


def matched(rows: pa.Table, demand: Demand) -> Mask:
    """The rows that fulfil a demand."""
    found = np.ones(rows.num_rows, dtype=np.bool_)
    for term in demand.terms:
        found &= mask(rows, term.text)
    for one in demand.sets:
        columns = [
            column.cast(expr.type)
            for column, expr in zip(evaluate(rows, [expr.text for expr in one.exprs]), one.exprs, strict=True)
        ]
        for place, column in enumerate(columns):
            values = pa.array({value[place] for value in one.values}, column.type)
            found &= _among(column, values)
        if len(columns) > 1:
            places = np.flatnonzero(found)
            listed = zip(*(column.take(pa.array(places)).to_pylist() for column in columns), strict=True)
            found[places] = [value in one.values for value in listed]
    return found


def almost(rows: pa.Table, demand: Demand, seeks: list[Sought]) -> Mask:
    """The rows that do not fulfil a demand, and would if they had the values that they nearly have."""
    if not seeks or rows.num_rows == 0:
        return np.zeros(rows.num_rows, dtype=np.bool_)
    close = ~matched(rows, demand)
    for one in seeks:
        close &= one.near(rows)
    return close


def _among(column: pa.ChunkedArray, values: pa.Array) -> Mask:
    found: Mask = pc.is_in(column, values).to_numpy()
    return found


def mentions(key: bytes | None, value: bytes | None, seeks: list[Sought], names: dict[str, str]) -> bool:
    """Whether a record that cannot be read is about the values that are looked for, as far as its bytes tell.

    names   internal name → declared name of the columns
    """
    members = _object(key) | _object(value)
    found = False
    for one in seeks:
        name = names.get(one.expr.plain or "")
        if name is None:
            continue
        if name in members:
            if normalised(members[name]) not in one.normal:
                return False
            found = True
            continue
        texts = [str(wanted).encode() for wanted in one.values]
        found |= not members and any(text in (value or b"") + b" " + (key or b"") for text in texts)
        found |= key is not None and normalised(key.decode(errors="replace")) in one.normal
    return found


def _object(text: bytes | None) -> dict[str, object]:
    try:
        found = json.loads(text or b"")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
