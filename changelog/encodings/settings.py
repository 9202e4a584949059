"""The format that the settings of a stream declare: ``data_format`` of Timeplus, ENCODE of RisingWave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.changelog.encodings.interface import FormatKind
from dovetail.changelog.encodings.registry import AVRO_FORMAT, FORMATS, JSON_FORMAT, JSON_SCHEMA_FORMAT
from dovetail.changelog.encodings.schema_id_framing.subjects import REGISTRY_OPTION
from dovetail.changelog.schema import JSON, RecordFormat

FORMAT = "format"
DATA_FORMAT = "data_format"
DEBEZIUM = "debezium"
DEBEZIUM_JSON = "debezium_json"
DEBEZIUM_AVRO = "debezium_avro"
ENCODE = "encode"
KEY_FORMAT = "key_format"
KEY_ENCODE = "key.encode"
OPTION = f"{ENCODE}."
"""What the names of the options in ``ENCODE x (..)`` begin with, among the settings of a stream."""


def value_format(settings: Mapping[str, object]) -> RecordFormat:
    """JSON where nothing is said, or no format: a catalog of before may hold such a word, which said nothing."""
    kind = kind_of(settings)
    envelope = DEBEZIUM if _is_debezium(settings) else ""
    if kind is None:
        return replace(JSON, envelope=envelope)
    return RecordFormat(kind.name, _options(kind, settings), envelope)


def _is_debezium(settings: Mapping[str, object]) -> bool:
    said = [str(settings.get(name, "")).lower() for name in (FORMAT, DATA_FORMAT)]
    return any(word in said for word in (DEBEZIUM, DEBEZIUM_JSON, DEBEZIUM_AVRO))


def key_format(settings: Mapping[str, object]) -> RecordFormat:
    """That of the keys: JSON where nothing is said, but what Debezium writes is Avro in both places."""
    kind = _kind(str(settings.get(KEY_FORMAT, "")), str(settings.get(KEY_ENCODE, "")))
    if kind is None and _is_debezium(settings) and kind_of(settings) is AVRO_FORMAT:
        kind = AVRO_FORMAT
    return JSON if kind is None else RecordFormat(kind.name)


def kind_of(settings: Mapping[str, object]) -> FormatKind | None:
    """The kind that is named; None where none is, or an unknown one. JSON by a registry has JSON Schema."""
    if str(settings.get(DATA_FORMAT, "")).lower() == DEBEZIUM_AVRO:
        return AVRO_FORMAT
    found = _kind(str(settings.get(DATA_FORMAT, "")), str(settings.get(ENCODE, "")))
    return JSON_SCHEMA_FORMAT if found is JSON_FORMAT and OPTION + REGISTRY_OPTION in settings else found


def _kind(data_format: str, encode: str) -> FormatKind | None:
    for kind in FORMATS:
        if data_format.lower() in kind.data_format or encode.lower() in kind.encode:
            return kind
    return None


def _options(kind: FormatKind, settings: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    found = {}
    for option in kind.options:
        for name in (option.setting, OPTION + option.name):
            if name in settings:
                said = settings[name]
                found[option.name] = str(said).lower() if isinstance(said, bool) else str(said)
    return tuple(sorted(found.items()))
