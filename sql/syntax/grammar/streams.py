"""CREATE [MUTABLE | EXTERNAL | RANDOM] STREAM: streams under Timeplus rules."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dovetail.changelog.encodings.schema_id_framing.subjects import SCHEMA_ID_FRAMED
from dovetail.changelog.encodings.settings import value_format
from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.schema import TIME, Kind, RecordPart
from dovetail.changelog.suggest import suggestion
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.columns import Elements, elements_of_stream, primary_key
from dovetail.sql.syntax.grammar.emit import duration_ms
from dovetail.sql.syntax.grammar.hints import ksql
from dovetail.sql.syntax.grammar.hints.filled_forms import Declaration
from dovetail.sql.syntax.grammar.hints.pasted_queries import refuse_query_of
from dovetail.sql.syntax.grammar.settings import at_settings, settings_clause, with_clause
from dovetail.sql.syntax.record_columns import check_parts
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import DATAGEN, KAFKA, CreateStream, Setting

MODES = {
    "append": Kind.APPEND,
    "versioned_kv": Kind.UPSERT,
    "changelog_kv": Kind.CHANGELOG_KV,
    "changelog": Kind.CHANGELOG,
}
KEYED = (Kind.UPSERT, Kind.CHANGELOG_KV)


def create_stream(cursor: Cursor, prefix: str, or_replace: bool) -> CreateStream:
    """What follows CREATE [MUTABLE | EXTERNAL | RANDOM] STREAM; ``prefix`` is MUTABLE, EXTERNAL, RANDOM or ''."""
    cursor.clause = " ".join(["CREATE", *prefix.split(), "STREAM"])
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    start, name = cursor.offset, cursor.path("the name of a stream")
    refuse_query_of(cursor, "stream", name, start)
    random = prefix == "RANDOM"
    found = elements_of_stream(cursor, Rules.TIMEPLUS, random=random)
    settings: dict[str, Setting] = {"connector": DATAGEN} if random else {}
    given: dict[str, Setting] = {}
    clause = cursor.clause
    while not cursor.done:
        if cursor.at("WITH ("):
            given = dict(with_clause(cursor))
            cursor.clause = clause
            if given.get("connector") == DATAGEN:
                settings |= given
                given = {}
            elif ksql.TOPIC not in given:
                cursor.fail_expecting(
                    "SETTINGS", fix="SETTINGS shards = 1; or, as ksqlDB has it, WITH (KAFKA_TOPIC = ..)"
                )
        else:
            _option(cursor, found, settings)
    cursor.clause = clause
    if given or found.record_key:
        stream = Declaration(name, found, str(given.get(ksql.TOPIC, name)))
        settings |= ksql.settings_of_stream(cursor, stream, given, start, found.record_key)
    if prefix == "EXTERNAL":
        _check_type(cursor, settings, start)
    if settings.get("connector", DATAGEN) != DATAGEN:
        fix = "CREATE EXTERNAL STREAM .. SETTINGS type = 'kafka'; or, for generated rows, connector = 'datagen'"
        cursor.fail(f"a stream has no connector {settings['connector']}", fix=fix, kind=Unsupported, offset=start)
    kind = Kind.UPSERT if prefix == "MUTABLE" else _kind_of_mode(cursor, settings, start)
    event_time = text_of(settings.get("event_time_column")) or found.event_time
    version = text_of(settings.get("version_column"))
    check_version(cursor, found, kind, version, start)
    check(cursor, found, kind, start, event_time, settings, version)
    return CreateStream(
        name=name,
        columns=tuple(found.columns),
        kind=kind,
        rules=Rules.TIMEPLUS,
        primary_key=found.primary_key if kind in KEYED else (),
        sort_key=() if kind in KEYED else found.primary_key,
        mutable=prefix == "MUTABLE",
        external=prefix == "EXTERNAL" or (bool(given) and ksql.is_external(given)),
        topic=text_of(settings.get("topic")),
        brokers=text_of(settings.get("brokers")),
        event_time=event_time,
        watermark=found.watermark,
        indexes=tuple(found.indexes),
        settings=settings,
        if_not_exists=if_not_exists,
        or_replace=or_replace,
        included=tuple(found.included),
        expressions=found.expressions or {},
        of_schema=found.of_schema,
    )


def _option(cursor: Cursor, found: Elements, settings: dict[str, Setting]) -> None:
    if cursor.at("PRIMARY KEY"):
        primary_key(cursor, found)
    elif at_settings(cursor):
        settings.update(settings_clause(cursor))
    elif cursor.accept("ORDER BY", "PARTITION BY"):
        # The layout of Timeplus' historical store, which a topic does not have.
        while not cursor.done and not cursor.at("PRIMARY KEY", "SETTINGS", "TTL", "COMMENT"):
            cursor.advance()
    elif cursor.accept("TTL"):
        settings["retention"] = f"{_ttl_ms(cursor)}ms"
    elif cursor.accept("COMMENT"):
        cursor.string()
    else:
        cursor.fail_expecting("PRIMARY KEY", "SETTINGS")


def _ttl_ms(cursor: Cursor) -> int:
    """``to_datetime(_tp_time) + INTERVAL 1 DAY``, in milliseconds: records go by their own time, and by no other."""
    start, wrapped = cursor.offset, cursor.accept("TO_DATETIME (", "TO_DATE (")
    named = cursor.name("a column") == TIME
    whole = cursor.accept(") +" if wrapped else "+")
    if not named or not whole:
        cursor.fail(
            "TTL goes by the time of records, as their topic does",
            fix="TTL to_datetime(_tp_time) + INTERVAL 1 DAY; or SETTINGS retention = '1d'",
            kind=Unsupported,
            offset=start,
        )
    age_ms = duration_ms(cursor)
    cursor.accept("DELETE")
    return age_ms


def _check_type(cursor: Cursor, settings: dict[str, Setting], start: int) -> None:
    if settings.get("type", "kafka") != "kafka":
        cursor.fail(
            f"an external stream of type {settings['type']} cannot be read",
            fix="SETTINGS type = 'kafka', brokers = 'host:9092', topic = 'name'",
            kind=Unsupported,
            offset=start,
        )


def _kind_of_mode(cursor: Cursor, settings: dict[str, Setting], start: int) -> Kind:
    mode = str(settings.get("mode", "append"))
    if mode not in MODES:
        cursor.fail(f'there is no mode "{mode}"', fix=suggestion(mode, MODES), kind=UnknownName, offset=start)
    return MODES[mode]


def check_version(cursor: Cursor, found: Elements, kind: Kind, version: str | None, start: int) -> None:
    """The column by which the row of a primary key stands: one with an order, of a stream whose records are upserts."""
    if not version:
        return
    if kind != Kind.UPSERT:
        cursor.fail(
            f"a version says which record of a primary key stands, and what is of kind {kind.value} keeps all",
            fix="CREATE MUTABLE STREAM, mode = 'versioned_kv', or CREATE TABLE .. (.., PRIMARY KEY (k))",
            kind=Unsupported,
            offset=start,
        )
    if any(column.name == version and pa.types.is_nested(column.type) for column in found.columns):
        cursor.fail(f'the values of "{version}" have no order', fix="version_column = a number or a time", offset=start)
    found.mentions.append((version, start))


def check(
    cursor: Cursor,
    found: Elements,
    kind: Kind,
    start: int,
    event_time: str | None,
    settings: Mapping[str, Setting],
    version: str | None = None,
) -> None:
    """Raises where a keyed stream has no key, where a column is named that is not declared, or is a part of the record
    and cannot be what it is named for. Of columns that a schema names this is asked when they are known.
    """
    if found.of_schema:
        _expect_identified(cursor, found.rules, settings, start)
        return
    if not found.columns:
        cursor.fail("a stream has at least one column that its records hold", offset=start)
    if kind in KEYED and not found.primary_key:
        cursor.fail("a keyed stream has a primary key", fix=f"PRIMARY KEY {found.columns[0].name}", offset=start)
    if event_time is not None:
        found.mentions.append((event_time, start))
    found.check_mentions(cursor)
    if any(one.name == event_time and one.part is not RecordPart.TIMESTAMP for one in found.included):
        cursor.fail(f'"{event_time}" is a part of the record that is no time', fix="name its timestamp", offset=start)
    indexed = [column for index in found.indexes for column in (*index.columns, *index.storing)]
    uses = {"of the primary key": found.primary_key, "of an index": indexed, "the version": filter(None, [version])}
    check_parts(cursor, found.included, uses, start)


def _expect_identified(cursor: Cursor, rules: Rules, settings: Mapping[str, Setting], start: int) -> None:
    connector = str(settings.get("connector", KAFKA)).lower()
    if connector not in (KAFKA, DATAGEN):
        fix = "Debezium writes the changes of a database to Kafka: connector = 'kafka', FORMAT DEBEZIUM ENCODE JSON"
        cursor.fail(f"there is no connector {connector}", fix=fix, kind=Unsupported, offset=start)
    form = value_format(settings).kind
    if form not in SCHEMA_ID_FRAMED:
        said = "data_format = 'Avro'" if rules is Rules.TIMEPLUS else "FORMAT PLAIN ENCODE AVRO"
        cursor.fail(
            f"the columns are not named, and {form} has no schema that names them",
            fix=f"name them, (id int, ..); or, where the schema registry has them, {said}",
            offset=start,
        )


def text_of(value: Setting | None) -> str | None:
    return None if value is None else str(value)
