"""CREATE STREAM that leaves its columns to the newest schema of the topic's values.

They are written into the statement, which is read anew with them: the catalog keeps them, so that they are what they
were when the stream was created, whatever the registry says later, or when it is away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from dovetail.broker.registry.client import SchemaRegistryReader
from dovetail.changelog.encodings.avro.columns import type_of
from dovetail.changelog.encodings.avro.schema import WriterSchema
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.encodings.schema_id_framing.schema_parser import ColumnType, column_type
from dovetail.changelog.encodings.schema_id_framing.subjects import SCHEMA_ID_FRAMED, SUBJECT
from dovetail.changelog.encodings.schema_parsers import SCHEMA_PARSERS
from dovetail.changelog.errors import InternalError, SqlError, UnknownName, Unsupported
from dovetail.changelog.schema import StreamSchema
from dovetail.services.session.context import Context
from dovetail.services.session.schemas.registration import registry_of
from dovetail.services.session.schemas.type_texts import type_text
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.grammar.columns import RESERVED
from dovetail.sql.syntax.grammar.hints.filled_forms import written
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateStream

_WHERE = "the column list"


def with_columns(context: Context, statement: CreateStream) -> CreateStream:
    """``statement`` with the columns of the newest schema. Raises UnknownName where the subject has none, Unsupported
    where a member is no column.
    """
    schema = statement.schema
    subject = schema.value.option(SUBJECT)
    registry = registry_of(context, schema)
    newest = registry.latest(subject)
    definition = None if newest is None else registry.definition(newest)
    if definition is None:
        raise UnknownName(
            f"the schema registry has no schema of {subject!r} that would name the columns",
            where=_WHERE,
            fix="name the columns, (id int, ..), of which a schema is made; or register one",
        )
    name = f"schema {newest} of {subject}"
    try:
        found = SCHEMA_PARSERS[schema.value.kind].columns(definition, schema.value)
    except SchemaMisfit as misfit:
        raise SqlError(f"{name}: {misfit}", where=_WHERE, fix="name the columns, (id int, ..)") from None
    return _read_with(statement, _declared({**_of_key(registry, schema), **found}, name, statement.rules))


def _of_key(registry: SchemaRegistryReader, schema: StreamSchema) -> Mapping[str, ColumnType]:
    """The columns of the primary key that keys hold, where keys have a schema."""
    if schema.key.kind not in SCHEMA_ID_FRAMED or not schema.primary_key:
        return {}
    newest = registry.latest(schema.key.option(SUBJECT))
    definition = None if newest is None else registry.definition(newest)
    if definition is None:
        return {}
    try:
        writer = WriterSchema.of(definition).as_record(schema.primary_key[0])
    except SchemaMisfit as misfit:
        raise SqlError(f"schema {newest} of keys: {misfit}", where=_WHERE, fix="leave key_format out") from None
    members = {name: one for name, one in writer.fields().items() if name in schema.primary_key}
    return {name: column_type(partial(type_of, writer, one)) for name, one in members.items()}


def _declared(found: Mapping[str, pa.DataType | SchemaMisfit], name: str, rules: Rules) -> str:
    """The columns as a list declares them."""
    texts: dict[str, str] = {}
    misfits: dict[str, SchemaMisfit] = {}
    for member, kind in found.items():
        if member in RESERVED:
            continue
        match kind if isinstance(kind, SchemaMisfit) else _type_text(kind, rules):
            case SchemaMisfit() as misfit:
                misfits[member] = misfit
            case text:
                texts[member] = text
    listed = ", ".join(f"{written(member)} {text}" for member, text in texts.items())
    for member, misfit in misfits.items():
        raise Unsupported(
            f"member {member} of {name} is no column: {misfit}",
            where=_WHERE,
            fix=f"name the columns, without it: ({listed})" if texts else "write the records with other members",
        )
    if not texts:
        raise Unsupported(f"{name} has no members", where=_WHERE, fix="name the columns, (id int, ..)")
    return listed


def _type_text(kind: pa.DataType, rules: Rules) -> str | SchemaMisfit:
    text, there_is = type_text(kind, rules)
    return text if there_is else SchemaMisfit(f"there is no type {text}")


def _read_with(statement: CreateStream, columns: str) -> CreateStream:
    text = statement.text
    cursor = Cursor(text, Dovetail().tokenize(text))
    for words in ("CREATE", "OR REPLACE", "MUTABLE", "EXTERNAL", "STREAM", "TABLE", "SOURCE", "IF NOT EXISTS"):
        cursor.accept(words)
    cursor.path()
    end = _end(cursor)
    cursor.accept("APPEND ONLY")
    if not cursor.accept("("):
        text = f"{text[:end]} ({columns}){text[end:]}"
    elif cursor.at("*"):
        text = f"{text[: cursor.offset]}{columns}{text[cursor.offset + 1 :]}"
    else:
        text = f"{text[: cursor.offset]}{columns}, {text[cursor.offset :]}"
    made = parse_one(text)
    if not isinstance(made, CreateStream) or made.of_schema:
        raise InternalError("a stream with the columns of its schema is not a stream", where=text)
    return replace(made, with_data=statement.with_data)


def _end(cursor: Cursor) -> int:
    return int(cursor.tokens[cursor.index - 1].end) + 1
