"""The name of a type as it is written: ``array(nullable(int32))``, ``decimal(10, 2)``, ``int[]``, ``struct<a int>``."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.sql.syntax.cursor import Cursor

_WORDS = (
    "DOUBLE PRECISION",
    "CHARACTER VARYING",
    "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP WITHOUT TIME ZONE",
    "TIME WITHOUT TIME ZONE",
)


@dataclass(frozen=True)
class TypeName:
    """``name`` in lower case; ``parameters`` are numbers and strings, ``members`` (field name or '', type)."""

    name: str
    parameters: tuple[int | str, ...] = ()
    members: tuple[tuple[str, TypeName], ...] = ()
    offset: int = 0


def type_name(cursor: Cursor) -> TypeName:
    offset = cursor.offset
    words = cursor.accept(*_WORDS)
    found = _with_arguments(cursor, words.lower() or cursor.name("a type").lower(), offset)
    if words.startswith("TIMESTAMP") or cursor.accept("WITHOUT TIME ZONE"):
        return (
            found if found.name != "timestamp with time zone" else TypeName("timestamptz", found.parameters, (), offset)
        )
    if cursor.accept("WITH TIME ZONE"):
        found = TypeName("timestamptz", found.parameters, (), offset)
    while cursor.accept("["):
        cursor.expect("]")
        found = TypeName("array", (), (("", found),), offset)
    return found


def _with_arguments(cursor: Cursor, name: str, offset: int) -> TypeName:
    if cursor.at("<") and name in ("struct", "map", "array", "row"):
        return TypeName(name, (), _members(cursor, "<", ">"), offset)
    if not cursor.at("("):
        return TypeName(name, offset=offset)
    if _takes_types(name):
        return TypeName(name, (), _members(cursor, "(", ")"), offset)
    cursor.expect("(")
    parameters = cursor.listed(lambda: _parameter(cursor))
    cursor.expect(")")
    return TypeName(name, parameters, (), offset)


def _takes_types(name: str) -> bool:
    return name in ("array", "map", "tuple", "struct", "nested", "nullable", "low_cardinality", "lowcardinality")


def _members(cursor: Cursor, opening: str, closing: str) -> tuple[tuple[str, TypeName], ...]:
    cursor.expect(opening)
    members = cursor.listed(lambda: _member(cursor))
    cursor.expect(closing)
    return members


def _member(cursor: Cursor) -> tuple[str, TypeName]:
    """``type``, ``name type`` or ``name: type``: it is named where a word follows the first one."""
    if cursor.word(1) in (",", ")", ">", "(", "[", "<", ""):
        return "", type_name(cursor)
    if cursor.at(*_WORDS):
        return "", type_name(cursor)
    name = cursor.name("a field")
    # As Spark and Hive have it: ``struct<a: int>``.
    cursor.accept(":")
    return name, type_name(cursor)


def _parameter(cursor: Cursor) -> int | str:
    """A number, a string, or ``'name' = 1`` of an enum, of which the name counts."""
    if cursor.at_string:
        text = cursor.string()
        if cursor.accept("="):
            cursor.accept("-")
            cursor.integer()
        return text
    return cursor.integer("a number or a string")
