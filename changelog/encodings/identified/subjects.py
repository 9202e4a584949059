"""The subject of a topic's values: the schema by which rows are written is its newest."""

from __future__ import annotations

from dataclasses import replace

from changelog.encodings.interface import SchemaDefinition, SchemaSource, Writes
from changelog.errors import SqlError, StackError, UnknownName
from changelog.schema import RecordFormat

IDENTIFIED = ("avro", "json_schema", "protobuf")
"""The kinds of formats whose values name their schema."""
REGISTRY_OPTION = "schema.registry"
SUBJECT = "subject"
"""The option that a stream has of its topic."""


def of_topic(form: RecordFormat, topic: str) -> RecordFormat:
    """``form`` of the values of a topic."""
    if form.kind not in IDENTIFIED:
        return form
    return replace(form, options=tuple(sorted({**dict(form.options), SUBJECT: f"{topic}-value"}.items())))


def expected(schemas: SchemaSource | None) -> SchemaSource:
    """Raises StackError where there is none."""
    if schemas is None:
        raise StackError(
            "no schema registry is known",
            where="a stream whose values name their schema",
            fix="dovetail up starts one; or set DOVETAIL_SCHEMA_REGISTRY_URL",
        )
    return schemas


def newest(asked: Writes) -> tuple[int, SchemaDefinition]:
    """The schema that values are written by. Raises UnknownName where the subject has none."""
    schemas, subject = expected(asked.schemas), asked.format.option(SUBJECT)
    schema_id = schemas.newest(subject)
    definition = None if schema_id is None else schemas.definition(schema_id)
    if schema_id is None or definition is None:
        raise UnknownName(
            f"the schema registry has no schema of {subject!r}", where="output", fix="CREATE OR REPLACE the stream"
        )
    return schema_id, definition


def no_member(schema: str, name: str) -> SqlError:
    """The refusal of a column that the newest schema has no place for."""
    return SqlError(
        f"{schema} has no member {name}", where="the newest schema of the output", fix="register one that has"
    )
