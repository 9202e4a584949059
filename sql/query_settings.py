"""The settings of a query: one declared list, read when it is planned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.changelog.suggest import choice, suggestion

Value = str | int | float | bool | None
DURATION = "duration"
"""The unit of settings that are a length of time: '500ms', '30s', '5m', '1h', '1d', or a whole number of seconds."""


@dataclass(frozen=True)
class Setting:
    """``choices``: the values that it can have, in lower case; empty for any of its type. ``several``: a list of them
    may be given, with commas. ``bounds``: of a number, both inclusive.
    """

    name: str
    type: type[str] | type[int] | type[bool]
    unit: str
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    several: bool = False


MOST_BUCKETS = 1024
"""Each is a task of every batch, a transactional producer and a partition of the marks."""

MOST_FAN_OUT = 2**62
MOST_BYTES = 2**62
MOST_MS = 2**53
SETTINGS: tuple[Setting, ...] = (
    Setting(
        "output",
        str,
        "",
        "changelog",
        "what the output topic holds: changes, or only rows that stay",
        ("changelog", "append"),
    ),
    Setting(
        "output_format",
        str,
        "",
        "changelog",
        "records with _tp_delta, upserts and tombstones by key, or envelopes of Debezium",
        ("changelog", "upsert", "debezium"),
    ),
    Setting(
        "buckets",
        int,
        "buckets",
        None,
        "how many parts the state is cut into; ALTER VIEW v SET (buckets = n) changes it",
        bounds=(1, MOST_BUCKETS),
    ),
    Setting(
        "seek_to",
        str,
        "",
        None,
        "where append streams start: earliest, latest, a time, -2h, or an offset per partition",
    ),
    Setting(
        "dialect",
        str,
        "",
        None,
        "whose expressions these are; unset: RisingWave's where all that is read are tables and sources",
        ("timeplus", "risingwave"),
    ),
    Setting("join_use_nulls", bool, "", True, "unmatched columns are NULL; 0: the default of their type"),
    Setting(
        "join_max_buffered_bytes",
        int,
        "bytes",
        None,
        "a query that buffers more rows than this is aborted; 524288000 for append with append, and of hybrid state, of"
        " which no more is in memory",
        bounds=(0, MOST_BYTES),
    ),
    Setting(
        "join_algorithm",
        str,
        "",
        "hash",
        "direct: the rows of mutable streams and views on the right are looked up; else hash joins, all the same",
        ("default", "hash", "parallel_hash", "direct", "auto"),
        several=True,
    ),
    Setting(
        "multiway_join",
        bool,
        "",
        True,
        "joins of several streams by one key are one operator that keeps each input once; 0: a chain of joins of two",
    ),
    Setting(
        "join_reorder",
        bool,
        "",
        True,
        "a chain of joins is joined in the order that keeps the fewest rows, as a view is created; 0: as written",
    ),
    Setting(
        "join_order",
        str,
        "",
        None,
        "the order of such chains, ((a c) b), (d (e f)); a view that is created has its own written here",
    ),
    Setting(
        "delta_join",
        str,
        "",
        None,
        "chains that keep their inputs and nothing between, (a b c), (d e f); 1: all that can; 0: none",
    ),
    Setting(
        "share_state",
        bool,
        "",
        True,
        "what several joins, groups or sides of a join would each keep is read and kept once; 0: each for itself",
    ),
    Setting(
        "default_hash_join",
        str,
        "",
        "memory",
        "hybrid: the state of joins may be larger than memory; join_max_buffered_bytes of it are there at once",
        ("memory", "hybrid"),
    ),
    Setting("default_hash_table", str, "", "memory", "as default_hash_join, for aggregates", ("memory", "hybrid")),
    Setting(
        "max_hot_keys",
        int,
        "keys",
        None,
        "of hybrid state: about so many keys are in memory at once, but a 32nd part of them at least",
        bounds=(1, MOST_FAN_OUT),
    ),
    Setting(
        "max_fan_out",
        int,
        "rows",
        None,
        "the most rows of a key on one side of a join: what becomes of more, max_fan_out_action says; left out: any",
        bounds=(1, MOST_FAN_OUT),
    ),
    Setting(
        "max_fan_out_action",
        str,
        "",
        "warn",
        "of a key with more rows than max_fan_out the log of the query tells, or its further records are dead letters",
        ("warn", "dead_letter"),
    ),
    Setting("keep_versions", int, "rows", 3, "versions kept per join key of an ASOF join"),
    Setting(
        "watermark_delay",
        str,
        DURATION,
        None,
        "how far the rows of a stream in a range join may be behind its newest; left out: the width of the range",
    ),
    Setting(
        "idle_timeout", str, DURATION, None, "an input without new records for so long holds the watermark back no more"
    ),
    Setting("late_topic", str, "", None, "the topic that late rows are written to; left out: they are counted"),
    Setting(
        "max_future", str, DURATION, "1d", "an event time so far after the time of its record makes it a dead letter"
    ),
    Setting(
        "max_join_range",
        int,
        "seconds",
        None,
        "a range join that is wider is refused; left out: any width",
        bounds=(0, MOST_MS),
    ),
    Setting(
        "join_quiesce_threshold_ms",
        int,
        "milliseconds",
        None,
        "how long a join with lag_behind waits for a silent right side; left out: forever",
        bounds=(0, MOST_MS),
    ),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}
APPEND_BUFFERED_BYTES = 524_288_000
"""``join_max_buffered_bytes`` of append with append under Timeplus rules, where nothing else bounds the state."""


@dataclass(frozen=True)
class QuerySettings:
    """The settings of one query, checked; ``values`` holds those that were given."""

    values: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.values.get(name, _BY_NAME[name].default)

    def text(self, name: str) -> str:
        value = self[name]
        return "" if value is None else str(value)

    def number(self, name: str) -> int | None:
        value = self[name]
        return None if value is None else int(value)

    def duration_ms(self, name: str) -> int | None:
        """A setting of the unit DURATION, in ms."""
        value = self[name]
        return None if value is None else milliseconds_of(str(value))

    def distance(self, name: str, whole: bool) -> int | None:
        """As ``duration_ms``; over a column of whole numbers the number that was given. Raises SqlError."""
        value = self[name]
        if value is None or not whole:
            return self.duration_ms(name)
        if not str(value).isdecimal():
            raise SqlError(
                f"{name} cannot be {value!r}", where="SETTINGS", fix="the column holds numbers: give a number"
            )
        return int(value)


def checked(given: Mapping[str, Value]) -> QuerySettings:
    """The settings, with their types. Raises UnknownName for one that is not declared, SqlError for a value that does
    not fit.
    """
    return QuerySettings({name.lower(): _value(name.lower(), value) for name, value in given.items()})


def _value(name: str, value: Value) -> Value:
    setting = _BY_NAME.get(name)
    if setting is None:
        raise UnknownName(
            f'there is no setting "{name}"',
            where="SETTINGS",
            fix=suggestion(name, _BY_NAME, "SHOW SETTINGS lists them"),
        )
    converted = _converted(setting, value)
    words = (
        [word.strip() for word in str(converted).lower().split(",")] if setting.several else [str(converted).lower()]
    )
    wrong = next((word for word in words if word not in setting.choices), None) if setting.choices else None
    if wrong is not None:
        raise SqlError(f"{name} cannot be {value!r}", where="SETTINGS", fix=choice(wrong, setting.choices))
    if setting.bounds is not None and not setting.bounds[0] <= int(str(converted)) <= setting.bounds[1]:
        least, most = setting.bounds
        raise SqlError(
            f"{name} cannot be {value!r}", where="SETTINGS", fix=f"give a whole number from {least} to {most:,}"
        )
    return str(converted).lower() if setting.choices else converted


def _converted(setting: Setting, value: Value) -> Value:
    if setting.type is bool:
        if str(value).lower() in ("1", "true", "0", "false"):
            return str(value).lower() in ("1", "true")
    elif setting.type is int:
        try:
            return int(str(value))
        except ValueError:
            pass
    elif setting.unit == DURATION:
        if milliseconds_of(str(value)) is not None:
            return str(value)
        fix = "give a length of time, such as '500ms', '30s', '5m', '1h' or '1d'"
        raise SqlError(f"{setting.name} cannot be {value!r}", where="SETTINGS", fix=fix)
    else:
        return str(value)
    kind = "0 or 1" if setting.type is bool else "a whole number"
    raise SqlError(
        f"{setting.name} cannot be {value!r}",
        where="SETTINGS",
        fix=f"give {kind}{' of ' + setting.unit if setting.unit else ''}",
    )


def milliseconds_of(duration: str) -> int | None:
    """None for what is no length of time; a number without unit is seconds."""
    found = re.fullmatch(r"(\d+)(ms|s|m|h|d)?", duration.strip())
    return int(found[1]) * _UNIT_MS[found[2] or "s"] if found is not None else None


def seek_offsets(seek_to: str) -> str:
    """``seek_to`` as a scan takes it: '' (earliest), a time in ms, if negative before the start, or offsets."""
    if seek_to == "earliest":
        return ""
    if re.fullmatch(r"\d+(,\d+)*", seek_to):
        return seek_to
    ms = moment_ms(seek_to)
    if ms is None:
        raise SqlError(
            f"seek_to cannot be {seek_to!r}",
            where="SETTINGS",
            fix="earliest, latest, '2026-01-31 12:00:00', '-2h', or an offset per partition: '5,3,11'",
        )
    return str(ms)


def moment_ms(text: str) -> int | None:
    """``'2026-01-31 12:00:00'`` (UTC, if it says no other) in ms, ``'-2h'`` as ms before now, below 0; None for what is
    no moment.
    """
    ago = re.fullmatch(r"-(\d+)(ms|s|m|h|d)", text)
    if ago is not None:
        return -int(ago.group(1)) * _UNIT_MS[ago.group(2)]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000)


_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
