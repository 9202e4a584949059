"""What a function takes: each argument in the type of its place, or a refusal that names both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.documents import JSON
from dovetail.sql.functions.registry import Row, Unfit
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import (
    BIG,
    BOOL,
    BYTES,
    DATE,
    DOUBLE,
    INSTANT,
    INT,
    INTERVAL,
    LOCAL,
    TEXT,
    engine_name,
    is_number,
    is_unknown,
    kind_of,
    name_of,
)
from dovetail.sql.functions.typed import Typed, filled
from dovetail.sql.functions.zones import named_zone

_KINDS: Mapping[str, pa.DataType] = {
    "text": TEXT, "int": INT, "bigint": BIG, "double": DOUBLE, "bool": BOOL, "bytes": BYTES, "json": JSON, "date": DATE,
    "timestamp": LOCAL, "instant": INSTANT, "interval": INTERVAL,
}  # fmt: skip
_BECOMES = {
    TEXT: frozenset[pa.DataType](),
    JSON: frozenset({TEXT}),
    LOCAL: frozenset({DATE}),
    INSTANT: frozenset({DATE, LOCAL}),
    DATE: frozenset[pa.DataType](),
}


def argument(value: Typed, place: str) -> Typed:
    """``value`` in the type of its place; ``any`` takes it as it is. Raises Unfit."""
    if place == "any":
        return value
    kind = _KINDS[place]
    have = kind_of(value)
    fits = have == kind or is_unknown(value) or have in _BECOMES.get(kind, ())
    if not fits and is_number(kind):
        fits = is_number(have) and (kind == DOUBLE or pa.types.is_integer(have))
    if not fits:
        raise Unfit(f"takes {_shown(place)}, not {name_of(have)}")
    return cast(value, kind)


def zone_argument(value: Typed) -> exp.Expr:
    """A time zone. Raises Unfit for what is no text, UnknownName for a text in quotes that names none."""
    return named_zone(value if is_unknown(value) else argument(value, "text"))


def _shown(place: str) -> str:
    return {"int": "an integer", "bigint": "an integer", "double": "a number"}.get(place, f"a {place}")


def compiled(row: Row, given: Sequence[Typed]) -> Typed | exp.Expr | str:
    """The call of a row whose arguments are in the types of its places; what a template gives is of the row's type."""
    values = [argument(value, row.place(index)) for index, value in enumerate(given)]
    built = row.built(values)
    if not isinstance(built, str) or row.gives is None:
        return built
    tree = filled(f"CAST({built} AS {engine_name(row.gives)})", [value.tree for value in values])
    return given[0].of(tree, row.gives) if given else tree
