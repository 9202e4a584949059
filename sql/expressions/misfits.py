"""What does not fit its place in an expression that the engine refuses, in the words of who wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, UnknownName

GIVE_WHAT_FITS = "give it what fits, or change a type: CAST(x AS type)"
_WRITTEN = "written"

TypeOf = Callable[[exp.Expr], pa.DataType]
"""Raises EngineRefused for a tree that the engine refuses, UnknownName where it does not know a function."""


@dataclass(frozen=True)
class _Written:
    """What the user wrote; one for all copies of a tree."""

    node: exp.Expr

    def __deepcopy__(self, memo: object) -> _Written:
        return self


class EngineRefused(SqlError):
    """The engine knows no value of an expression over columns of these types, and says so in its own words."""


def note_written(tree: exp.Expr, node: exp.Expr) -> None:
    """``tree`` is what the engine computes for ``node`` of the user, or for a part of it, if that is noted already."""
    if not isinstance(node, exp.Column | exp.Literal):
        tree.meta.setdefault(_WRITTEN, _Written(node))


def refused_part(tree: exp.Expr, types: Mapping[str, pa.DataType], type_of: TypeOf, fault: EngineRefused) -> SqlError:
    """``fault``, of the engine over ``tree``, as one of the innermost thing that the user wrote and it refuses.

    types   of the columns that ``tree`` may read
    """
    written = [found for part in _refused(tree, type_of) if isinstance(found := part.meta.get(_WRITTEN), _Written)]
    return misfit(written[-1].node, types, fault) if written else fault


def misfit(node: exp.Expr, types: Mapping[str, pa.DataType], fault: EngineRefused) -> SqlError:
    """``fault`` in the words of the user, who wrote ``node``."""
    read = dict.fromkeys(column.name for column in node.find_all(exp.Column))
    operands = " and ".join(f"{name} is {_named(types[name])}" for name in read if name in types)
    return SqlError(
        f"{shown(node)} has no value, as {operands}" if operands else f"{shown(node)} has no value",
        where=fault.where,
        fix=GIVE_WHAT_FITS,
    )


def shown(node: exp.Expr) -> str:
    """What the user wrote, on a line; the quotes are those of names within the engine."""
    return node.sql(dialect="clickhouse").replace('"', "")


def column_name(tree: exp.Expr) -> str:
    """What the user calls a column, of which trees have the internal name; '' of anything else."""
    return str(tree.name.rpartition(".")[2]) if isinstance(tree, exp.Column) else ""


_NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_string, "a text"),
    (pa.types.is_boolean, "true or false"),
    (pa.types.is_integer, "an integer"),
    (pa.types.is_floating, "a float"),
    (pa.types.is_decimal, "a decimal"),
    (pa.types.is_timestamp, "a time"),
    (pa.types.is_date, "a date"),
    (pa.types.is_list, "an array"),
    (pa.types.is_map, "a map"),
    (pa.types.is_struct, "a tuple"),
)


def _named(kind: pa.DataType) -> str:
    return next((name for holds, name in _NAMES if holds(kind)), str(kind))


def _refused(tree: exp.Expr, type_of: TypeOf) -> Iterator[exp.Expr]:
    """From ``tree`` to the innermost part that the engine refuses by itself."""
    yield tree
    for part in tree.iter_expressions():
        if isinstance(part, exp.Condition) and _fails(part, type_of):
            yield from _refused(part, type_of)
            return


def _fails(part: exp.Expr, type_of: TypeOf) -> bool:
    try:
        type_of(part)
    except EngineRefused:
        return True
    except UnknownName:
        pass
    return False
