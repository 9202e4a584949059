"""The registry of functions: an allow-list for each dialect.

A function is known by its name; what is not registered is refused, with the nearest name that is. Each group of them is
a table, which docs/functions.md, the completion of the console and random calls in the tests are made from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.suggest import nearest
from dovetail.changelog.wording import counted
from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions.typed import Typed, filled, places

Build = Callable[[Sequence[Typed]], Typed | exp.Expr | str]
"""From arguments to the engine's tree, or to a template over the same arguments."""
Arity = tuple[int, int | None]
"""The fewest arguments, and the most; None for any number."""

_WIDE = pa.decimal128(38, 0)
"""How a number of 128 bits comes out of the engine."""


class Unfit(SqlError):
    """Arguments that a function or an operator is not made for. It says what is taken instead, ``takes a number``; the
    name of what was called is put before that.
    """


@dataclass(frozen=True)
class Row:
    """A function as the table of its group has it.

    usage     how it is written, ``to_hour(time[, zone])``: its name, and how many arguments it takes
    meaning   one line, for docs/functions.md
    build     the engine's SQL with places ``{0}``, ``{1}``, .. for the arguments, or ``{*}`` for all; one such template
              for each number of arguments; or Python, for what is computed from their types or from literals
    gives     the type of the result; None: as the engine has it
    takes     what each argument is, ``text int``; the last holds for the rest, and ``any`` for every value
    also      other names, parted by blanks
    differs   a wanted difference from the engine that the dialect comes from
    arity     where it is another than ``usage`` shows
    """

    usage: str
    meaning: str
    build: Build | str | tuple[str, ...]
    gives: pa.DataType | None = None
    takes: str = "any"
    also: str = ""
    differs: str = ""
    arity: Arity | None = None

    @property
    def names(self) -> list[str]:
        return [self.usage.partition("(")[0], *self.also.split()]

    @property
    def argument_count(self) -> Arity:
        return self.arity or arity_of(self.usage)

    def place(self, index: int) -> str:
        """What the argument at a position is."""
        kinds = self.takes.split()
        return kinds[min(index, len(kinds) - 1)]

    def built(self, arguments: Sequence[Typed]) -> Typed | exp.Expr | str:
        """The tree, or the template for so many arguments."""
        if callable(self.build):
            return self.build(arguments)
        return self._templates.get(len(arguments)) or self._templates[None]

    @cached_property
    def _templates(self) -> Mapping[int | None, str]:
        assert not callable(self.build)
        return {places(one): one for one in ([self.build] if isinstance(self.build, str) else self.build)}


Table = Sequence[Row]
"""The functions of a group, in the order in which docs/functions.md shows them."""


def arity_of(usage: str) -> Arity:
    """What stands in square brackets may be left out; ``..`` is any number more."""
    takes = re.sub(r"\([^()]*\)", "", usage.partition("(")[2].removesuffix(")"))
    needed = takes
    while "[" in needed:
        needed = re.sub(r"\[[^\[\]]*\]", "", needed)
    endless = re.search(r"(^|, )\.\.(,|$)", takes)
    return _count(needed), None if endless else _count(takes)


def _count(takes: str) -> int:
    return sum(one.strip() not in ("", "..") for one in re.split(r"[,\[\]]", takes))


_A_NUMBER = "CAST(x AS int) makes a number of a text"
WRITTEN: Mapping[str, tuple[str, str]] = {
    "plus": ("a + b", f"{_A_NUMBER}; || and concat(a, b) put texts together"),
    "minus": ("a - b", _A_NUMBER),
    "multiply": ("a * b", _A_NUMBER),
    "divide": ("a / b", _A_NUMBER),
    "modulo": ("a % b", _A_NUMBER),
    "negate": ("-a", _A_NUMBER),
    "array_element": ("a[n]", "a[1] or array_element(a, 1) of an array; of a text substring(a, 1, 1)"),
    "tuple_element": ("a.x", "a.1, a.name or tuple_element(a, 'name') of a tuple; of JSON in a text a:name"),
}
"""Functions that stand for operators: how these are written, and what helps where their operands do not fit."""


@dataclass(frozen=True)
class Function:
    """A function of a dialect by one of its names.

    name    in the dialect, in snake_case
    row     what the table says of it
    build   the row as the dialect reads it
    """

    name: str
    row: Row
    build: Build

    @property
    def shown(self) -> str:
        """As the user has most likely written it."""
        return WRITTEN[self.name][0] if self.name in WRITTEN else f"{self.name}()"

    def __call__(self, arguments: Sequence[Typed], like: Typed) -> Typed:
        """The call over ``arguments``; ``like`` is over the same rows. Raises SqlError where they do not fit."""
        least, most = self.row.argument_count
        if len(arguments) < least or (most is not None and len(arguments) > most):
            raise SqlError(f"{self.shown} takes {_shown(least, most)}, not {len(arguments)}", fix=self.row.usage)
        if not self.name.endswith(_ASKS_FOR_NONE):
            return self._built(arguments, like)
        # What fails in the arguments is a failure as ever: this call asks for its own NULL only.
        for cast in (cast for argument in arguments for cast in argument.tree.find_all(exp.TryCast)):
            cast.meta[_COUNTS] = True
        result = self._built(arguments, like)
        return result.of(result.tree.copy().transform(_not_counted), result.known_type)

    def _built(self, arguments: Sequence[Typed], like: Typed) -> Typed:
        try:
            built = self.build(arguments)
        except Unfit as unfit:
            _, fix = WRITTEN.get(self.name, ("", self.row.usage))
            raise SqlError(f"{self.shown} {unfit.what}", fix=fix) from None
        if isinstance(built, str):
            built = filled(built, [argument.tree for argument in arguments])
        if isinstance(built, Typed):
            return built
        result = like.of(built)
        kind = self.row.gives
        if kind is not None and result.type != kind:
            return like.of(filled(f"CAST({{0}} AS {type_name(kind)})", [built]), kind)
        return narrowed(result, arguments)


def _shown(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} arguments or more"
    if least == most:
        return counted(least, "argument")
    return f"{least} to {most} arguments"


_ASKS_FOR_NONE = ("_or_null", "_or_zero", "_or_default")
"""How the names of functions end that say what is to be where there is no value: it is no failure then."""
_COUNTS = "counts"


def _not_counted(node: exp.Expr) -> exp.Expr:
    """A cast in the form by which ``sql.expressions.guard`` knows that its NULL is asked for."""
    if not isinstance(node, exp.TryCast) or node.meta.get(_COUNTS):
        return node
    node.meta[_COUNTS] = True
    return exp.Anonymous(this="NULLIF", expressions=[node, exp.Null()])


def narrowed(result: Typed, arguments: Sequence[Typed]) -> Typed:
    """Where the engine puts numbers with and without sign together in 128 bits: in 64, NULL beyond."""
    if result.known_type is None and not any(argument.is_decimal for argument in arguments) and result.type == _WIDE:
        return result.of(filled("CAST({0} AS BIGINT)", [result.tree]), pa.int64())
    return result


@dataclass(frozen=True)
class RefusedCall:
    """Why a function of the dialect is not here, and what works in its place."""

    reason: str
    fix: str


def _missing(name: str, dialect: str) -> str:
    return f"there is no function {name}() in the dialect of {dialect}"


Refusals = Sequence[tuple[str, str, str]]
"""Names, parted by blanks; why they are refused; what works in their place."""


@dataclass
class Registry:
    """The functions of a dialect, by name, and those that are known and refused.

    compiled   how the dialect reads a row: the tree, or the template, of a call over these arguments
    elsewhere  functions of other systems, and what is written in their place
    """

    dialect: str
    compiled: Callable[[Row, Sequence[Typed]], Typed | exp.Expr | str] = Row.built
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    groups: dict[str, Table] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    refused: dict[str, RefusedCall] = field(default_factory=dict)

    def knows(self, name: str) -> bool:
        return name in self.functions or name in self.refused

    def find(self, name: str, place: str) -> Function:
        """Raises Unsupported for what is refused, UnknownName with the nearest name for what is not known."""
        if name in self.refused:
            refusal = self.refused[name]
            raise Unsupported(f"{name}() {refusal.reason}", where=place, fix=refusal.fix)
        function = self.functions.get(name)
        if function is not None:
            return function
        if name in self.elsewhere:
            raise UnknownName(_missing(name, self.dialect), where=place, fix=f"{self.elsewhere[name]}, for one")
        close = nearest(name, self.functions)
        fix = f"did you mean {self.functions[close].row.usage}?" if close else "docs/functions.md lists the functions"
        raise UnknownName(_missing(name, self.dialect), where=place, fix=fix)

    def refuse(self, table: Refusals) -> None:
        for names, reason, fix in table:
            self.refused.update(dict.fromkeys(names.split(), RefusedCall(reason, fix)))

    def add(self, group: str, table: Table) -> None:
        """Register the functions of a group."""
        self.groups[group] = table
        for row in table:
            build = partial(self.compiled, row)
            for name in row.names:
                if name in self.functions:
                    raise ValueError(f"{name} is registered twice")
                self.functions[name] = Function(name, row, build)
