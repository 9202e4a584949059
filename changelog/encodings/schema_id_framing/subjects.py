"""The subject of a topic's values, or keys: the schema by which rows are written is its newest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from dovetail.changelog.encodings.interface import MemberWriter, SchemaDefinition, SchemaSource, Writes
from dovetail.changelog.errors import SqlError, StackError, UnknownName
from dovetail.changelog.schema import RecordFormat

SCHEMA_ID_FRAMED = ("avro", "json_schema", "protobuf")
"""The kinds of formats whose values name their schema."""
REGISTRY_OPTION = "schema.registry"
MESSAGE_OPTION = "message"
"""Of Protobuf: the name of one among several messages of a schema."""
SUBJECT = "subject"
"""The option that a stream has of its topic."""


def of_topic(form: RecordFormat, topic: str, *, of_keys: bool = False) -> RecordFormat:
    """``form`` of the values, or of the keys, of a topic."""
    if form.kind not in SCHEMA_ID_FRAMED:
        return form
    subject = f"{topic}-{'key' if of_keys else 'value'}"
    return replace(form, options=tuple(sorted({**dict(form.options), SUBJECT: subject}.items())))


def expected(schemas: SchemaSource | None) -> SchemaSource:
    """Raises StackError where there is none."""
    if schemas is None:
        raise StackError(
            "no schema registry is known",
            where="a stream whose values name their schema",
            fix="dovetail up starts one; or set DOVETAIL_SCHEMA_REGISTRY_URL",
        )
    return schemas


class WriterByNewest:
    """Writes by the newest schema of the subject. Where that refuses the rows, the one that is newest now is asked: the
    columns may have changed since. Raises UnknownName where the subject has none, and what ``made`` and its writer do.
    """

    def __init__(self, writes: Writes, made: Callable[[int, SchemaDefinition], MemberWriter]) -> None:
        self._schemas, self._subject = expected(writes.schemas), writes.format.option(SUBJECT)
        self._made = made

    def write(self, rows: pa.Table) -> pa.Array:
        newest = self._schemas.newest(self._subject)
        try:
            return self._writer(newest).write(rows)
        except SqlError:
            latest = self._schemas.latest(self._subject)
            if latest == newest:
                raise
        return self._writer(latest).write(rows)

    def _writer(self, schema_id: int | None) -> MemberWriter:
        definition = None if schema_id is None else self._schemas.definition(schema_id)
        if schema_id is None or definition is None:
            raise UnknownName(
                f"the schema registry has no schema of {self._subject!r}",
                where="output",
                fix="CREATE OR REPLACE the stream",
            )
        return self._made(schema_id, definition)


def no_member(schema: str, name: str) -> SqlError:
    """The refusal of a column that the newest schema has no place for."""
    return SqlError(
        f"{schema} has no member {name}", where="the newest schema of the output", fix="register one that has"
    )
