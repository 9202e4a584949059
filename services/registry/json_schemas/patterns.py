"""Regular expressions of JSON Schemas, as RE2 reads them: over any text in time that grows with it.

They come from whoever registers a schema. RE2 has no look-around and no back reference; a schema may have them, but
nothing is compared by them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from jsonschema import FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend, validator_for

from dovetail.broker.registry.registered import SchemaNonsense

_SHOWN = 60
_LONGEST = 2_000
"""Characters of a pattern that only Python can read."""
_NOT_COMPARED = ("$ref", "$dynamicRef", "$recursiveRef", "$schema", "unevaluatedProperties", "unevaluatedItems")
"""Words that lead to other schemas, or to another validator."""


def is_found(pattern: str, text: str) -> bool:
    """Whether a part of ``text`` is of the pattern. Raises SchemaNonsense for one that RE2 does not know."""
    try:
        return bool(pc.match_substring_regex(pa.scalar(text), pattern).as_py())
    except pa.ArrowInvalid:
        raise SchemaNonsense(
            f"the pattern {pattern[:_SHOWN]!r} cannot be compared: write it without look-around and back references"
        ) from None


def are_valid(values: Iterable[Any], schema: Mapping[str, Any], draft: Any) -> bool:
    """Whether all are of the schema, read by the draft that ``draft`` names."""
    if any(f'"{word}"'.encode() in orjson.dumps(schema) for word in _NOT_COMPARED):
        return False
    validator = _linear(validator_for(draft))(schema)
    return all(validator.is_valid(value) for value in values)


def expect_schema(schema: Mapping[str, Any]) -> None:
    """Raises SchemaNonsense for one that its draft does not take."""
    draft = validator_for(schema)
    checker = _linear(draft)(draft.META_SCHEMA, format_checker=_FORMATS)
    for fault in checker.iter_errors(schema):
        raise SchemaNonsense(f"it is no JSON Schema: {fault.message[:200]}")


def _linear(draft: Any) -> Any:
    """A validator in which nothing takes more time than grows with what it reads."""
    return extend(draft, _LINEAR)  # type: ignore[no-untyped-call]


_FORMATS = FormatChecker(())


@_FORMATS.checks("regex")
def _is_pattern(text: object) -> bool:
    if not isinstance(text, str):
        return True
    try:
        is_found(text, "")
    except SchemaNonsense:
        return len(text) <= _LONGEST and _is_known_to_python(text)
    return True


def _is_known_to_python(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not is_found(pattern, instance):
        yield ValidationError(f"{instance[:_SHOWN]!r} does not match {pattern[:_SHOWN]!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, inside in patterns.items():
            for name in [name for name in instance if is_found(pattern, name)]:
                yield from validator.descend(instance[name], inside, path=name, schema_path=pattern)


def _additional_properties(validator: Any, inside: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        patterns = schema.get("patternProperties", {})
        for name in instance.keys() - schema.get("properties", {}).keys():
            if not any(is_found(pattern, name) for pattern in patterns):
                yield from validator.descend(instance[name], inside, path=name)


def _unique_items(validator: Any, wanted: bool, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if wanted and validator.is_type(instance, "array") and len(set(map(_text, instance))) < len(instance):
        yield ValidationError("an item is there twice")


def _text(value: Any) -> str:
    """The same of 1 and 1.0, which are one number."""
    return json.dumps(json.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), parse_int=float))


_LINEAR = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
