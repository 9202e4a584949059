"""The rows of a stream that is generated, batch by batch, and how many of them a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.changelog.formats.members import Member
from dovetail.changelog.formats.text_forms import UUID
from dovetail.changelog.schema import Column
from dovetail.changelog.suggest import suggestion
from dovetail.sql.datagen.fields import (
    GeneratedValues,
    Moment,
    Options,
    constant,
    least_last,
    time_of_making,
    uuids,
    values_of,
)
from dovetail.sql.datagen.random_expressions import RandomExpressions
from dovetail.sql.syntax.statements import FIELDS, CreateStream, Setting

_RATES = ("datagen.rows.per.second", "eps", "rows-per-second")
"""As RisingWave, Timeplus and Flink call it."""
_DEFAULT_RATE = 10.0
_RANDOM_RATE = 1000.0
"""Of CREATE RANDOM STREAM, which has as many as it can elsewhere."""
_MOST_RATE = 1_000_000.0
_EVERY_S = 0.1
_COUNT = "number-of-rows"
_WHERE = "WITH, SETTINGS"


@dataclass(frozen=True)
class RowGenerator:
    """The rows of one stream.

    fields       the columns that options make
    expressions  the columns that expressions make; None where there are none
    rate         rows a second
    every_s      how often some are made
    last         the number of the last row; None where there is no end
    """

    columns: tuple[Column, ...]
    fields: Mapping[str, GeneratedValues]
    expressions: RandomExpressions | None
    rate: float
    every_s: float
    last: int | None

    @staticmethod
    def of(stream: CreateStream) -> RowGenerator:
        """Raises SqlError for options that make no rows."""
        options = _options(stream)
        expressed = RandomExpressions.of(stream.expressions, stream.columns) if stream.expressions else None
        fields = {
            column.name: _values(column, options[column.name])
            for column in stream.columns
            if column.name not in stream.expressions
        }
        count = stream.settings.get(_COUNT)
        ends = [least_last(list(fields.values())), None if count is None else _whole(_COUNT, count) - 1]
        return RowGenerator(
            stream.columns,
            fields,
            expressed,
            _rate(stream),
            _whole("interval_time", stream.settings.get("interval_time", int(_EVERY_S * 1000))) / 1000,
            min((end for end in ends if end is not None), default=None),
        )

    def rows(self, first: int, count: int, moment: Moment) -> pa.Table:
        """``count`` rows from the row ``first`` on, with the declared columns."""
        numbers = np.arange(first, first + count)
        found = {} if self.expressions is None else self.expressions.of_rows(numbers, moment)
        found |= {name: values.of(numbers, moment) for name, values in self.fields.items()}
        return pa.table({column.name: found[column.name] for column in self.columns})

    def due(self, first: int, wanted: int) -> int:
        """How many of ``wanted`` rows from ``first`` on there are."""
        return wanted if self.last is None else max(min(wanted, self.last + 1 - first), 0)


def _options(stream: CreateStream) -> dict[str, Options]:
    """By column. Raises UnknownName for options of a column that there is not."""
    given: dict[str, dict[str, Setting]] = {column.name: {} for column in stream.columns}
    folded = {name.casefold(): name for name in given}
    for setting, value in stream.settings.items():
        if not setting.startswith(FIELDS):
            continue
        column = next((name for name in folded if setting.startswith(f"{FIELDS}{name}.")), None)
        if column is None:
            named = setting.removeprefix(FIELDS).partition(".")[0]
            fix = suggestion(named, given)
            raise UnknownName(f'"{stream.name}" has no column "{named}"', where=setting, fix=fix)
        given[folded[column]][setting.removeprefix(f"{FIELDS}{column}.")] = value
    return {name: Options(name, found) for name, found in given.items()}


def _values(column: Column, options: Options) -> GeneratedValues:
    """By its options; without any, what its DEFAULT says."""
    if not options.given and column.record_time is not None:
        return time_of_making(column.type)
    if not options.given and column.default is not None:
        return constant(Member.of(column).default, column.type)
    if column.form == UUID and not options.given:
        return uuids(options.chance)
    return values_of(options, column.type)


def _rate(stream: CreateStream) -> float:
    name = next((name for name in _RATES if name in stream.settings), "")
    if not name:
        return _RANDOM_RATE if stream.expressions else _DEFAULT_RATE
    try:
        found = float(stream.settings[name])
    except ValueError:
        found = 0.0
    if not 0 < found <= _MOST_RATE:
        raise SqlError(
            f"{name} cannot be {stream.settings[name]!r}", where=_WHERE, fix=f"above 0, up to {_MOST_RATE:,.0f}"
        )
    return found


def _whole(name: str, value: Setting) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text)):
        raise SqlError(f"{name} cannot be {value!r}", where=_WHERE, fix="a whole number from 1 on")
    return int(text)
