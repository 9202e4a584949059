"""The settings of a stream or table: one declared list, checked when it is created.

Not where it is read: a catalog that was filled before a setting was declared is still one.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import pyarrow as pa

from dovetail.changelog.encodings.registry import FORMATS, format_kind
from dovetail.changelog.encodings.schema_id_framing.subjects import SCHEMA_ID_FRAMED
from dovetail.changelog.encodings.settings import DEBEZIUM, DEBEZIUM_AVRO, DEBEZIUM_JSON, KEY_ENCODE, KEY_FORMAT, OPTION
from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.schema import WIRE_DELTA, Kind
from dovetail.changelog.suggest import nearest, suggestion
from dovetail.sql.query_settings import milliseconds_of
from dovetail.sql.syntax.parse import as_shown
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import DATAGEN, FIELDS, CreateStream


@dataclass(frozen=True)
class StreamSetting:
    """``choices``: the values that it can have, in lower case; empty for any. ``fix``: the way out for another one."""

    name: str
    rules: Rules | None
    choices: tuple[str, ...] = ()
    fix: str = ""


RETENTION, HISTORY = "retention", "history"
"""How long a topic keeps records; and of a compacted one those that a later record of their key replaces."""
_JSON = "write the records as JSON objects: docs/topics.md says how"
_DATA_FORMATS = (*(name for kind in FORMATS for name in kind.data_format), DEBEZIUM_JSON, DEBEZIUM_AVRO)
_ENCODINGS = tuple(name for kind in FORMATS for name in kind.encode)
_KEYS = "write the keys as JSON objects: docs/topics.md says how"
_KEY_FORMATS = tuple(name for kind in FORMATS if kind.of_keys for name in kind.data_format)
_KEY_ENCODINGS = tuple(name for kind in FORMATS if kind.of_keys for name in kind.encode)
_KAFKA = "records come from Kafka: any client writes them; Debezium those of a database, FORMAT DEBEZIUM ENCODE JSON"
_OF_DATAGEN = (
    *("datagen.rows.per.second", "datagen.split.num", "eps", "interval_time", "rows-per-second", "number-of-rows"),
)
"""Of rows that are generated; as many splits as are asked for make the same rows as one."""
STREAM_SETTINGS = (
    StreamSetting("mode", Rules.TIMEPLUS),
    StreamSetting("event_time_column", Rules.TIMEPLUS),
    StreamSetting("version_column", None),
    StreamSetting("late_insert_overrides", Rules.TIMEPLUS),
    StreamSetting("type", Rules.TIMEPLUS, ("kafka",), _KAFKA),
    StreamSetting("data_format", Rules.TIMEPLUS, _DATA_FORMATS, _JSON),
    StreamSetting("topic", None),
    StreamSetting("brokers", Rules.TIMEPLUS),
    StreamSetting("shards", None),
    StreamSetting("replication_factor", None),
    StreamSetting(RETENTION, None),
    StreamSetting(HISTORY, None),
    StreamSetting("connector", None, ("kafka", DATAGEN), _KAFKA),
    *(StreamSetting(name, None) for name in _OF_DATAGEN),
    StreamSetting("properties.bootstrap.server", Rules.RISINGWAVE),
    StreamSetting("kafka.topic", Rules.RISINGWAVE),
    StreamSetting("kafka.brokers", Rules.RISINGWAVE),
    StreamSetting(
        "scan.startup.mode", Rules.RISINGWAVE, ("earliest",), "a table has all its records; a query says seek_to"
    ),
    StreamSetting("format", Rules.RISINGWAVE, ("plain", "upsert", DEBEZIUM), _JSON),
    StreamSetting("encode", Rules.RISINGWAVE, _ENCODINGS, _JSON),
    StreamSetting("key_format", Rules.TIMEPLUS, _KEY_FORMATS, _KEYS),
    StreamSetting("key.encode", Rules.RISINGWAVE, _KEY_ENCODINGS, _KEYS),
    *(
        StreamSetting(option.setting, Rules.TIMEPLUS, option.choices)
        for option in {option.setting: option for kind in FORMATS for option in kind.options if option.setting}.values()
    ),
)
_MEANT = {
    **dict.fromkeys(("partitions", "partition", "num_partitions", "kafka_partitions"), "shards"),
    **dict.fromkeys(("replicas", "replication", "kafka_replicas"), "replication_factor"),
    **dict.fromkeys(("retention_ms", "retention.ms", "ttl", "logstore_retention_ms"), RETENTION),
    **dict.fromkeys(("value_format", "kafka_format", "format"), "data_format"),
    **dict.fromkeys(("timestamp", "event_time", "timestamp_column"), "event_time_column"),
    **dict.fromkeys(("kafka_topic", "kafka_topic_list", "topic_name"), "topic"),
    **dict.fromkeys(("bootstrap_servers", "kafka_broker_list", "properties.bootstrap.servers"), "brokers"),
    "delimited": "csv",
    "json_sr": "json",
    "avro_confluent": "avro",
}
"""Names and values of other systems -> those here that mean the same."""
_OPTION_SETTINGS = {option.setting for kind in FORMATS for option in kind.options if option.setting}
_OF_THE_CLIENT = ("password", "username", "security_protocol", "sasl_mechanism")
"""How brokers are reached, which the process says and no stream; as is what begins with ``properties.``."""


def kept_text(statement: CreateStream) -> str:
    """The text that the catalog keeps. Nobody would read a password for the brokers there, so it has none."""
    return as_shown(statement.text) if any(map(_is_of_the_client, statement.settings)) else statement.text


def _is_of_the_client(name: str) -> bool:
    return name in _OF_THE_CLIENT or name.startswith("properties.")


def expect_settings(statement: CreateStream) -> None:
    """Raises UnknownName for a setting that is not declared, Unsupported for a value that it cannot have."""
    where = "SETTINGS" if statement.rules is Rules.TIMEPLUS else "WITH, FORMAT, ENCODE"
    known = {one.name: one for one in STREAM_SETTINGS if one.rules in (None, statement.rules)}
    for name, value in statement.settings.items():
        if name.startswith((OPTION, FIELDS)) or (_is_of_the_client(name) and name not in known):
            continue
        setting = known.get(name)
        if setting is None:
            raise UnknownName(
                f'a stream has no setting "{name}"', where=where, fix=_meant(name, known) or suggestion(name, known)
            )
        if setting.choices and str(value).lower() not in setting.choices:
            taken = " or ".join(setting.choices)
            raise Unsupported(f"{name} cannot be {value}, only {taken}", where=where, fix=_fix(setting, str(value)))
    _expect_generated(statement, where)
    _expect_options(statement, where)
    _expect_single(statement, where)
    _expect_envelope(statement, where)
    _expect_key(statement, where)
    _expect_kept(statement, where)


def _expect_generated(statement: CreateStream, where: str) -> None:
    """Raises SqlError where the rows cannot be generated as they are declared, or are not to be, and it is said how."""
    if statement.generated:
        from dovetail.sql.datagen.row_generator import RowGenerator  # noqa: PLC0415 - the planner is for who needs it

        RowGenerator.of(statement)
        return
    for name in statement.settings:
        if name in _OF_DATAGEN or name.startswith(FIELDS):
            raise Unsupported(
                f"{name} is for rows that are generated",
                where=where,
                fix=f"WITH (connector = '{DATAGEN}', ..), or leave it out",
            )


def kept_ms(statement: CreateStream, setting: str) -> int | None:
    """RETENTION or HISTORY in milliseconds; None where nothing is said. Raises SqlError for what is no duration."""
    value = statement.settings.get(setting)
    if value is None:
        return None
    found = milliseconds_of(str(value))
    if not found:
        raise SqlError(f"{setting} cannot be {value!r}", where="SETTINGS", fix=f"a length of time: {setting} = '7d'")
    return found


def _expect_kept(statement: CreateStream, where: str) -> None:
    """Records go only where that is no change of a row that stands, and stay only where they would go."""
    given = [setting for setting in (RETENTION, HISTORY) if kept_ms(statement, setting) is not None]
    if given and statement.external:
        raise Unsupported(
            f"the topic of an external stream is not made here, so {given[0]} has no effect on it",
            where=where,
            fix="leave it out; kafka-configs --alter sets retention.ms and min.compaction.lag.ms of a topic",
        )
    if RETENTION in given and statement.kind is not Kind.APPEND:
        raise Unsupported(
            f'a row of "{statement.name}" stands until a record takes it back; by its age it would go without one',
            where=where,
            fix=f"leave {RETENTION} out, and delete rows; or keep it for append streams",
        )
    if HISTORY in given and (statement.kind is not Kind.UPSERT or statement.version):
        raise Unsupported(
            f'the topic of "{statement.name}" is not compacted, so it keeps its whole history',
            where=where,
            fix=f"leave {HISTORY} out; it is for mutable streams and tables with a primary key",
        )


def _fix(setting: StreamSetting, value: str) -> str:
    guess = nearest(value, setting.choices)
    offered = "" if guess is None else f'did you mean "{guess}"?'
    return _meant(value.lower(), setting.choices) or offered or setting.fix


def _meant(name: str, known: Container[str]) -> str:
    """The name that another system's has here, of those that are ``known``; '' where it has none."""
    meant = _MEANT.get(name.lower(), "")
    return f'did you mean "{meant}"?' if meant in known else ""


def _expect_single(statement: CreateStream, where: str) -> None:
    """A value that is one column leaves no place for others, nor for a delta."""
    schema = statement.schema
    kind = format_kind(schema.value.kind)
    if not kind.single:
        return
    held = [column for column in schema.columns if column.name not in schema.primary_key]
    types = (pa.types.is_string, pa.types.is_binary)
    if len(held) != 1 or not any(is_of(held[0].type) for is_of in types):
        raise Unsupported(
            f"a value of {kind.name} is one column of text or bytes, and there are {', '.join(c.name for c in held)}",
            where=where,
            fix="declare one column, besides those of a primary key; a view takes it apart",
        )
    if schema.kind in (Kind.CHANGELOG, Kind.CHANGELOG_KV):
        raise Unsupported(
            f"a value of {kind.name} has no place for {WIRE_DELTA}",
            where=where,
            fix="CREATE STREAM without a mode, or CREATE TABLE .. APPEND ONLY",
        )


def _expect_envelope(statement: CreateStream, where: str) -> None:
    """An envelope says which row goes, and has names for what it holds."""
    schema = statement.schema
    if not schema.value.envelope:
        return
    if schema.kind is Kind.APPEND:
        raise Unsupported(
            f'envelopes of Debezium take rows back, and the rows of "{schema.name}" stay',
            where=where,
            fix="CREATE TABLE .. (.., PRIMARY KEY (..)), CREATE MUTABLE STREAM .. PRIMARY KEY, or mode = 'changelog'",
        )
    if not format_kind(schema.value.kind).named:
        raise Unsupported(
            f"an envelope of Debezium has members, and {schema.value.kind} has none",
            where=where,
            fix="FORMAT DEBEZIUM ENCODE JSON",
        )


def _expect_key(statement: CreateStream, where: str) -> None:
    """A key is of the columns of a primary key; one that is one column in a form that a text has."""
    schema = statement.schema
    kind = format_kind(schema.key.kind)
    said = KEY_FORMAT in statement.settings or KEY_ENCODE in statement.settings
    if said and kind.name in SCHEMA_ID_FRAMED and not schema.primary_key:
        raise Unsupported(
            f"a key of {kind.name} has the columns of a primary key, and there is none",
            where=where,
            fix="declare a primary key, or leave the format of keys out",
        )
    if not kind.single:
        return
    held = [schema.column(name) for name in schema.primary_key]
    if len(held) != 1 or pa.types.is_nested(held[0].type):
        raise Unsupported(
            f"a key of {kind.name} is the one column of a primary key, and there "
            f"{'is none' if not held else 'are ' + ', '.join(schema.primary_key)}",
            where=where,
            fix="declare a primary key of one column, neither array nor object, or keys of JSON",
        )


def _expect_options(statement: CreateStream, where: str) -> None:
    """Raises where an option is given that is not one of the format, or a value that it cannot have."""
    kind = format_kind(statement.schema.value.kind)
    by_encode = {OPTION + option.name: option for option in kind.options}
    for name, value in statement.settings.items():
        if name.startswith(OPTION) and name not in by_encode:
            unknown, known = name.removeprefix(OPTION), [option.name for option in kind.options]
            raise UnknownName(
                f'{kind.name} has no option "{unknown}"', where=where, fix=suggestion(unknown, known, "leave it out")
            )
        if name in _OPTION_SETTINGS and name not in {option.setting for option in kind.options}:
            raise Unsupported(f"{name} does not apply to {kind.name}", where=where, fix="leave it out")
        option = by_encode.get(name)
        if option is not None and option.choices and str(value).lower() not in option.choices:
            taken = " or ".join(option.choices)
            raise Unsupported(
                f"{option.name} cannot be {value}, only {taken}",
                where=where,
                fix=f"{option.name} = {option.choices[0]}",
            )
