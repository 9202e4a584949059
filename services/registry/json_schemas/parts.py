"""A JSON Schema as parts, all of which a value satisfies. Words that are none of these parts constrain nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import referencing
import referencing.exceptions
import referencing.jsonschema

from dovetail.broker.registry.avro_text import tree
from dovetail.broker.registry.registered import SchemaNonsense, WholeSchema

_ROOT = "dovetail:root"
WORDS = {
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset(
        {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"}
        | {"contains", "minContains", "maxContains", "unevaluatedItems"}
    ),
    "object": frozenset(
        {"properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties"}
        | {"propertyNames", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties"}
    ),
    "": frozenset({"if", "then", "else", "$dynamicRef", "$recursiveRef"}),
}
"""Those that constrain values of a type, and those that constrain all."""
_ALL_WORDS = frozenset(word for words in WORDS.values() for word in words)
_DRAFT = referencing.jsonschema.DRAFT7
_DEEPEST = 60


@dataclass(frozen=True)
class SchemaNode:
    """A schema, where its references lead from, and how many schemas it stands in. Raises SchemaNonsense for too many:
    one that holds itself has no end, and Python's own limit must not be met within the library of references, which
    panics there.
    """

    schema: Any
    resolver: Any
    depth: int = 0

    def __post_init__(self) -> None:
        if self.depth > _DEEPEST:
            raise SchemaNonsense("it is nested too deeply")

    @staticmethod
    def of(whole: WholeSchema) -> SchemaNode:
        """Raises SchemaNonsense."""
        pairs = [(name, _resource(text)) for name, text in whole.referred.items()]
        root = _resource(whole.text)
        registry: Any = referencing.Registry().with_resources([*pairs, (_ROOT, root)])
        for _, resource in [*pairs, (_ROOT, root)]:
            if (own := resource.id()) is not None:
                registry = registry.with_resource(own, resource)
        return SchemaNode(root.contents, registry.crawl().resolver(root.id() or _ROOT))

    def within(self, schema: Any) -> SchemaNode:
        """A schema that stands in this one."""
        if isinstance(schema, dict) and isinstance(schema.get("$id"), str):
            return SchemaNode(schema, self.resolver.in_subresource(_DRAFT.create_resource(schema)), self.depth + 1)
        return SchemaNode(schema, self.resolver, self.depth + 1)

    def referred(self, reference: str) -> SchemaNode:
        """Raises SchemaNonsense."""
        try:
            found = self.resolver.lookup(reference)
        except (referencing.exceptions.Unresolvable, ValueError):
            raise SchemaNonsense(f"its reference {reference!r} leads nowhere") from None
        return SchemaNode(found.contents, found.resolver, self.depth + 1)


def _resource(text: str) -> Any:
    return referencing.Resource.from_contents(tree(text), default_specification=_DRAFT)


@dataclass(frozen=True)
class Never:
    """No value."""


@dataclass(frozen=True)
class Plain:
    """Values of ``kind`` (None: of any) that keep to ``words``."""

    kind: str | None
    words: Mapping[str, Any]
    node: SchemaNode


@dataclass(frozen=True)
class Listed:
    """These values: ``enum``, ``const``."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Alternatives:
    """Values of some of ``branches``, at least two; ``single``: of one alone (``oneOf``)."""

    branches: tuple[SchemaNode, ...]
    single: bool


@dataclass(frozen=True)
class Denied:
    """Values that are none of ``node``."""

    node: SchemaNode


Part: TypeAlias = Never | Plain | Listed | Alternatives | Denied


def parts(node: SchemaNode) -> tuple[Part, ...]:
    """None: any value. Raises SchemaNonsense."""
    if node.schema is False:
        return (Never(),)
    if not isinstance(node.schema, dict):
        return ()
    return tuple(_parts(node, node.schema))


def _parts(node: SchemaNode, schema: dict[str, Any]) -> Iterator[Part]:
    if isinstance(reference := schema.get("$ref"), str):
        # What stands beside it counts, as it does since draft 2019-09.
        yield from parts(node.referred(reference))
    yield from _plain(node, schema)
    if isinstance(listed := schema.get("enum"), list):
        yield Listed(tuple(listed))
    if "const" in schema:
        yield Listed((schema["const"],))
    for one in schema.get("allOf", ()):
        yield from parts(node.within(one))
    for word in ("anyOf", "oneOf"):
        yield from _choice(tuple(node.within(one) for one in schema.get(word, ())), single=word == "oneOf")
    if "not" in schema:
        yield Denied(node.within(schema["not"]))


def _plain(node: SchemaNode, schema: dict[str, Any]) -> Iterator[Part]:
    words = {word: value for word, value in schema.items() if word in _ALL_WORDS}
    match schema.get("type"):
        case str(kind):
            yield Plain(kind, words, node)
        case [*kinds]:
            yield from _choice(tuple(node.within({**words, "type": kind}) for kind in kinds), single=False)
        case _ if words:
            yield Plain(None, words, node)


def _choice(branches: tuple[SchemaNode, ...], *, single: bool) -> Iterator[Part]:
    if len(branches) == 1:
        yield from parts(branches[0])
    elif branches:
        yield Alternatives(branches, single)


def types(branches: tuple[SchemaNode, ...]) -> list[str | None]:
    """Of each branch the type that its values have, whole numbers being numbers; None where it is not one."""
    return [_type(branch) for branch in branches]


def _type(node: SchemaNode) -> str | None:
    kinds = {part.kind for part in parts(node) if isinstance(part, Plain)} - {None}
    found = kinds.pop() if len(kinds) == 1 else None
    return "number" if found == "integer" else found
