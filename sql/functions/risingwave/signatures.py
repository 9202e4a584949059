"""What a function takes: each argument in the type of its place, or a refusal that names both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Registry, Unfit
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
    JSON,
    LOCAL,
    TEXT,
    engine_name,
    is_number,
    is_unknown,
    kind_of,
    name_of,
)
from dovetail.sql.functions.typed import Typed, filled, places

Places = Sequence[str]
Make = Callable[[Sequence[Typed]], Typed | exp.Expr]
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


def _shown(place: str) -> str:
    return {"int": "an integer", "bigint": "an integer", "double": "a number"}.get(place, f"a {place}")


def arguments(given: Sequence[Typed], takes: Places) -> list[Typed]:
    """Of more arguments than places, the last place holds for the rest."""
    return [argument(value, takes[min(index, len(takes) - 1)]) for index, value in enumerate(given)]


def literal(value: Typed, what: str) -> str:
    if not isinstance(value.literal, str):
        raise Unfit(f"takes {what} as a text that is written out")
    return value.literal


class Group:
    """Registers the functions of a group."""

    def __init__(self, registry: Registry, name: str) -> None:
        self.registry, self.name = registry, name

    def add(
        self,
        usage: str,
        meaning: str,
        takes: str,
        build: str | Iterable[str],
        gives: pa.DataType,
        *,
        aliases: str = "",
        differs: str = "",
    ) -> None:
        """A function of templates, one for each number of arguments. ``takes`` are its places, ``text int``."""
        templates = {places(one): one for one in ([build] if isinstance(build, str) else build)}
        counts = [count for count in templates if count is not None]
        arity = (min(counts), max(counts)) if counts else (1, None)

        def made(given: Sequence[Typed]) -> Typed | exp.Expr:
            trees = [value.tree for value in arguments(given, takes.split())] if given else []
            template = templates.get(len(given), templates.get(None, ""))
            tree = filled(f"CAST({template} AS {engine_name(gives)})", trees)
            return given[0].of(tree, gives) if given else tree

        self.registry.add(usage, meaning, made, arity=arity, aliases=aliases, group=self.name, differs=differs)

    def made(
        self,
        usage: str,
        meaning: str,
        build: Make,
        arity: tuple[int, int | None],
        *,
        takes: str = "any",
        aliases: str = "",
        differs: str = "",
    ) -> None:
        """A function that looks at the types of its arguments."""

        def checked(given: Sequence[Typed]) -> Typed | exp.Expr:
            return build(arguments(given, takes.split()))

        tried: Build = checked
        self.registry.add(usage, meaning, tried, arity=arity, aliases=aliases, group=self.name, differs=differs)
