"""Tables of Flink SQL over Kafka: WITH ('connector' = 'kafka', 'format' = 'json', ..).

A table of the connector kafka appends a row for each record; one of upsert-kafka has a primary key, by which records
replace each other, and one without a value deletes. Both are tables of Dovetail. Flink is told from RisingWave by names
that only it has.
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.hints.filled_forms import Declaration, noted, refuse
from dovetail.sql.syntax.statements import Setting

_BROKERS = "properties.bootstrap.servers"
_OWN = ("format", "value.format", "key.format", "key.fields", "value.fields-include", _BROKERS)
_UPSERT = "upsert-kafka"
_SAYS_NOTHING = {
    "value.fields-include": ("all",),
    "json.fail-on-missing-field": ("false",),
    "value.json.fail-on-missing-field": ("false",),
    "json.ignore-parse-errors": ("false", "true"),
    "value.json.ignore-parse-errors": ("false", "true"),
    "json.timestamp-format.standard": ("sql", "iso-8601"),
    "value.json.timestamp-format.standard": ("sql", "iso-8601"),
}
"""Options with values under which records are what they are here: one that cannot be read is a dead letter."""
_READ = ("connector", "topic", "format", "value.format", "key.format", "scan.startup.mode", _BROKERS)


def is_of_flink(given: Mapping[str, Setting]) -> bool:
    mode = str(given.get("scan.startup.mode", ""))
    return (
        any(name in given for name in _OWN) or given.get("connector") == _UPSERT or mode.endswith(("offset", "offsets"))
    )


def settings_of_flink(
    cursor: Cursor, table: Declaration, given: Mapping[str, Setting], start: int
) -> dict[str, Setting]:
    """The settings of a table that means the same. Raises Unsupported with the nearest one that there is."""
    upsert = given.get("connector") == _UPSERT
    form = table.keyed() if table.found.primary_key else table.appended()
    if given.get("connector") not in ("kafka", _UPSERT):
        refuse(cursor, f"Flink's connector {given.get('connector', '')} is no topic of Kafka", form, start)
    if upsert != bool(table.found.primary_key):
        _refuse_key(cursor, table, start)
    if upsert and str(given.get("key.format", "json")).lower() != "json":
        note = "the key of a record is the primary key as JSON"
        refuse(cursor, f"keys cannot be {given['key.format']}", noted(form, note), start)
    if not upsert and "key.format" in given:
        note = "all columns are read from the value of a record"
        refuse(cursor, "the keys of records that replace nothing are not read", noted(form, note), start)
    _refuse_position(cursor, table, str(given.get("scan.startup.mode", "")), start)
    for name, value in given.items():
        known = name in _READ or name.startswith("properties.") or str(value).lower() in _SAYS_NOTHING.get(name, ())
        if not known:
            refuse(cursor, f"Flink's option '{name}' = '{value}' means nothing here", form, start)
    return {
        **{name: value for name, value in given.items() if name.startswith("properties.") and name != _BROKERS},
        "connector": "kafka",
        "topic": table.topic,
        **({"properties.bootstrap.server": table.brokers} if table.brokers else {}),
        "format": "upsert" if upsert else "plain",
        "encode": str(given.get("value.format", given.get("format", "json"))).lower(),
    }


def _refuse_key(cursor: Cursor, table: Declaration, start: int) -> None:
    if table.found.primary_key:
        note = "records replace each other by this key; without PRIMARY KEY each of them is a row"
        what = "the connector kafka appends rows, and a primary key says that they replace each other"
        refuse(cursor, what, noted(table.keyed(), note), start)
    refuse(cursor, "upsert-kafka has a primary key", noted(table.appended(), "each record is a row of its own"), start)


def _refuse_position(cursor: Cursor, table: Declaration, mode: str, start: int) -> None:
    """A table has all its records; where to begin is said of a stream, by the query."""
    if mode in ("", "earliest", "earliest-offset"):
        return
    if mode in ("latest-offset", "group-offsets") and not table.found.primary_key:
        note = "a query reads it from now on"
    elif table.found.primary_key:
        refuse(cursor, "the rows of a keyed table are the sum of all its records", table.keyed(), start)
    else:
        note = "a query says from where: SETTINGS seek_to = '2026-01-31 12:00:00', or '-2h'"
    refuse(cursor, f"a table has all its records, and scan.startup.mode is {mode}", noted(table.stream(), note), start)
