"""The arrays that functions of several rows unnest: ``generate_series(1, 3)`` is ``UNNEST(series_to_array(1, 3))``."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.documents import JSON
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.risingwave.signatures import argument, zone_argument
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import (
    BIG,
    DATE,
    INSTANT,
    INT,
    INTERVAL,
    LOCAL,
    TEXT,
    engine_name,
    is_unknown,
    kind_of,
    name_of,
    quoted,
    typed,
)
from dovetail.sql.functions.sizes import LARGEST
from dovetail.sql.functions.typed import Typed, filled

_BOUND = f"at most {LARGEST:,}; NULL above"
_WHOLE = (
    f"{{series}}({{0}}, CASE WHEN ({{1}}::HUGEINT - {{0}}) // nullif({{2}}, 0) < {LARGEST} THEN {{1}} END, "
    "nullif({2}, 0))"
)
_STEPS = "({1} - {0}) / nullif({2}, 0)"
_EXACT = (
    f"list_filter(list_transform(range(CASE WHEN {_STEPS} BETWEEN 0 AND {LARGEST - 1} THEN "
    f"CAST(floor({_STEPS}) AS BIGINT) + 1 WHEN {_STEPS} < 0 THEN 0 END), "
    "lambda n_: CAST({0} + n_ * {2} AS {kind})), lambda v_: {last})"
)
_TIMES = (
    f"{{series}}({{0}}, CASE WHEN abs(epoch({{1}}) - epoch({{0}})) / nullif(abs(epoch({{2}})), 0) < {LARGEST} "
    "THEN {1} END, {2})"
)


def _series(name: str) -> Build:
    """From the first to the last; ``range`` ends before the last."""

    def build(given: Sequence[Typed]) -> Typed:
        _expect_bounded(given)
        kinds = [kind_of(value) for value in given if not is_unknown(value)]
        if INSTANT in kinds or kinds == [INTERVAL]:
            return _of_instants(name, given)
        if any(kind in (LOCAL, DATE) for kind in kinds):
            return _of_times(name, given)
        if len(given) > 3:
            raise Unfit("takes a zone where it begins with a timestamptz")
        if any(pa.types.is_decimal(kind) for kind in kinds):
            return _of_decimals(name, given, next(kind for kind in kinds if pa.types.is_decimal(kind)))
        for kind in kinds:
            if not pa.types.is_integer(kind):
                raise Unfit(f"takes integers, numerics or timestamps, not {name_of(kind)}")
        gives = BIG if any(kind == BIG for kind in kinds) else INT
        start, stop = (filled("CAST({0} AS BIGINT)", [argument(value, "bigint").tree]) for value in given[:2])
        step = argument(given[2], "bigint").tree if len(given) > 2 else filled("1", [])
        template = f"CAST({_WHOLE.replace('{series}', name)} AS {engine_name(gives)}[])"
        return typed(given[0], template, [start, stop, filled("CAST({0} AS BIGINT)", [step])], pa.list_(gives))

    return build


def _expect_bounded(given: Sequence[Typed]) -> None:
    """Raises Unfit where the numbers are written out and never end, or give more than there may be."""
    numbers = [value.literal for value in given]
    if any(isinstance(one, bool) or not isinstance(one, int | float | Decimal) for one in numbers):
        return
    first, last, step = (Decimal(str(one)) for one in (*numbers, 1)[:3])
    if step == 0:
        raise Unfit("takes a step other than 0")
    if (last - first) / step >= LARGEST:
        raise Unfit(f"gives {LARGEST:,} rows at most")


def _of_decimals(name: str, given: Sequence[Typed], kind: pa.DataType) -> Typed:
    trees = [cast(value, kind).tree for value in given]
    step = trees[2] if len(trees) > 2 else filled(f"CAST(1 AS {engine_name(kind)})", [])
    last = "true" if name == "generate_series" else "v_ <> {1}"
    template = _EXACT.replace("{kind}", engine_name(kind)).replace("{last}", last)
    return typed(given[0], template, [trees[0], trees[1], step], pa.list_(kind))


def _of_instants(name: str, given: Sequence[Typed]) -> Typed:
    """By the clocks of a zone, UTC without one: a day there may have 23 hours."""
    zone = zone_argument(given[3]) if len(given) > 3 else quoted("UTC")
    ends = [
        typed(given[0], "timezone({0}, {1})", [zone, argument(value, "instant").tree], LOCAL) for value in given[:2]
    ]
    local = _of_times(name, [*ends, *given[2:3]])
    template = "list_transform({0}, lambda t_: timezone({1}, t_))"
    return typed(local, template, [local.tree, zone], pa.list_(INSTANT))


def _of_times(name: str, given: Sequence[Typed]) -> Typed:
    if len(given) < 3:
        raise Unfit("takes an interval as its step where it begins with a timestamp")
    start, stop = (cast(value, LOCAL).tree for value in given[:2])
    step = cast(given[2], INTERVAL) if is_unknown(given[2]) else given[2]
    if kind_of(step) != INTERVAL:
        raise Unfit(f"takes an interval as its step, not {name_of(kind_of(step))}")
    template = f"CAST({_TIMES.replace('{series}', name)} AS {engine_name(LOCAL)}[])"
    return typed(given[0], template, [start, stop, step.tree], pa.list_(LOCAL))


def times_before(first: exp.Expr, end: exp.Expr, step: exp.Expr) -> exp.Expr:
    """The array of timestamps without a zone from ``first`` on, each a step later, before ``end``; NULL where there
    would be too many.
    """
    return filled(_TIMES.replace("{series}", "range"), [first, end, step])


def _of_document(template: str, kind: pa.DataType) -> Build:
    def build(given: Sequence[Typed]) -> Typed:
        document = argument(given[0], "json")
        return typed(document, f"CAST({template} AS {engine_name(kind)}[])", [document.tree], pa.list_(kind))

    return build


def _subscripts(given: Sequence[Typed]) -> Typed:
    array = given[0]
    _expect_arrays([array])
    if len(given) > 1 and given[1].literal != 1:
        raise Unfit("counts along the first dimension: 1")
    return typed(array, "CAST(range(1, len({0}) + 1) AS INTEGER[])", [array.tree], pa.list_(INT))


def _ordinals(given: Sequence[Typed]) -> Typed:
    _expect_arrays(given)
    longest = ", ".join(f"len({{{place}}})" for place in range(len(given)))
    return typed(
        given[0], f"CAST(range(1, greatest({longest}) + 1) AS BIGINT[])", [one.tree for one in given], pa.list_(BIG)
    )


def _expect_arrays(given: Sequence[Typed]) -> None:
    for one in given:
        if not (pa.types.is_list(kind_of(one)) or one.is_null):
            raise Unfit(f"takes an array, not {name_of(kind_of(one))}")


_ELEMENTS = "CASE WHEN json_type({0}) = 'ARRAY' THEN json_extract({0}, '$[*]') END"
_ELEMENT_TEXTS = "CASE WHEN json_type({0}) = 'ARRAY' THEN json_extract_string({0}, '$[*]') END"
_MEMBERS = "CASE WHEN json_type({0}) = 'OBJECT' THEN json_extract({0}, '$.*') END"
_MEMBER_TEXTS = "CASE WHEN json_type({0}) = 'OBJECT' THEN json_extract_string({0}, '$.*') END"
_KEYS = "CASE WHEN json_type({0}) = 'OBJECT' THEN json_keys({0}) END"

FUNCTIONS: Table = (
    Row("series_to_array(first, last[, step[, zone]])", f"what generate_series gives, {_BOUND}",
        _series("generate_series")),
    Row("range_to_array(first, end[, step[, zone]])", f"what range gives, which ends before its end; {_BOUND}",
        _series("range")),
    Row("subscripts_to_array(array[, 1])", "the places of the elements, from 1", _subscripts),
    Row("ordinals_to_array(array, ..)", "1, 2, .. to the length of the longest", _ordinals),
    Row("jsonb_to_array(array)", "the elements of a JSON array", _of_document(_ELEMENTS, JSON)),
    Row("jsonb_to_text_array(array)", "the elements of a JSON array as texts", _of_document(_ELEMENT_TEXTS, TEXT)),
    Row("jsonb_keys(object)", "the names of the members", _of_document(_KEYS, TEXT)),
    Row("jsonb_values(object)", "the values of the members", _of_document(_MEMBERS, JSON)),
    Row("jsonb_text_values(object)", "the values of the members as texts", _of_document(_MEMBER_TEXTS, TEXT)),
)  # fmt: skip
