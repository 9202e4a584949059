"""How what a pattern has kept is spelled here; each raises LookupError for what has no such spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from dovetail.sql.syntax.dialect import DURATION

_STEPS = {"s": "1s", "m": "10s", "h": "1m", "d": "1h", "w": "1d"}
"""How often a window of so many of a unit begins in the place of EMIT LAST, which says nothing of that."""
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
_PART = re.compile(r"''(?P<text>[^']*)''|(?P<sign>[A-Za-z]+)|(?P<other>[^A-Za-z']+)")
_OF_RECORD = ("ROWTIME", "WINDOWSTART", "WINDOWEND")
"""Numbers of milliseconds there, and times here."""


def _interval(text: str) -> str:
    amount, _, unit = text.strip("'").partition(" ")
    if not (text.isascii() and amount.isdecimal() and unit.isalpha()):
        raise LookupError(text)
    return f"INTERVAL '{amount} {unit}'"


def _whole(pattern: re.Pattern[str], text: str) -> str:
    if pattern.fullmatch(text) is None:
        raise LookupError(text)
    return text


def _names(text: str, *, dropped: bool = False) -> str:
    """Of ``k, n, 1m`` the names; or nothing, if there is more."""
    names = ", ".join(one for one in text.split(", ") if not one[:1].isdigit())
    if not names or (dropped and names == text):
        raise LookupError(text)
    return "" if dropped else names


def _format(java: str, *, number: int) -> str:
    """A literal of a format of Java."""
    at, made = 1, ""
    while at < len(java) - 1 and java[0] == java[-1] == "'":
        part = _PART.match(java, at, len(java) - 1)
        if part is None:
            break
        quoted = f'"{part["text"]}"' if number else part["text"]
        made += _SIGNS[part["sign"]][number] if part["sign"] else part["other"] or quoted
        at = part.end()
    if at < len(java) - 1 or len(java) < 2:
        raise LookupError(java)
    return f"'{made}'"


SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "interval": _interval,
    "duration": partial(_whole, DURATION),
    "step": lambda text: _STEPS.get(_whole(DURATION, text).lstrip("0123456789"), text),
    "names": _names,
    "dropped": partial(_names, dropped=True),
    "time": lambda text: text if text.rpartition(".")[2].upper() in _OF_RECORD else f"TO_TIMESTAMP_LTZ({text}, 3)",
    "unit": lambda digits: {"0": "second", "3": "milli"}[digits],
    "divided": lambda digits: {"0": "", "3": " / 1000.0"}[digits],
    "format_datetime": partial(_format, number=0),
    "to_char": partial(_format, number=1),
}
