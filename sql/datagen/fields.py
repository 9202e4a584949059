"""What ``fields.<column>.<option>`` says of the values of a column, for each kind of type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Protocol

import numpy as np
import pyarrow as pa

from dovetail.changelog.errors import DovetailError, SqlError, UnknownName, Unsupported
from dovetail.changelog.formats import decimal_text
from dovetail.changelog.formats.text_forms import uuid_text
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import type_words
from dovetail.sql.datagen.chance import Chance, Numbers
from dovetail.sql.query_settings import milliseconds_of
from dovetail.sql.syntax.statements import FIELDS

_WHERE = "WITH (connector = 'datagen', ..)"
_MOST_LENGTH = 10_000
_MOST = 32_767
"""The greatest random number where nothing is said; as in RisingWave."""
_DAY_US = 86_400_000_000
_UNITS = {"second": "s", "minute": "m", "hour": "h", "day": "d"}
"""As RisingWave writes them: '2 days'."""
_LAST_US = 253_402_300_799_999_999


@dataclass(frozen=True)
class Moment:
    """When rows are made, and when their stream was: microseconds since 1970."""

    now_us: int
    created_us: int


class GeneratedValues(Protocol):
    """The values of a column. ``last``: the number of the last row that has one; None where there is no end."""

    @property
    def last(self) -> int | None: ...

    def of(self, numbers: Numbers, moment: Moment) -> pa.Array: ...


Make = Callable[[Numbers, Moment], pa.Array]


@dataclass(frozen=True)
class Made:
    """Values by a function."""

    make: Make
    last: int | None = None

    def of(self, numbers: Numbers, moment: Moment) -> pa.Array:
        return self.make(numbers, moment)


@dataclass
class Options:
    """The options of one column; those of the elements of an array begin with ``_.``, those of a struct with the name
    of a member.
    """

    column: str
    given: Mapping[str, object]
    seed: int = 0
    read: set[str] = field(default_factory=set)

    @property
    def chance(self) -> Chance:
        return Chance.of(self.column, int(self.number("seed", Decimal(self.seed))))

    def text(self, name: str, default: str = "") -> str:
        self.read.add(name)
        return str(self.given.get(name, default))

    def number(self, name: str, default: Decimal) -> Decimal:
        text = self.text(name)
        if not text:
            return default
        try:
            found = Decimal(text)
        except InvalidOperation:
            raise self.refusal(name, "is no number") from None
        if not found.is_finite():
            raise self.refusal(name, "is no number")
        return found

    def duration_us(self, name: str, default_us: int) -> int:
        text = self.text(name)
        if not text:
            return default_us
        number, _, unit = text.strip().lower().partition(" ")
        found = milliseconds_of(number + _UNITS.get(unit.strip().removesuffix("s"), unit))
        if found is None or found > _LAST_US // 1000:
            raise self.refusal(name, "is no length of time", fix=f"{FIELDS}{self.column}.{name} = '2h'")
        return found * 1000

    def below(self, prefix: str) -> Options:
        """Those of a part of the values."""
        found = {name.removeprefix(prefix): value for name, value in self.given.items() if name.startswith(prefix)}
        self.read |= {prefix + name for name in found}
        return Options(f"{self.column}.{prefix}".rstrip("."), found, self.seed)

    def refusal(self, name: str, what: str, fix: str = "") -> SqlError:
        return SqlError(f"{FIELDS}{self.column}.{name} = {self.given.get(name)!r} {what}", where=_WHERE, fix=fix)

    def expect_read(self) -> None:
        """Raises UnknownName for an option that the values of this type do not have."""
        for name in self.given:
            if name not in self.read:
                raise UnknownName(
                    f'the values of "{self.column}" have no option "{name}"',
                    where=_WHERE,
                    fix=suggestion(name, self.read),
                )


def values_of(options: Options, kind: pa.DataType) -> GeneratedValues:
    """Raises SqlError for what the options cannot mean, Unsupported for a type whose values cannot be generated."""
    if options.text("values"):
        found: GeneratedValues = _one_of(options, kind)
    else:
        sequence = _is_sequence(options)
        build = next((build for is_of, build in _BUILDERS if is_of(kind)), None)
        if build is None:
            raise Unsupported(
                f'values of "{options.column}", which is {type_words(kind)}, cannot be generated',
                where=_WHERE,
                fix=f"{FIELDS}{options.column}.values = 'a, b' chooses among some",
            )
        if sequence and not _is_number(kind):
            raise Unsupported(f'"{options.column}" is {type_words(kind)}, and a sequence is of numbers', where=_WHERE)
        found = build(options, kind)
    options.expect_read()
    return found


def constant(value: object, kind: pa.DataType) -> GeneratedValues:
    """The value of a DEFAULT, in every row."""
    return Made(lambda numbers, _: pa.array([value], kind).take(pa.array(np.zeros(len(numbers), np.int64))))


def time_of_making(kind: pa.DataType) -> GeneratedValues:
    """The time at which a row is made."""
    return Made(lambda numbers, moment: _instants(np.full(len(numbers), moment.now_us), kind))


def uuids(chance: Chance) -> GeneratedValues:
    """Of version 4: 122 random bits."""
    other = Chance(chance.seed ^ 1)

    def make(numbers: Numbers, _: Moment) -> pa.Array:
        halves = zip(chance.bits(numbers).tolist(), other.bits(numbers).tolist(), strict=True)
        texts = [_hyphenated(one & ~0xF000 | 0x4000, rest & ~(3 << 62) | 2 << 62) for one, rest in halves]
        return pa.array(texts, pa.string())

    return Made(make)


def _hyphenated(one: int, rest: int) -> str:
    return uuid_text(f"{one:016x}{rest:016x}")


def _is_sequence(options: Options) -> bool:
    kind = options.text("kind", "random").lower()
    if kind not in ("random", "sequence"):
        raise options.refusal("kind", "is no way to make values", fix="random, or sequence")
    return kind == "sequence"


def _one_of(options: Options, kind: pa.DataType) -> GeneratedValues:
    """A random one of those that are listed; each as often as it is listed."""
    texts = [text.strip() for text in options.text("values").split(",")]
    try:
        found = decimal_text.cast(pa.chunked_array([pa.array(texts)]), kind).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, DovetailError):
        raise options.refusal("values", f"are not all {type_words(kind)}") from None
    chance = options.chance
    return Made(lambda numbers, _: found.take(pa.array(chance.integers(numbers, 0, len(texts) - 1))))


def _bounds(options: Options, names: tuple[str, str], defaults: tuple[Decimal, Decimal]) -> tuple[Decimal, Decimal]:
    least, most = (options.number(name, default) for name, default in zip(names, defaults, strict=True))
    if least > most:
        low, high = names
        raise options.refusal(high if high in options.given else low, f"leaves nothing from {least} to {most}")
    return least, most


def _integers(options: Options, kind: pa.DataType) -> GeneratedValues:
    limits = np.iinfo(kind.to_pandas_dtype())
    lowest, highest = Decimal(int(limits.min)), Decimal(min(int(limits.max), 2**63 - 1))
    if options.text("kind") == "sequence":
        start, end = _bounds(options, ("start", "end"), (Decimal(0), highest))
        _expect_within(options, ("start", "end"), lowest, highest)
        first = int(start)
        return Made(lambda numbers, _: pa.array(numbers + first).cast(kind), int(end) - first)
    least, most = _bounds(options, ("min", "max"), (Decimal(0), min(highest, Decimal(_MOST))))
    _expect_within(options, ("min", "max"), lowest, highest)
    chance = options.chance
    return Made(lambda numbers, _: pa.array(chance.integers(numbers, int(least), int(most))).cast(kind))


def _expect_within(options: Options, names: Sequence[str], lowest: Decimal, highest: Decimal) -> None:
    for name in names:
        given = options.number(name, lowest)
        if given != given.to_integral_value() or not lowest <= given <= highest:
            raise options.refusal(name, f"is no whole number from {lowest} to {highest}")


def _floats(options: Options, kind: pa.DataType) -> GeneratedValues:
    if options.text("kind") == "sequence":
        start, end = _bounds(options, ("start", "end"), (Decimal(0), Decimal(2**53)))
        first = float(start)
        return Made(lambda numbers, _: pa.array(numbers + first).cast(kind), int(end - start))
    least, most = _bounds(options, ("min", "max"), (Decimal(0), Decimal(_MOST)))
    low, width, chance = float(least), float(most - least), options.chance
    return Made(lambda numbers, _: pa.array(low + chance.fractions(numbers) * width).cast(kind))


def _decimals(options: Options, kind: pa.DataType) -> GeneratedValues:
    """Random ones are those of the type's digits after the point, as whole numbers of the last of them."""
    limit = min(Decimal(10) ** (kind.precision - kind.scale) - 1, Decimal(2**62).scaleb(-kind.scale))
    sequence = options.text("kind") == "sequence"
    names = ("start", "end") if sequence else ("min", "max")
    least, most = _bounds(options, names, (Decimal(0), limit if sequence else min(limit, Decimal(_MOST))))
    for name, value in zip(names, (least, most), strict=True):
        if abs(value) > limit:
            raise options.refusal(name, f"is beyond {type_words(kind)}")
    low, high = (int(value.scaleb(kind.scale)) for value in (least, most))
    if sequence:
        step = 10**kind.scale
        return Made(lambda numbers, _: _unscaled(numbers * step + low, kind), (high - low) // step)
    chance = options.chance
    return Made(lambda numbers, _: _unscaled(chance.integers(numbers, low, high), kind))


def _unscaled(numbers: Numbers, kind: pa.DataType) -> pa.Array:
    """Decimals whose digits are ``numbers``: 128 bits, low half first."""
    halves = np.stack([numbers, numbers >> 63], axis=1)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(halves.tobytes())])


def _texts(options: Options, kind: pa.DataType) -> GeneratedValues:
    length = _length(options, 10)
    chance = options.chance
    return Made(lambda numbers, _: pa.array(chance.letters(numbers, length).astype(f"U{length}")).cast(kind))


def _bytes(options: Options, kind: pa.DataType) -> GeneratedValues:
    length = _length(options, 10)
    chance = options.chance
    return Made(lambda numbers, _: pa.array(chance.letters(numbers, length)).cast(kind))


def _length(options: Options, default: int) -> int:
    found = options.number("length", Decimal(default))
    if found != found.to_integral_value() or not 1 <= found <= _MOST_LENGTH:
        raise options.refusal("length", f"is no whole number from 1 to {_MOST_LENGTH:,}")
    return int(found)


def _booleans(options: Options, _kind: pa.DataType) -> GeneratedValues:
    chance = options.chance
    return Made(lambda numbers, _: pa.array(chance.bits(numbers) >> np.uint64(63) == 1))


def _times(options: Options, kind: pa.DataType) -> GeneratedValues:
    """A random time of the last ``max_past``, before a time that stays, or before now."""
    past_us = options.duration_us("max_past", _DAY_US)
    mode = options.text("max_past_mode", "absolute").lower()
    if mode not in ("absolute", "relative"):
        raise options.refusal("max_past_mode", "is no mode", fix="absolute, before basetime; or relative, before now")
    base_us = _base_us(options)
    chance = options.chance

    def make(numbers: Numbers, moment: Moment) -> pa.Array:
        until_us = moment.now_us if mode == "relative" else moment.created_us if base_us is None else base_us
        return _instants(until_us - chance.integers(numbers, 0, past_us), kind)

    return Made(make)


def _base_us(options: Options) -> int | None:
    text = options.text("basetime")
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise options.refusal("basetime", "is no time", fix="'2026-01-31T12:00:00Z'") from None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def _instants(microseconds: Numbers, kind: pa.DataType) -> pa.Array:
    found = pa.array(np.clip(microseconds, -_LAST_US, _LAST_US)).cast(pa.timestamp("us"))
    if pa.types.is_date(kind):
        return found.cast(kind, safe=False)
    return found.cast(pa.timestamp(kind.unit), safe=False).cast(kind)


def _arrays(options: Options, kind: pa.DataType) -> GeneratedValues:
    length = _length(options, 3)
    each = values_of(options.below("_."), kind.value_type)

    def make(numbers: Numbers, moment: Moment) -> pa.Array:
        values = each.of((numbers[:, None] * length + np.arange(length)).ravel(), moment)
        starts = pa.array(np.arange(len(numbers) + 1) * length, pa.int32())
        return pa.ListArray.from_arrays(starts, values, type=kind)

    return Made(make, None if each.last is None else (each.last + 1) // length - 1)


def _structs(options: Options, kind: pa.DataType) -> GeneratedValues:
    members = [values_of(options.below(f"{one.name.lower()}."), one.type) for one in kind]

    def make(numbers: Numbers, moment: Moment) -> pa.Array:
        return pa.StructArray.from_arrays([member.of(numbers, moment) for member in members], fields=list(kind))

    return Made(make, least_last(members))


def least_last(values: Iterator[GeneratedValues] | Sequence[GeneratedValues]) -> int | None:
    """The last row for which all have a value."""
    return min((one.last for one in values if one.last is not None), default=None)


def _is_number(kind: pa.DataType) -> bool:
    return any(is_of(kind) for is_of, build in _BUILDERS if build in (_integers, _floats, _decimals))


_BUILDERS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Options, pa.DataType], GeneratedValues]]] = (
    (pa.types.is_integer, _integers),
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal128, _decimals),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_string, _texts),
    (pa.types.is_binary, _bytes),
    (pa.types.is_timestamp, _times),
    (pa.types.is_date32, _times),
    (pa.types.is_list, _arrays),
    (pa.types.is_struct, _structs),
)
