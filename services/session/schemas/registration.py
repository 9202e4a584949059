"""CREATE STREAM over a subject of the schema registry.

A subject that has schemas says what the members are: each column must be one that the newest of them gives. A subject
without any gets the schema of the columns, and another version of it where the columns are others later.
"""

from __future__ import annotations

import pyarrow as pa

from dovetail.broker.registry.client import SchemaRegistryReader, schemas_of
from dovetail.changelog.encodings.avro.reader import AvroPayloads
from dovetail.changelog.encodings.avro.schema import WriterSchema
from dovetail.changelog.encodings.interface import Reads, SchemaDefinition
from dovetail.changelog.encodings.registry import AVRO_FORMAT
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.encodings.schema_id_framing.subjects import REGISTRY_OPTION, SCHEMA_ID_FRAMED, SUBJECT, expected
from dovetail.changelog.encodings.schema_parsers import SCHEMA_PARSERS
from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.formats.members import Member
from dovetail.changelog.row_reader import WIRE_DELTA_TYPE
from dovetail.changelog.schema import WIRE_DELTA, Kind, StreamSchema
from dovetail.changelog.suggest import suggestion
from dovetail.services.session.context import Context
from dovetail.sql.syntax.statements import CreateStream


def expect_schema(context: Context, statement: CreateStream) -> None:
    """Raises what is wrong with the columns, or with the registry that is named; of other formats nothing is asked."""
    schema = statement.schema
    of_key: frozenset[str] = frozenset()
    if schema.key.kind in SCHEMA_ID_FRAMED and schema.primary_key:
        of_key = _expect_key(context, schema)
    if schema.value.kind not in SCHEMA_ID_FRAMED:
        return
    registry = registry_of(context, schema)
    subject = schema.value.option(SUBJECT)
    newest = registry.latest(subject)
    definition = None if newest is None else registry.definition(newest)
    parser = SCHEMA_PARSERS[schema.value.kind]
    if definition is None:
        registry.registered(subject, parser.own(_written(schema), schema.name))
    elif not statement.external and parser.is_own(definition, schema.name):
        registry.registered(subject, parser.own(_written(schema), schema.name, definition))
    else:
        _expect_columns(schema, definition, f"schema {newest} of {subject}", of_key)


def _expect_key(context: Context, schema: StreamSchema) -> frozenset[str]:
    """The columns of the primary key that keys hold, which values need not hold then. A subject without schemas gets
    that of the primary key, and the one that it has stays: keys of another one would be other keys.
    """
    registry, subject = _known(context, schema), schema.key.option(SUBJECT)
    columns = [schema.column(name) for name in schema.primary_key]
    newest = registry.latest(subject)
    definition = None if newest is None else registry.definition(newest)
    if definition is None:
        fields = pa.schema([(column.name, column.type) for column in columns])
        registry.registered(subject, SCHEMA_PARSERS[schema.key.kind].own(fields, f"{schema.name}_key"))
        return frozenset(schema.primary_key)
    members = tuple(Member(column.name, column.type) for column in columns)
    try:
        AvroPayloads(definition, Reads(schema.key, schema, members, of_key=True))
    except SchemaMisfit as misfit:
        raise SqlError(
            f"the primary key does not fit schema {newest} of {subject}: {misfit}",
            where="PRIMARY KEY",
            fix="declare its columns as the schema has them",
        ) from None
    held = WriterSchema.of(definition).as_record(schema.primary_key[0]).fields()
    return frozenset(name for name in schema.primary_key if name in held)


def registry_of(context: Context, schema: StreamSchema) -> SchemaRegistryReader:
    """The registry that has the schema of the values. Raises Unsupported where they are none, or of another one."""
    if schema.value.envelope and schema.value.kind != AVRO_FORMAT.name:
        raise Unsupported(
            f"envelopes of {schema.value.envelope} are JSON or Avro, and not {schema.value.kind}",
            where="FORMAT",
            fix="ENCODE JSON or ENCODE AVRO, or let the connector write plain records and say FORMAT UPSERT",
        )
    return _known(context, schema)


def _known(context: Context, schema: StreamSchema) -> SchemaRegistryReader:
    registry = schemas_of(context.brokers)
    expected(registry)
    assert registry is not None
    named = schema.value.option(REGISTRY_OPTION)
    if named and named.rstrip("/") != registry.address.url.rstrip("/"):
        raise Unsupported(
            f"the schema registry is {registry.address.url}, and the stream names another one",
            where=REGISTRY_OPTION,
            fix=f"leave {REGISTRY_OPTION} out, or set DOVETAIL_SCHEMA_REGISTRY_URL for all processes",
        )
    return registry


def _written(schema: StreamSchema) -> pa.Schema:
    fields = [(column.name, column.type) for column in schema.columns]
    if schema.value.envelope:
        row = pa.struct(fields)
        return pa.schema([("before", row), ("after", row), ("op", pa.string())])
    counted = schema.kind in (Kind.CHANGELOG, Kind.CHANGELOG_KV)
    return pa.schema([*fields, (WIRE_DELTA, WIRE_DELTA_TYPE)] if counted else fields)


def _expect_columns(
    schema: StreamSchema, definition: SchemaDefinition, name: str, of_key: frozenset[str] = frozenset()
) -> None:
    try:
        members = SCHEMA_PARSERS[schema.value.kind].members(definition, schema.value)
    except SchemaMisfit as misfit:
        raise SqlError(f"{name}: {misfit}", where="ENCODE", fix="name the format of the topic's values") from None
    if members is None:
        return
    for column in schema.columns:
        present = next((one for one in (column.name, *column.former) if one in members), None)
        if present is not None:
            try:
                members[present](column.type)
            except SchemaMisfit as misfit:
                raise SqlError(
                    f"column {column.name} does not fit {name}: {misfit}",
                    where=f"column {column.name}",
                    fix="declare it as the schema has it, or leave it out",
                ) from None
        elif column.default is None and column.record_time is None and column.name not in of_key:
            raise UnknownName(
                f"{name} has no member {column.name}",
                where=f"column {column.name}",
                fix=suggestion(column.name, members, "leave the column out, or give it a DEFAULT"),
            )
