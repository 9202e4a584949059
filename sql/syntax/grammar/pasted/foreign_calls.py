"""Calls of ksqlDB and Flink that are made of other calls here: by the dialect of what they read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from dovetail.sql.syntax.rules import Rules

_SIGNS: Mapping[str, tuple[str, str]] = {
    "yyyy": ("%Y", "YYYY"),
    "uuuu": ("%Y", "YYYY"),
    "yy": ("%y", "YY"),
    "MM": ("%m", "MM"),
    "dd": ("%d", "DD"),
    "HH": ("%H", "HH24"),
    "hh": ("%I", "HH12"),
    "mm": ("%i", "MI"),
    "ss": ("%s", "SS"),
    "SSSSSS": ("%f", "US"),
    "a": ("%p", "AM"),
}
"""A sign of Java's formats -> those of format_datetime and of to_char."""
_DAY_AND_TIME = "'yyyy-MM-dd HH:mm:ss'"
_PART = re.compile(r"''(?P<text>[^']*)''|(?P<sign>[A-Za-z]+)|(?P<other>[^A-Za-z']+)")
_OF_RECORD = frozenset(("ROWTIME", "WINDOWSTART", "WINDOWEND"))
"""Numbers of milliseconds there, and times here."""


def called_as_here(name: str, arguments: Sequence[str], rules: Rules) -> str:
    """What a call gives there, in calls of the dialect; '' where it is none of these."""
    made = _CALLS.get((name.upper(), len(arguments)))
    return "" if made is None else made(arguments, rules)


def _form(java: str, rules: Rules) -> str:
    """A literal of a format in the signs of the dialect; '' where one is not known there, or it is no literal."""
    inner, written = java[1:-1], ""
    if len(java) < 2 or java[0] != "'" or java[-1] != "'":
        return ""
    at = 0
    while at < len(inner):
        part = _PART.match(inner, at)
        signs = _SIGNS.get(part["sign"]) if part is not None and part["sign"] else None
        if part is None or (part["sign"] and signs is None):
            return ""
        if signs is not None:
            written += signs[rules is Rules.RISINGWAVE]
        elif part["text"] is not None:
            written += part["text"] if rules is Rules.TIMEPLUS else f'"{part["text"]}"'
        else:
            written += part["other"]
        at = part.end()
    return f"'{written}'"


def _said(template: str, arguments: Sequence[str], form: str) -> str:
    return template.format(*arguments, form=form) if form else ""


def _time_of_text(arguments: Sequence[str], rules: Rules) -> str:
    streams = rules is Rules.TIMEPLUS
    form = _form(arguments[1], rules)
    if streams and not form:
        return f"parse_datetime64_best_effort({arguments[0]}, 3)"
    return _said("parse_datetime({0}, {form})" if streams else "to_timestamp({0}, {form})", arguments, form)


def _number_of_text(arguments: Sequence[str], rules: Rules) -> str:
    time = _time_of_text(arguments, rules)
    if not time:
        return ""
    if rules is Rules.TIMEPLUS:
        return f"to_unix_timestamp64_milli({time})"
    return f"CAST(extract(epoch FROM {time}) * 1000 AS BIGINT)"


def _text_of_time(arguments: Sequence[str], rules: Rules) -> str:
    template = "format_datetime({0}, {form})" if rules is Rules.TIMEPLUS else "to_char({0}, {form})"
    return _said(template, arguments, _form(arguments[1], rules))


def _text_of_number(arguments: Sequence[str], rules: Rules) -> str:
    number, form = arguments
    is_time = number.rpartition(".")[2].upper() in _OF_RECORD
    return _text_of_time((number if is_time else _time_of_number((number, "3"), rules), form), rules)


def _time_of_number(arguments: Sequence[str], rules: Rules) -> str:
    number, digits = arguments
    if digits not in ("0", "3"):
        return ""
    if rules is Rules.TIMEPLUS:
        return f"from_unix_timestamp64_{'milli' if digits == '3' else 'second'}({number})"
    return f"to_timestamp({number}{' / 1000.0' if digits == '3' else ''})"


def _text_of_seconds(arguments: Sequence[str], rules: Rules) -> str:
    form = arguments[1] if len(arguments) > 1 else _DAY_AND_TIME
    return _text_of_time((_time_of_number((arguments[0], "0"), rules), form), rules)


def _greatest_distinct(arguments: Sequence[str], rules: Rules) -> str:
    value, count = arguments
    if rules is Rules.TIMEPLUS:
        return f"array_slice(array_reverse_sort(group_uniq_array({value})), 1, {count})"
    return f"array_slice(array_reverse(array_sort(array_agg(DISTINCT {value}))), 1, {count})"


_CALLS: Mapping[tuple[str, int], Callable[[Sequence[str], Rules], str]] = {
    ("TOPK", 2): lambda arguments, rules: f"max_k({', '.join(arguments)})",
    ("TOPKDISTINCT", 2): _greatest_distinct,
    ("STRINGTOTIMESTAMP", 2): _number_of_text,
    ("TIMESTAMPTOSTRING", 2): _text_of_number,
    ("PARSE_TIMESTAMP", 2): _time_of_text,
    ("FORMAT_TIMESTAMP", 2): _text_of_time,
    ("TO_TIMESTAMP_LTZ", 2): _time_of_number,
    ("FROM_UNIXTIME", 1): _text_of_seconds,
    ("FROM_UNIXTIME", 2): _text_of_seconds,
}
SHAPED = frozenset(name for name, _ in _CALLS)
"""The names of these calls."""
