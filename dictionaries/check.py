"""Checks a dictionary as it is declared; nothing is connected to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.schema import Column
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import type_words
from dovetail.dictionaries.cache.cache_settings import CACHE_SETTINGS, read_settings
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from dovetail.dictionaries.definition.kinds import (
    FORMATS,
    LAYOUTS,
    REFUSED_LAYOUTS,
    REFUSED_SOURCES,
    SOURCE_SETTINGS,
    SOURCES,
    SPELLINGS,
    TABLE_OR_QUERY,
)
from dovetail.dictionaries.definition.options import Option, Parameter, Parameters, read_options
from dovetail.dictionaries.definition.secrets import check_secret
from dovetail.dictionaries.definition.tls import check_tls
from dovetail.dictionaries.feed.feed_definition import feed_of
from dovetail.dictionaries.sources.source_values import UnfitValue, value_reader

COMPLEX = "complex_key_"


def define(
    name: str,
    columns: Sequence[Column],
    key: Sequence[str],
    source: SourceSpec,
    layout: LayoutSpec,
    lifetime_s: tuple[int, int] | None = None,
    settings: Parameters | None = None,
    expressions: Mapping[str, str] | None = None,
) -> Definition:
    """A dictionary whose parts fit together; nothing is connected to.

    Raises UnknownName with the nearest name for a source, layout, option or key column that there is not; Unsupported
    for one that is known and refused; SqlError for a value or a type that does not fit.
    """
    made = Definition(
        name,
        tuple(columns),
        tuple(key),
        check_source(source, f'dictionary "{name}"'),
        _check_layout(layout, f'dictionary "{name}"'),
        _check_lifetime(lifetime_s or (0, 0), name),
        _check_settings(settings or {}, f'dictionary "{name}", SETTINGS'),
        dict(expressions or {}),
    )
    _check_key(made)
    _check_expressions(made)
    _check_values(made)
    feed_of(made)
    return made


def check_source(source: SourceSpec, where: str) -> SourceSpec:
    """``source`` with the name of its kind and the types of its values in order."""
    kind = SPELLINGS.get(source.kind, source.kind)
    options = _known("source", kind, SOURCES, REFUSED_SOURCES, where)
    place = f"{where}, SOURCE({kind.upper()}(..))"
    parameters = read_options(options, source.parameters, place)
    if kind in TABLE_OR_QUERY and ("table" in parameters) == ("query" in parameters):
        raise SqlError("a source has either a TABLE or a QUERY", where=place, fix="TABLE 'name', or QUERY 'SELECT ..'")
    if kind in ("timeplus", "table") and not parameters.keys() & {"name", "stream", "table"}:
        raise SqlError("the source names no stream", where=place, fix="SOURCE(TIMEPLUS(STREAM 'name'))")
    if "query" in parameters and "where" in parameters:
        raise SqlError("WHERE goes with TABLE", where=place, fix="write the condition into the QUERY")
    check_secret(parameters, place)
    _check_format(parameters.get("format"), place)
    check_tls(parameters, place)
    return SourceSpec(kind, parameters)


def _known(
    what: str,
    kind: str,
    known: Mapping[str, tuple[Option, ...]],
    refused: Mapping[str, str],
    where: str,
) -> tuple[Option, ...]:
    if kind in refused:
        raise Unsupported(f"the {what} {kind.upper()} is not there", where=where, fix=refused[kind])
    if kind not in known:
        raise UnknownName(f'there is no {what} "{kind}"', where=where, fix=suggestion(kind, known))
    return known[kind]


def _check_format(given: Parameter | None, place: str) -> None:
    if given is not None and str(given).lower() not in FORMATS:
        raise UnknownName(f'there is no format "{given}"', where=place, fix=suggestion(str(given).lower(), FORMATS))


def _check_layout(layout: LayoutSpec, where: str) -> LayoutSpec:
    kind = layout.kind.removeprefix(COMPLEX)
    options = _known("layout", kind, LAYOUTS, REFUSED_LAYOUTS, where)
    return LayoutSpec(kind, read_options(options, layout.parameters, f"{where}, LAYOUT({kind.upper()}(..))"))


def _check_lifetime(lifetime_s: tuple[int, int], name: str) -> tuple[int, int]:
    least, greatest = lifetime_s
    if not 0 <= least <= greatest:
        raise SqlError(
            f"LIFETIME(MIN {least} MAX {greatest}) is empty", where=f'dictionary "{name}"', fix="MIN below MAX, seconds"
        )
    return lifetime_s


def _check_settings(settings: Parameters, where: str) -> Parameters:
    declared = {setting.name: Option(setting.name, setting.type) for setting in CACHE_SETTINGS}
    declared |= {option.name: option for option in SOURCE_SETTINGS}
    return read_options(tuple(declared.values()), settings, where)


def _check_key(made: Definition) -> None:
    where = f'dictionary "{made.name}", PRIMARY KEY'
    if not made.key and made.layout.kind != "direct":
        raise SqlError("the dictionary has no key", where=where, fix="PRIMARY KEY column")
    if len(set(made.key)) < len(made.key):
        raise SqlError("a column stands twice in the key", where=where, fix="name each column once")
    for name in made.key:
        if name not in made.names:
            raise UnknownName(f'there is no column "{name}"', where=where, fix=suggestion(name, made.names))
    types = {column.name: column.type for column in made.columns}
    for name in made.key:
        if pa.types.is_nested(types[name]):
            raise SqlError(f'"{name}" is of type {types[name]}, which is no key', where=where, fix="a key of scalars")
    if made.layout.kind == "flat" and (len(made.key) > 1 or not pa.types.is_integer(types[made.key[0]])):
        raise SqlError("LAYOUT(FLAT()) takes one key of whole numbers", where=where, fix="LAYOUT(HASHED())")


def _check_values(made: Definition) -> None:
    """Raises SqlError for a setting of the caches, or a DEFAULT, that does not fit."""
    read_settings(made)
    for column in made.columns:
        try:
            if column.default is not None:
                value_reader(column.type)(column.default)
        except UnfitValue:
            raise SqlError(
                f"the DEFAULT '{column.default}' of \"{column.name}\" is no {type_words(column.type)}",
                where=f'dictionary "{made.name}"',
                fix="a literal of the column's type",
            ) from None


def _check_expressions(made: Definition) -> None:
    if made.expressions and made.source.kind not in TABLE_OR_QUERY:
        raise Unsupported(
            f"{made.source.kind.upper()} computes no EXPRESSION",
            where=f'dictionary "{made.name}", SOURCE',
            fix="compute it in the SELECT that reads the dictionary",
        )
