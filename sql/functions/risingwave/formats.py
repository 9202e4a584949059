"""Formats of to_char(), to_date() and to_timestamp(): ``YYYY-MM-DD HH24:MI:SS``, as those of the engine."""

from __future__ import annotations

import re

from sqlglot import exp

from dovetail.sql.functions.registry import Unfit
from dovetail.sql.functions.risingwave.values.kinds import quoted
from dovetail.sql.functions.typed import filled

_C: dict[str, str] = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "DDD": "%j", "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M",
    "SS": "%S", "MS": "%g", "US": "%f", "IYYY": "%G", "IW": "%V", "ID": "%u", "AM": "%p", "PM": "%p", "Mon": "%b",
    "Dy": "%a",
}  # fmt: skip
_MADE: dict[str, str] = {
    "am": "lower(strftime({0}, '%p'))", "pm": "lower(strftime({0}, '%p'))", "MON": "upper(strftime({0}, '%b'))",
    "mon": "lower(strftime({0}, '%b'))", "Month": "rpad(strftime({0}, '%B'), 9, ' ')",
    "MONTH": "rpad(upper(strftime({0}, '%B')), 9, ' ')", "month": "rpad(lower(strftime({0}, '%B')), 9, ' ')",
    "Day": "rpad(strftime({0}, '%A'), 9, ' ')", "DAY": "rpad(upper(strftime({0}, '%A')), 9, ' ')",
    "day": "rpad(lower(strftime({0}, '%A')), 9, ' ')", "DY": "upper(strftime({0}, '%a'))",
    "dy": "lower(strftime({0}, '%a'))", "Q": "CAST(quarter({0}) AS VARCHAR)",
    "D": "CAST(dayofweek({0}) + 1 AS VARCHAR)",
    "W": "CAST((day({0}) - 1) // 7 + 1 AS VARCHAR)",
    "WW": "lpad(CAST((dayofyear({0}) - 1) // 7 + 1 AS VARCHAR), 2, '0')",
    "CC": "lpad(CAST((year({0}) + 99) // 100 AS VARCHAR), 2, '0')",
    "SSSS": "CAST(hour({0}) * 3600 + minute({0}) * 60 + second({0}) AS VARCHAR)",
    "J": "CAST(CAST(julian(CAST({0} AS DATE)) AS BIGINT) AS VARCHAR)", "TZ": "'UTC'", "OF": "'+00'",
    "TZH": "'+00'", "TZM": "'00'",
}  # fmt: skip
_YEAR = (
    "CASE WHEN {year}({{0}}) > 0 THEN strftime({{0}}, '{sign}') ELSE "
    "lpad(CAST(1 - {year}({{0}}) AS VARCHAR), 4, '0') END"
)
"""Before Christ the years are counted down, and there was none of the number 0."""
_YEARS = {
    "YYYY": _YEAR.format(year="year", sign="%Y"),
    "IYYY": _YEAR.format(year="isoyear", sign="%G"),
    "YYY": f"right({_YEAR.format(year='year', sign='%Y')}, 3)",
    "YY": f"right({_YEAR.format(year='year', sign='%Y')}, 2)",
    "Y": f"right({_YEAR.format(year='year', sign='%Y')}, 1)",
}
_NAMES = sorted({*_C, *_MADE, *_YEARS}, key=lambda name: (-len(name), name))
_ZONE = re.compile("\0TZH:?\0TZM|\0TZH")
_FOLDED = {name.lower(): name for name in _C if name not in ("Mon", "Dy", "AM", "PM")}


def _parts(form: str) -> list[tuple[str, bool]]:
    """The names in a format, with whether they are names or stand for themselves."""
    parts: list[tuple[str, bool]] = []
    at, trimmed = 0, ""
    while at < len(form):
        if form[at] == '"':
            end = form.find('"', at + 1)
            end = len(form) if end < 0 else end
            parts.append((form[at + 1 : end], False))
            at = end + 1
            continue
        if form[at : at + 2].upper() == "FM":
            trimmed, at = "FM", at + 2
            continue
        name = next((name for name in _NAMES if form.startswith(name, at)), None)
        size = len(name) if name else 0
        folded = next(
            (name for name in sorted(_FOLDED, key=len, reverse=True) if form[at:].lower().startswith(name)), None
        )
        if folded is not None and len(folded) > size:
            name, size = _FOLDED[folded], len(folded)
        if name is None:
            if form[at].isalpha():
                raise Unfit(f"does not know '{form[at:]}' of its format; it knows {' '.join(_NAMES)}")
            parts.append((form[at], False))
            at += 1
            continue
        parts.append((trimmed + name, True))
        trimmed, at = "", at + size
    return parts


def written(value: exp.Expr, form: str) -> exp.Expr:
    """The text of a time."""
    pieces: list[exp.Expr] = [quoted("")]
    for name, known in _parts(form):
        if not known:
            pieces.append(quoted(name))
            continue
        plain = name.removeprefix("FM")
        made = _YEARS.get(plain) or _MADE.get(plain)
        piece = filled(made, [value]) if made else filled("strftime({0}, {1})", [value, quoted(_C[plain])])
        pieces.append(_trimmed(piece) if plain != name else piece)
    # A time that is NULL has no text, whatever stands between its parts.
    pieces.append(filled("CASE WHEN {0} IS NOT NULL THEN '' END", [value]))
    return filled(" || ".join(f"{{{index}}}" for index in range(len(pieces))), pieces)


_HOUR = "hour({0})"
_OF_INTERVAL: dict[str, tuple[int, str]] = {
    "YYYY": (4, "year({0})"), "YY": (2, "year({0}) % 100"), "MM": (2, "month({0})"), "HH24": (2, _HOUR),
    "HH12": (2, f"CASE WHEN {_HOUR} % 12 = 0 THEN 12 ELSE {_HOUR} % 12 END"), "MI": (2, "minute({0})"),
    "SS": (2, "second({0})"),
}  # fmt: skip
_OF_INTERVAL["HH"] = _OF_INTERVAL["HH12"]
_UNSIGNED: dict[str, str] = {
    "DD": "printf('%02d', day({0}))", "MS": "printf('%03d', millisecond({0}) % 1000)",
    "US": "printf('%06d', microsecond({0}) % 1000000)",
}  # fmt: skip
"""Parts of an interval whose sign takes the place of a digit; that of the others stands before their digits."""
_HALVES = {
    half: f"CASE WHEN {_HOUR} % 24 >= 12 THEN '{letter}{half[1]}' ELSE '{first}{half[1]}' END"
    for half, letter, first in (("AM", "P", "A"), ("PM", "P", "A"), ("am", "p", "a"), ("pm", "p", "a"))
}
_SIGNED_BY = {"YY": "year({0})", "HH": _HOUR, "HH12": _HOUR}
"""A part whose width is that of another one's sign."""


def of_interval(value: exp.Expr, form: str) -> exp.Expr:
    """The text of an interval. Raises Unfit for what it has no part of."""
    pieces: list[exp.Expr] = [filled("CASE WHEN {0} IS NOT NULL THEN '' END", [value])]
    for name, known in _parts(form):
        plain = name.removeprefix("FM")
        if not known:
            pieces.append(quoted(name))
        elif plain in _OF_INTERVAL:
            width, part = _OF_INTERVAL[plain]
            sign = _SIGNED_BY.get(plain, part)
            padded = f"printf(CASE WHEN {sign} < 0 THEN '%0{width + 1}d' ELSE '%0{width}d' END, {part})"
            pieces.append(filled(f"CAST({part} AS VARCHAR)" if plain != name else padded, [value]))
        elif plain in _UNSIGNED or plain in _HALVES:
            pieces.append(filled(_UNSIGNED.get(plain) or _HALVES[plain], [value]))
        else:
            raise Unfit(f"has no '{plain}' of an interval; it has {' '.join([*_OF_INTERVAL, *_UNSIGNED, *_HALVES])}")
    return filled(" || ".join(f"{{{index}}}" for index in range(len(pieces))), pieces)


def _trimmed(piece: exp.Expr) -> exp.Expr:
    """Without blanks at its end and zeros at its beginning."""
    return filled("regexp_replace(rtrim({0}), '^0+(.)', '\\1')", [piece])


def reading(form: str) -> str:
    """The format of the engine that a text is read by."""
    parts = []
    for name, known in _parts(form):
        plain = name.removeprefix("FM")
        if not known:
            parts.append(name.replace("%", "%%"))
        elif plain in _C:
            parts.append(_C[plain])
        elif plain in ("TZH", "TZM"):
            parts.append(f"\0{plain}")
        elif plain.lower() in ("am", "pm", "mon", "month", "day", "dy"):
            parts.append({"am": "%p", "pm": "%p", "mon": "%b", "month": "%B", "day": "%A", "dy": "%a"}[plain.lower()])
        else:
            raise Unfit(f"cannot read '{plain}'; it reads {' '.join(_C)} TZH TZH:TZM")
    found = _ZONE.sub("%z", "".join(parts))
    if "\0" in found:
        raise Unfit("reads TZM behind TZH")
    return found


def reads_zone(engine_format: str) -> bool:
    """Whether what is read by a format of the engine has a zone of its own."""
    return "%z" in engine_format.replace("%%", "")
