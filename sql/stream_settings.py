"""The settings of a stream or table: one declared list, checked when it is created.

Not where it is read: a catalog that was filled before a setting was declared is still one.
"""

from __future__ import annotations

from dataclasses import dataclass

from changelog.errors import UnknownName, Unsupported
from changelog.suggest import suggestion
from sql.syntax.redact import redacted
from sql.syntax.rules import Rules
from sql.syntax.statements import CreateStream


@dataclass(frozen=True)
class StreamSetting:
    """``choices``: the values that it can have, in lower case; empty for any. ``fix``: the way out for another one."""

    name: str
    rules: Rules | None
    choices: tuple[str, ...] = ()
    fix: str = ""


_JSON = "write the records as JSON objects: docs/topics.md says how"
_KAFKA = "records come from Kafka: any client writes them, and so does INSERT"
STREAM_SETTINGS = (
    StreamSetting("mode", Rules.TIMEPLUS),
    StreamSetting("event_time_column", Rules.TIMEPLUS),
    StreamSetting("version_column", Rules.TIMEPLUS),
    StreamSetting("late_insert_overrides", Rules.TIMEPLUS),
    StreamSetting("type", Rules.TIMEPLUS, ("kafka",), _KAFKA),
    StreamSetting("data_format", Rules.TIMEPLUS, ("jsoneachrow", "json"), _JSON),
    StreamSetting("topic", None),
    StreamSetting("brokers", Rules.TIMEPLUS),
    StreamSetting("shards", None),
    StreamSetting("replication_factor", None),
    StreamSetting("connector", Rules.RISINGWAVE, ("kafka",), _KAFKA),
    StreamSetting("properties.bootstrap.server", Rules.RISINGWAVE),
    StreamSetting("kafka.topic", Rules.RISINGWAVE),
    StreamSetting("kafka.brokers", Rules.RISINGWAVE),
    StreamSetting(
        "scan.startup.mode", Rules.RISINGWAVE, ("earliest",), "a table has all its records; a query says seek_to"
    ),
    StreamSetting("format", Rules.RISINGWAVE, ("plain", "upsert"), _JSON),
    StreamSetting("encode", Rules.RISINGWAVE, ("json",), _JSON),
)
_OF_THE_CLIENT = ("password", "username", "security_protocol", "sasl_mechanism")
"""How brokers are reached, which the process says and no stream; as is what begins with ``properties.``."""


def kept_text(statement: CreateStream) -> str:
    """The text that the catalog keeps. Nobody would read a password for the brokers there, so it has none."""
    return redacted(statement.text) if any(map(_is_of_the_client, statement.settings)) else statement.text


def _is_of_the_client(name: str) -> bool:
    return name in _OF_THE_CLIENT or name.startswith("properties.")


def expect_settings(statement: CreateStream) -> None:
    """Raises UnknownName for a setting that is not declared, Unsupported for a value that it cannot have."""
    where = "SETTINGS" if statement.rules is Rules.TIMEPLUS else "WITH, FORMAT, ENCODE"
    known = {one.name: one for one in STREAM_SETTINGS if one.rules in (None, statement.rules)}
    for name, value in statement.settings.items():
        if _is_of_the_client(name) and name not in known:
            continue
        setting = known.get(name)
        if setting is None:
            raise UnknownName(f'a stream has no setting "{name}"', where=where, fix=suggestion(name, known))
        if setting.choices and str(value).lower() not in setting.choices:
            taken = " or ".join(setting.choices)
            raise Unsupported(f"{name} cannot be {value}, only {taken}", where=where, fix=setting.fix)
