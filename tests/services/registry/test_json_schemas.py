"""Which JSON Schemas may follow others: a table of cases, and values that hypothesis draws."""

from __future__ import annotations

import time
from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dovetail.broker.registry.registered import SchemaNonsense, SchemaType, WholeSchema
from dovetail.services.registry.compatibility import Level, objections
from dovetail.services.registry.json_schemas.coverage import uncovered
from dovetail.services.registry.json_schemas.patterns import expect_schema
from tests.tries import tries

STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
NULL: dict[str, Any] = {"type": "null"}


def whole(schema: Any, **referred: Any) -> WholeSchema:
    texts = {name: orjson.dumps(one).decode() for name, one in referred.items()}
    return WholeSchema(SchemaType.JSON, orjson.dumps(schema).decode(), texts)


def opened(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


def closed(**members: Any) -> dict[str, Any]:
    return {**opened(**members), "additionalProperties": False}


def partly(rest: Any, **members: Any) -> dict[str, Any]:
    return {**opened(**members), "additionalProperties": rest}


def required(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    return {**schema, "required": list(names)}


def array(**words: Any) -> dict[str, Any]:
    return {"type": "array", **words}


def tree(member: Any) -> dict[str, Any]:
    return {"$ref": "#/definitions/t", "definitions": {"t": opened(v=member, next={"$ref": "#/definitions/t"})}}


TAKEN, REFUSED = True, False
CASES: list[tuple[Any, Any, bool, bool]] = [
    # before, after; whether the new reads the old (BACKWARD), and the old the new (FORWARD)
    ({**STRING, "title": "a"}, {**STRING, "description": "b", "default": ""}, TAKEN, TAKEN),
    (opened(), opened(a=STRING), REFUSED, TAKEN),
    (opened(), opened(a={}), TAKEN, TAKEN),
    (closed(), closed(a=STRING), TAKEN, REFUSED),
    (closed(), required(closed(a=STRING), "a"), REFUSED, REFUSED),
    (closed(), required(closed(a={**STRING, "default": ""}), "a"), TAKEN, REFUSED),
    (partly(STRING), partly(STRING, a=STRING), TAKEN, TAKEN),
    (partly(STRING), partly(STRING, a=INTEGER), REFUSED, REFUSED),
    (closed(), opened(), TAKEN, REFUSED),
    (closed(), partly(STRING), TAKEN, REFUSED),
    (partly(STRING), opened(), TAKEN, REFUSED),
    (opened(a=STRING), required(opened(a=STRING), "a"), REFUSED, TAKEN),
    (opened(a=INTEGER), opened(a=NUMBER), TAKEN, REFUSED),
    (opened(a=INTEGER), opened(a=STRING), REFUSED, REFUSED),
    (opened(a=INTEGER), opened(a={"type": ["integer", "null"]}), TAKEN, REFUSED),
    (opened(a=INTEGER), opened(a={"oneOf": [NULL, INTEGER]}), TAKEN, REFUSED),
    (opened(a={"type": ["integer", "null"]}), opened(a={"oneOf": [NULL, INTEGER]}), TAKEN, TAKEN),
    (opened(a={"anyOf": [NULL, INTEGER]}), opened(a={"oneOf": [NUMBER, NULL]}), TAKEN, REFUSED),
    ({"anyOf": [opened(a=NULL), opened(b=NULL)]}, {"oneOf": [opened(a=NULL), opened(b=NULL)]}, REFUSED, TAKEN),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, TAKEN, REFUSED),
    ({"type": "string", "enum": ["a", "b"]}, STRING, TAKEN, REFUSED),
    ({"const": 1}, {"enum": [1, 2]}, TAKEN, REFUSED),
    ({"enum": ["a", 5]}, STRING, REFUSED, REFUSED),
    ({**STRING, "maxLength": 5}, {**STRING, "maxLength": 9}, TAKEN, REFUSED),
    ({**STRING, "minLength": 5}, STRING, TAKEN, REFUSED),
    ({**STRING, "pattern": "a"}, {**STRING, "pattern": "b"}, REFUSED, REFUSED),
    ({**STRING, "pattern": "a"}, STRING, TAKEN, REFUSED),
    ({**NUMBER, "maximum": 5}, {**NUMBER, "maximum": 5.5}, TAKEN, REFUSED),
    ({**NUMBER, "exclusiveMaximum": 5}, {**NUMBER, "maximum": 5}, TAKEN, REFUSED),
    ({**NUMBER, "exclusiveMinimum": 5}, {**NUMBER, "minimum": 5}, TAKEN, REFUSED),
    ({**NUMBER, "minimum": 0}, NUMBER, TAKEN, REFUSED),
    ({**NUMBER, "multipleOf": 6}, {**NUMBER, "multipleOf": 1.5}, TAKEN, REFUSED),
    (INTEGER, {**NUMBER, "multipleOf": 0.5}, TAKEN, REFUSED),
    (array(items=INTEGER), array(items=NUMBER), TAKEN, REFUSED),
    (array(items=INTEGER), array(), TAKEN, REFUSED),
    (array(items=[INTEGER], additionalItems=False), array(items=[INTEGER, STRING], additionalItems=False), True, False),
    (array(items=[INTEGER]), array(items=[INTEGER, STRING]), REFUSED, TAKEN),
    (array(prefixItems=[INTEGER], items=STRING), array(prefixItems=[INTEGER, STRING], items=STRING), TAKEN, TAKEN),
    (array(maxItems=1, uniqueItems=True), array(maxItems=2), TAKEN, REFUSED),
    (array(contains=STRING), array(contains=INTEGER), REFUSED, REFUSED),
    (array(contains=STRING, minContains=0), array(contains=STRING), REFUSED, REFUSED),
    ({**opened(), "maxProperties": 1}, {**opened(), "maxProperties": 2}, TAKEN, REFUSED),
    ({"patternProperties": {"^x": STRING}}, {"patternProperties": {"^x": {}}}, TAKEN, REFUSED),
    ({**closed(), "patternProperties": {"^x": STRING}}, closed(x1=STRING), REFUSED, TAKEN),
    ({"dependencies": {"a": ["b", "c"]}}, {"dependencies": {"a": ["b"]}}, TAKEN, REFUSED),
    ({"dependencies": {"a": opened(b=STRING)}}, {}, TAKEN, REFUSED),
    ({"propertyNames": {"maxLength": 3}}, {"propertyNames": {"maxLength": 4}}, TAKEN, REFUSED),
    ({"if": opened(a=STRING), "then": False}, {"if": opened(a=STRING), "then": True}, REFUSED, REFUSED),
    ({**opened(a=STRING), "unevaluatedProperties": False}, {"unevaluatedProperties": False}, REFUSED, REFUSED),
    ({"allOf": [STRING, {"maxLength": 3}]}, STRING, TAKEN, REFUSED),
    ({"not": INTEGER}, {"not": NUMBER}, REFUSED, TAKEN),
    (False, STRING, TAKEN, REFUSED),
    (STRING, True, TAKEN, REFUSED),
    (tree(INTEGER), tree(NUMBER), TAKEN, REFUSED),
    (tree(INTEGER), tree(STRING), REFUSED, REFUSED),
    (opened(a={"$ref": "#/nowhere"}), opened(a=STRING), REFUSED, REFUSED),
]


@pytest.mark.parametrize(("before", "after", "backward", "forward"), CASES)
def test_what_may_follow(before: Any, after: Any, backward: bool, forward: bool) -> None:
    new, old = whole(after), whole(before)
    found = {level: not objections(new, [old], level) for level in Level}
    assert found == {
        Level.NONE: True,
        Level.BACKWARD: backward,
        Level.BACKWARD_TRANSITIVE: backward,
        Level.FORWARD: forward,
        Level.FORWARD_TRANSITIVE: forward,
        Level.FULL: backward and forward,
        Level.FULL_TRANSITIVE: backward and forward,
    }


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (opened(), opened(a=STRING), "the new schema cannot read the old: #/properties/a: any value is written, and "),
        (closed(a=STRING), closed(), "#/properties/a: string is written, and nothing read"),
        (opened(a=INTEGER), opened(a=STRING), "#/properties/a: integer is written, and string read"),
        (opened(a=STRING), required(opened(a=STRING), "a"), "#/required/a: it is required where it is read"),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, '"b" is written, and not among what is read'),
        (array(items=opened(a={"$ref": "x"})), array(items=opened(a=STRING)), "its reference 'x' leads nowhere"),
    ],
)
def test_what_is_said_names_the_place(before: Any, after: Any, said: str) -> None:
    assert said in " ".join(objections(whole(after), [whole(before)], Level.BACKWARD))


def test_references_to_other_schemas_are_followed() -> None:
    held = opened(a={"$ref": "part.json"})
    old, wide = (whole(held, **{"part.json": one}) for one in (INTEGER, NUMBER))
    assert uncovered(wide, old) == []
    assert uncovered(old, wide) == ["#/properties/a: number is written, and integer read"]


def test_one_that_holds_itself_without_end_is_compared_or_refused() -> None:
    endless = {"definitions": {"t": {"allOf": [{"$ref": "#/definitions/t"}]}}, "$ref": "#/definitions/t"}
    assert "nested too deeply" in objections(whole(endless), [whole(STRING)], Level.BACKWARD)[0]


SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 1.5, 6, "", "a", "ab", "xa"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "xa"]), inner, max_size=3),
    max_leaves=6,
)
WORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
    | st.lists(st.sampled_from(["null", "number", "string", "object"]), min_size=1, max_size=2, unique=True),
    "enum": st.lists(SCALARS, min_size=1, max_size=3),
    "const": SCALARS,
    "minimum": st.integers(0, 2),
    "exclusiveMinimum": st.integers(0, 2),
    "maximum": st.integers(0, 2),
    "multipleOf": st.sampled_from([0.5, 1, 2, 3]),
    "minLength": st.integers(0, 2),
    "maxLength": st.integers(0, 2),
    "pattern": st.sampled_from(["^x", "a"]),
    "minItems": st.integers(0, 2),
    "maxItems": st.integers(0, 2),
    "uniqueItems": st.booleans(),
    "required": st.lists(st.sampled_from(["a", "b"]), unique=True),
    "maxProperties": st.integers(0, 2),
    "dependentRequired": st.just({"a": ["b"]}),
}


def worded(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(st.sampled_from(["a", "b", "xa"]), inner, max_size=2)
    several = st.lists(inner, min_size=1, max_size=2)
    nested = {
        "properties": members,
        "patternProperties": st.dictionaries(st.sampled_from(["^x", "a"]), inner, max_size=1),
        "additionalProperties": inner | st.just(value=False),
        "propertyNames": inner,
        "prefixItems": several,
        "items": inner,
        "contains": inner,
        "allOf": several,
        "anyOf": several,
        "not": inner,
        "dependentSchemas": members,
        "if": inner,
        "then": inner,
        "unevaluatedProperties": inner | st.just(value=False),
    }
    return st.fixed_dictionaries({}, optional=WORDS | nested)


SCHEMAS = st.recursive(st.booleans() | st.fixed_dictionaries({}, optional=WORDS), worded, max_leaves=4)


@st.composite
def changed(draw: st.DrawFn, schema: Any) -> Any:
    """Nearly the same schema: pairs drawn apart from each other hardly ever fit."""
    if not isinstance(schema, dict) or not schema or draw(st.integers(0, 5)) == 0:
        return draw(SCHEMAS)
    word = draw(st.sampled_from(sorted(schema)))
    match draw(st.integers(0, 3)):
        case 0:
            return {name: one for name, one in schema.items() if name != word}
        case 1:
            return {**schema, **draw(st.fixed_dictionaries({}, optional=WORDS))}
        case _:
            inner = schema[word]
            if word in ("properties", "patternProperties", "dependentSchemas") and inner:
                name = draw(st.sampled_from(sorted(inner)))
                return {**schema, word: {**inner, name: draw(changed(inner[name]))}}
            if word in ("items", "not", "additionalProperties", "contains", "propertyNames"):
                return {**schema, word: draw(changed(inner))}
            return {**schema, "anyOf": [{}, schema]} if draw(st.booleans()) else {"anyOf": [schema, draw(SCHEMAS)]}


@given(st.data())
@settings(max_examples=tries(200), deadline=None)
def test_what_is_said_to_be_read_is_read(data: st.DataObject) -> None:
    old = data.draw(SCHEMAS)
    new = data.draw(changed(old))
    assume(uncovered(whole(new), whole(old)) == [])
    written, read = (jsonschema.Draft202012Validator(one) for one in (old, new))
    for value in data.draw(st.lists(VALUES, min_size=5, max_size=20)):
        if written.is_valid(value):
            assert read.is_valid(value), (old, new, value)


@given(SCHEMAS)
def test_every_schema_may_follow_itself(schema: Any) -> None:
    assert objections(whole(schema), [whole(schema)], Level.FULL) == []


_SLOW = "(a+)+$"
_NAME = "a" * 50_000 + "!"


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ({**closed(), "patternProperties": {_SLOW: STRING}}, closed(**{_NAME: STRING})),
        ({**STRING, "pattern": _SLOW}, {"enum": [_NAME]}),
        ({"type": "object", "patternProperties": {_SLOW: STRING}}, {"enum": [{_NAME: 1}]}),
        (
            {"type": "object", "patternProperties": {_SLOW: STRING}, "additionalProperties": False},
            {"const": {_NAME: 1}},
        ),
    ],
)
def test_a_pattern_takes_time_that_grows_with_the_name(reader: dict[str, Any], writer: dict[str, Any]) -> None:
    began = time.process_time()
    uncovered(whole(reader), whole(writer))
    assert time.process_time() - began < 1


def test_parts_that_would_be_compared_by_the_million_are_refused() -> None:
    reader, writer = ({"allOf": [{"type": "object", "title": title}] * 5_000} for title in ("x", "y"))
    with pytest.raises(SchemaNonsense, match="too many parts"):
        uncovered(whole(reader), whole(writer))


def test_a_pattern_that_looks_around_is_registered_and_not_compared() -> None:
    schema = {**closed(), "patternProperties": {"a(?=b)": STRING}}
    expect_schema(schema)
    with pytest.raises(SchemaNonsense, match="look-around"):
        uncovered(whole(schema), whole(closed(ab=STRING)))


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(SchemaNonsense, match="is not a 'regex'"):
        expect_schema({**STRING, "pattern": "("})
