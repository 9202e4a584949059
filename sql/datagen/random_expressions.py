"""The columns of a RANDOM STREAM: expressions in which ``rand()`` and its like, and the clock, differ from row to row.

Elsewhere such a call is refused, since a row could not be taken back as it came. Here each call is a column of random
numbers, and the expressions are those of any query over it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import numpy as np
import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.formats import decimal_text
from dovetail.changelog.schema import Column, Kind
from dovetail.changelog.wording import type_words
from dovetail.sql.compile.snapshot import Snapshot
from dovetail.sql.datagen.chance import Chance, Numbers
from dovetail.sql.datagen.fields import GeneratedValues, Made, Moment, Options, time_of_making, uuids, values_of
from dovetail.sql.planner import recompute
from dovetail.sql.relations import Named, Stream
from dovetail.sql.syntax.calls import registered_name
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateFunction, CreateStream, Index, Select
from dovetail.sql.syntax.types import arrow

_WHERE = "CREATE RANDOM STREAM"
_ROWS = "__rows"
_MOST_LETTERS = 10_000


@dataclass(frozen=True)
class _Drawn:
    """The values of one call."""

    type: pa.DataType
    values: GeneratedValues


@dataclass(frozen=True)
class _Rows:
    """The relation that the expressions are over, and no other: its columns are the calls."""

    definition: CreateStream
    written: Stream | None = None

    def get(self, name: str) -> Named:
        if name == _ROWS:
            return self
        raise UnknownName(f'an expression of a random stream reads no relation, and "{name}" is one', where=_WHERE)

    def indexes(self, _stream: str) -> Sequence[Index]:
        return ()

    def function(self, _name: str) -> CreateFunction | None:
        return None


@dataclass(frozen=True)
class RandomExpressions:
    """Some columns of a RANDOM STREAM, computed together."""

    calls: Mapping[str, _Drawn]
    query: Snapshot
    columns: Mapping[str, pa.DataType]

    @staticmethod
    def of(trees: Mapping[str, exp.Expr], columns: Sequence[Column]) -> RandomExpressions:
        """``trees``: by column. Raises SqlError for what cannot be computed, or does not fit its column."""
        calls: dict[str, _Drawn] = {}
        select = exp.Select()
        for name, tree in trees.items():
            _refuse_columns(name, tree)
            found = tree.copy().transform(partial(_with_columns, calls=calls, column=name))
            select.append("expressions", exp.alias_(found, name, quoted=True))
        select = select.from_(exp.to_identifier(_ROWS, quoted=True))
        inputs = [Column("__row", pa.int64()), *(Column(name, drawn.type) for name, drawn in calls.items())]
        rows = CreateStream(_ROWS, tuple(inputs), Kind.APPEND, Rules.TIMEPLUS)
        query = recompute(_ROWS, Select(select, settings={"dialect": Rules.TIMEPLUS.value}), _Rows(rows))
        types = {column.name: column.type for column in columns if column.name in trees}
        made = RandomExpressions(calls, query, types)
        made.of_rows(np.arange(3), Moment(0, 0))
        return made

    def of_rows(self, numbers: Numbers, moment: Moment) -> dict[str, pa.Array]:
        """The values by column. Raises SqlError for one that does not fit."""
        drawn = {name: call.values.of(numbers, moment) for name, call in self.calls.items()}
        found = self.query.run({_ROWS: pa.table({"__row": numbers, **drawn})})
        if len(found) != len(numbers):
            raise SqlError("an aggregate makes one row of many", where=_WHERE, fix="write what each row has by itself")
        return {name: _fitted(found[name], kind, name) for name, kind in self.columns.items()}


def _refuse_columns(name: str, tree: exp.Expr) -> None:
    for column in tree.find_all(exp.Column):
        raise SqlError(
            f'the expression of "{name}" reads "{column.name}", and no column is made of another',
            where=_WHERE,
            fix="a view computes one from others: CREATE VIEW v AS SELECT ..",
        )


def _fitted(values: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.Array:
    try:
        return decimal_text.cast(values, kind, safe=not pa.types.is_integer(kind)).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise SqlError(
            f'the expression of "{name}" is {type_words(values.type)}, and the column is {type_words(kind)}',
            where=_WHERE,
            fix=f"CAST(.. AS {type_words(kind)}), or another type of the column",
        ) from None


def _with_columns(node: exp.Expr, calls: dict[str, _Drawn], column: str) -> exp.Expr:
    """A column for each call, which is another one wherever it stands."""
    build = _CALLS.get(registered_name(node)) if isinstance(node, exp.Func) else None
    if build is None:
        return node
    place = f"__drawn_{len(calls)}"
    arguments = [_argument(node, one) for one in node.expressions]
    calls[place] = build(_Call(registered_name(node), arguments, Chance.of(column, len(calls))))
    return exp.column(place, quoted=True)


def _argument(call: exp.Expr, tree: exp.Expr) -> float | str:
    negative = isinstance(tree, exp.Neg)
    literal = tree.this if negative else tree
    if not isinstance(literal, exp.Literal):
        raise Unsupported(
            f"{call.sql()} has an argument that is no constant", where=_WHERE, fix="rand() % 100, rand_uniform(0, 1)"
        )
    if literal.is_string:
        return str(literal.this)
    return -float(literal.this) if negative else float(literal.this)


@dataclass(frozen=True)
class _Call:
    name: str
    arguments: Sequence[float | str]
    chance: Chance

    def numbers(self, *names: str) -> list[float]:
        """The arguments, which are so many numbers."""
        found = [one for one in self.arguments if not isinstance(one, str)]
        if len(found) != len(names) or len(self.arguments) != len(names):
            self.refuse(f"takes {', '.join(names) or 'no argument'}")
        return found

    def refuse(self, what: str) -> NoReturn:
        raise SqlError(f"{self.name} {what}", where=_WHERE)


def _drawn(kind: pa.DataType, make: Callable[[Numbers], object]) -> _Drawn:
    return _Drawn(kind, Made(lambda numbers, _: pa.array(make(numbers), kind)))


def _whole(kind: pa.DataType) -> Callable[[_Call], _Drawn]:
    """All values of an unsigned type. An argument tells calls apart that would be one in ClickHouse."""

    def build(call: _Call) -> _Drawn:
        if len(call.arguments) > 1:
            call.refuse("takes at most one argument")
        shift = np.uint64(64 - kind.bit_width)
        return _drawn(kind, lambda numbers: call.chance.bits(numbers) >> shift)

    return build


def _canonical(call: _Call) -> _Drawn:
    call.numbers()
    return _drawn(pa.float64(), call.chance.fractions)


def _uniform(call: _Call) -> _Drawn:
    least, most = call.numbers("the least", "the greatest")
    return _drawn(pa.float64(), lambda numbers: least + call.chance.fractions(numbers) * (most - least))


def _normal(call: _Call) -> _Drawn:
    """By Box and Muller."""
    mean, deviation = call.numbers("the mean", "the standard deviation")
    angles = Chance(call.chance.seed ^ 1)

    def make(numbers: Numbers) -> object:
        radius = np.sqrt(-2 * np.log1p(-call.chance.fractions(numbers)))
        return mean + deviation * radius * np.cos(2 * np.pi * angles.fractions(numbers))

    return _drawn(pa.float64(), make)


def _exponential(call: _Call) -> _Drawn:
    [rate] = call.numbers("the rate")
    if rate <= 0:
        call.refuse("takes a rate above 0")
    return _drawn(pa.float64(), lambda numbers: -np.log1p(-call.chance.fractions(numbers)) / rate)


def _bernoulli(call: _Call) -> _Drawn:
    [chance_of_one] = call.numbers("the probability of 1")
    if not 0 <= chance_of_one <= 1:
        call.refuse("takes a probability from 0 to 1")
    return _drawn(pa.uint64(), lambda numbers: (call.chance.fractions(numbers) < chance_of_one).astype(np.uint64))


def _text(call: _Call) -> _Drawn:
    [length] = call.numbers("the number of letters")
    if not 1 <= length <= _MOST_LETTERS:
        call.refuse(f"takes a number from 1 to {_MOST_LETTERS:,}")
    count = int(length)
    return _drawn(pa.string(), lambda numbers: call.chance.letters(numbers, count).astype(f"U{count}"))


def _uuid(call: _Call) -> _Drawn:
    return _Drawn(pa.string(), uuids(call.chance))


def _in_type(call: _Call) -> _Drawn:
    """A value of the named type; a second argument bounds a number from above, and is not reached."""
    name, *bounds = call.arguments or [""]
    if not isinstance(name, str) or not name or len(bounds) > 1 or any(isinstance(one, str) for one in bounds):
        call.refuse("takes the name of a type, and for a number what it stays below")
    kind = arrow(name, Rules.TIMEPLUS)
    most = {"max": float(bounds[0]) - (1 if pa.types.is_integer(kind) else 0)} if bounds else {}
    given = {name: f"{value:g}" if value % 1 else f"{value:.0f}" for name, value in most.items()}
    values = values_of(Options(call.name, given, call.chance.seed), kind)
    return _Drawn(kind, values)


def _clock(kind: pa.DataType) -> Callable[[_Call], _Drawn]:
    return lambda _: _Drawn(kind, time_of_making(kind))


_SECONDS, _MILLISECONDS = pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC")
_CALLS: Mapping[str, Callable[[_Call], _Drawn]] = {
    **dict.fromkeys(("rand", "rand32"), _whole(pa.uint32())),
    "rand64": _whole(pa.uint64()),
    **dict.fromkeys(("rand_canonical", "random"), _canonical),
    "rand_uniform": _uniform,
    "rand_normal": _normal,
    "rand_exponential": _exponential,
    "rand_bernoulli": _bernoulli,
    **dict.fromkeys(("random_string", "random_printable_ascii", "random_fixed_string"), _text),
    **dict.fromkeys(("uuid", "generate_uuid", "generate_uuidv4", "generate_uuid_v4", "gen_random_uuid"), _uuid),
    "random_in_type": _in_type,
    "now": _clock(_SECONDS),
    **dict.fromkeys(("now64", "current_timestamp"), _clock(_MILLISECONDS)),
}
