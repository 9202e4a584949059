"""The text of an Avro schema as a tree, and what it means by the names of others."""

from __future__ import annotations

from typing import Any

import fastavro
import orjson
from fastavro.schema import SchemaParseException, UnknownType

from dovetail.broker.registry.registered import SchemaNonsense, WholeSchema


def canonical(text: str) -> str:
    """The same schema without blanks; two texts that differ in blanks alone are one schema."""
    try:
        return orjson.dumps(tree(text)).decode()
    except TypeError:
        raise SchemaNonsense("it is nested too deeply") from None


def tree(text: str) -> Any:
    """The JSON of a schema; a bare name of a primitive type is one too. Raises SchemaNonsense."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as fault:
        raise SchemaNonsense(f"the schema is no JSON: {fault.msg} at character {fault.pos}") from None


def expect_avro(whole: WholeSchema) -> None:
    """Raises SchemaNonsense where it is no schema of Avro."""
    named: dict[str, Any] = {}
    try:
        for text in (*whole.referred.values(), whole.text):
            fastavro.parse_schema(tree(text), named)
    except UnknownType as unknown:
        raise SchemaNonsense(f"there is no type {unknown.name}") from None
    except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError) as fault:
        raise SchemaNonsense(f"it is no schema of Avro: {type(fault).__name__}: {fault}") from None
    except RecursionError:
        raise SchemaNonsense("it is nested too deeply") from None
