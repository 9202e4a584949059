"""Whether all values of one JSON Schema, the writer's, are values of another, the reader's.

The rules are those that Confluent's registry documents for JSON Schema. An object is *open* where it takes members that
its schema does not name, which is the default, and *closed* by ``additionalProperties: false``. A name of either schema
is compared by what each says of it: its own schema, that of a pattern, of ``additionalProperties``, or that there is
none. So a member that the reader has and the writer has not is taken where the writer is closed, or the reader takes
anything there; one that it lacks, where the reader is open.

A member that is newly required is taken with a default. ``oneOf`` counts as ``anyOf``. Where a schema says more than is
compared (``if``, ``unevaluatedProperties``, what several parts imply only together), both must say the same: stricter
than values allow, and never laxer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

import orjson

from dovetail.broker.registry.registered import SchemaNonsense, WholeSchema
from dovetail.services.registry.json_schemas.bounds import unbounded
from dovetail.services.registry.json_schemas.parts import (
    Alternatives,
    Denied,
    Listed,
    Never,
    Part,
    Plain,
    SchemaNode,
    parts,
    types,
)
from dovetail.services.registry.json_schemas.patterns import are_valid, is_found

_SHOWN = 60
_MOST_COMPARED = 20_000
"""Pairs of parts. Each part of a schema is held against each of the other's, so they grow with the square."""


def uncovered(reader: WholeSchema, writer: WholeSchema) -> list[str]:
    """Why values of ``writer`` are none of ``reader``; none where all are. Raises SchemaNonsense."""
    try:
        return _Coverage().of(SchemaNode.of(reader), SchemaNode.of(writer), "#")
    except RecursionError:
        raise SchemaNonsense("it is nested too deeply") from None


class _Coverage:
    """What is compared is taken to fit while it is compared, as schemas hold themselves; what rested on that is
    forgotten where it does not fit.
    """

    def __init__(self) -> None:
        self._fits: dict[tuple[int, int], tuple[SchemaNode, SchemaNode]] = {}
        self._misfits: dict[tuple[int, int], tuple[SchemaNode, SchemaNode, list[str]]] = {}
        self._compared = 0

    def of(self, reader: SchemaNode, writer: SchemaNode, place: str) -> list[str]:
        pair = id(reader.schema), id(writer.schema)
        if pair in self._fits:
            return []
        if pair in self._misfits:
            return self._misfits[pair][2]
        trail = len(self._fits)
        # Both are kept with their numbers, which else might come to name others.
        self._fits[pair] = reader, writer
        written = parts(writer)
        found = [why for part in parts(reader) for why in self._of_part(part, written, place)]
        if found:
            for assumed in list(self._fits)[trail:]:
                del self._fits[assumed]
            self._misfits[pair] = reader, writer, found
        return found

    def _of_part(self, reader: Part, written: Sequence[Part], place: str) -> list[str]:
        """Why values of all of ``written`` are none of ``reader``."""
        if any(isinstance(part, Never) for part in written):
            return []
        if isinstance(reader, Alternatives) and any(self._of_branch(one, written, place) for one in reader.branches):
            return []
        tried = [self._of_parts(reader, part, place) for part in written]
        if not all(tried):
            return []
        if tried:
            return min(tried, key=len)
        return [f"{place}: any value is written, and {_named(reader)} read"]

    def _of_branch(self, branch: SchemaNode, written: Sequence[Part], place: str) -> bool:
        return not any(self._of_part(part, written, place) for part in parts(branch))

    def _of_parts(self, reader: Part, writer: Part, place: str) -> list[str]:
        self._compared += 1
        if self._compared > _MOST_COMPARED:
            raise SchemaNonsense(f"it has too many parts: more than {_MOST_COMPARED:,} pairs would be compared")
        if isinstance(writer, Alternatives):
            if isinstance(reader, Alternatives) and reader.single and not writer.single and not _apart(writer):
                return [f"{place}: anyOf is written, of which oneOf may take none"]
            return [why for one in writer.branches for why in self._of_part(reader, parts(one), place)]
        match reader:
            case Plain() if isinstance(writer, Plain):
                return [f"{place}{why}" for why in self._of_plain(reader, writer, place)]
            case Plain() if isinstance(writer, Listed) and _are_valid(writer.values, reader):
                return []
            case Listed() if isinstance(writer, Listed):
                known = set(map(_text, reader.values))
                gone = [value for value in map(_text, writer.values) if value not in known]
                return [f"{place}: {', '.join(gone)[:_SHOWN]} is written, and not among what is read"] if gone else []
            case Denied() if isinstance(writer, Denied):
                return self.of(writer.node, reader.node, f"{place}/not")
            case Plain() | Listed() | Denied() | Never() | Alternatives():
                return [f"{place}: {_named(writer)} is written, and {_named(reader)} read"]
        assert_never(reader)

    def _of_plain(self, reader: Plain, writer: Plain, place: str) -> Iterator[str]:
        if reader.kind not in (None, writer.kind) and (reader.kind, writer.kind) != ("number", "integer"):
            yield f": {_named(writer)} is written, and {_named(reader)} read"
            return
        kinds = [writer.kind] if writer.kind else ["string", "number", "array", "object"]
        for kind in ("number" if kind == "integer" else kind for kind in kinds):
            yield from (f": {why}" for why in unbounded(kind, reader, writer))
            if kind == "array":
                yield from self._of_items(reader, writer, place)
            if kind == "object":
                yield from self._of_members(reader, writer, place)
            yield from _of_others(kind, reader, writer)
        yield from _of_others("", reader, writer)

    def _of_items(self, reader: Plain, writer: Plain, place: str) -> Iterator[str]:
        read, written = _items(reader), _items(writer)
        for number in range(max(len(read), len(written))):
            one, other = read[min(number, len(read) - 1)], written[min(number, len(written) - 1)]
            yield from self._inside(reader, one, writer, other, place, "/items")

    def _of_members(self, reader: Plain, writer: Plain, place: str) -> Iterator[str]:
        named = {**_schemas(writer, "properties"), **_schemas(reader, "properties")}
        for name in named:
            read, written = _member(reader, name), _member(writer, name)
            yield from self._inside(reader, read, writer, written, place, f"/properties/{name}")
        for pattern in {**_schemas(writer, "patternProperties"), **_schemas(reader, "patternProperties")}:
            read, written = (_of_pattern(one, pattern) for one in (reader, writer))
            yield from self._inside(reader, read, writer, written, place, f"/patternProperties/{pattern}")
        rest = (one.words.get("additionalProperties", True) for one in (reader, writer))
        yield from self._inside(reader, next(rest), writer, next(rest), place, "/additionalProperties")
        required = set(writer.words.get("required") or ())
        for name in reader.words.get("required") or ():
            read = _schemas(reader, "properties").get(name)
            if name not in required and not (isinstance(read, dict) and "default" in read):
                yield f"/required/{name}: it is required where it is read, and has no default"
        yield from self._of_dependencies(reader, writer, place)
        if "propertyNames" in reader.words:
            names = (one.words.get("propertyNames", True) for one in (reader, writer))
            yield from self._inside(reader, next(names), writer, next(names), place, "/propertyNames")

    def _of_dependencies(self, reader: Plain, writer: Plain, place: str) -> Iterator[str]:
        """What is asked of an object that has a member, by names or by a schema."""
        for word in ("dependencies", "dependentRequired", "dependentSchemas"):
            for name, read in _schemas(reader, word).items():
                written = _schemas(writer, word).get(name, [] if isinstance(read, list) else True)
                if not isinstance(read, list) and not isinstance(written, list):
                    yield from self._inside(reader, read, writer, written, place, f"/{word}/{name}")
                elif not (isinstance(read, list) and isinstance(written, list) and set(read) <= set(written)):
                    yield f"/{word}/{name}: more is required where it is read"

    def _inside(self, reader: Plain, read: Any, writer: Plain, written: Any, place: str, path: str) -> Iterator[str]:
        found = self.of(reader.node.within(read), writer.node.within(written), f"{place}{path}")
        yield from (why.removeprefix(place) for why in found)


_AS_THEY_STAND = {
    "": (("if", "then", "else"), ("$dynamicRef",), ("$recursiveRef",)),
    "array": (("contains", "minContains", "maxContains"), ("unevaluatedItems",)),
    "object": (("unevaluatedProperties",),),
}
"""Words that are not compared, those that belong together at once."""


def _of_others(kind: str, reader: Plain, writer: Plain) -> Iterator[str]:
    for group in _AS_THEY_STAND.get(kind, ()):
        # What is not evaluated hangs on all that is.
        words = group if not group[0].startswith("unevaluated") else tuple(reader.words.keys() | writer.words.keys())
        read, written = ([one.words.get(word) for word in words] for one in (reader, writer))
        if any(reader.words.get(word, True) is not True for word in group) and (read != written or _refers(read)):
            yield f": {group[0]} is compared only where it stays the same"


def _refers(schemas: object) -> bool:
    return b'"$ref"' in _dumped(schemas)


def _apart(choice: Alternatives) -> bool:
    """Whether no value is of two branches, since each is of another type."""
    found = types(choice.branches)
    return None not in found and len(set(found)) == len(found)


def _items(part: Plain) -> list[Any]:
    """The schemas of the first items, and after them that of all others."""
    if "prefixItems" in part.words:
        return [*part.words["prefixItems"], part.words.get("items", True)]
    items = part.words.get("items", True)
    return [*items, part.words.get("additionalItems", True)] if isinstance(items, list) else [items]


def _schemas(part: Plain, word: str) -> dict[str, Any]:
    found = part.words.get(word)
    return found if isinstance(found, dict) else {}


def _member(part: Plain, name: str) -> Any:
    """What a schema says of the member ``name``."""
    said = [schema for pattern, schema in _schemas(part, "patternProperties").items() if is_found(pattern, name)]
    if name in (own := _schemas(part, "properties")):
        said.append(own[name])
    if not said:
        return part.words.get("additionalProperties", True)
    return said[0] if len(said) == 1 else {"allOf": said}


def _of_pattern(part: Plain, pattern: str) -> Any:
    """What a schema says of members whose names have the pattern."""
    return _schemas(part, "patternProperties").get(pattern, part.words.get("additionalProperties", True))


def _are_valid(values: Sequence[Any], reader: Plain) -> bool:
    words = {word: said for word, said in reader.words.items() if word != "$schema"}
    return are_valid(values, {**words, **({"type": reader.kind} if reader.kind else {})}, reader.node.schema)


def _text(value: Any) -> str:
    return _dumped(value).decode()


def _dumped(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _named(part: Part) -> str:
    match part:
        case Plain(kind=kind):
            return kind or "any type"
        case Listed(values=values):
            return f"one of {', '.join(map(_text, values))}"[:_SHOWN]
        case Alternatives(branches=branches):
            return " or ".join(kind or "another" for kind in types(branches))
        case Denied():
            return "all but some values"
        case Never():
            return "nothing"
    assert_never(part)
