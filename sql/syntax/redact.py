"""Passwords do not show: in SHOW CREATE, in EXPLAIN, in logs, in errors."""

from __future__ import annotations

import re

_NAME = (
    r"[\w.\-]*(?:password|passwd|pwd|secret|token|credentials?|(?:access|secret|api|private)[._-]?key"
    r"|sasl\.(?!mechanisms?\b)[\w.]+)"
)
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
_GIVEN = rf"""(?P<name>["'`]?\b{_NAME}["'`]?\s*"""
_TEXT = re.compile(rf"""{_GIVEN}(?:=>|[=:])?\s*)'(?:[^'\\]|''|\\.)*(?:'|$)""", re.IGNORECASE)
"""``PASSWORD 'x'``, ``sasl.password = 'x'``; in a line that was cut out of a longer text, the quote may stay open."""
_QUOTED = re.compile(rf"""{_GIVEN}[=:]\s*")[^"]*""", re.IGNORECASE)
"""``"password": "x"``, and ``password="x"`` inside a JAAS line."""
_BARE = re.compile(rf"""{_GIVEN}[=:]\s*)(?!['"\s(])[^\s,;)&}}"']+""", re.IGNORECASE)
"""``password=x`` inside a list of properties."""
_NAMED = re.compile(r"(?P<name>\bSECRET\b(?:[^';]|'[^']*')*?\bAS\s+)'(?:[^'\\]|''|\\.)*(?:'|$)", re.IGNORECASE)
"""``CREATE SECRET name WITH (..) AS 'x'``."""
_URL = re.compile(r"(?P<name>\b[a-z][a-z0-9+.\-]*://[^\s:/@'\"]*:)[^\s/'\"]+@", re.IGNORECASE)
"""``mysql://user:x@host``."""


def redacted(text: str) -> str:
    """``text`` with ``***`` in the place of every password in it."""
    text = _TEXT.sub(lambda found: found["name"] + "'***'", text)
    text = _NAMED.sub(lambda found: found["name"] + "'***'", text)
    text = _QUOTED.sub(lambda found: found["name"] + "***", text)
    text = _BARE.sub(lambda found: found["name"] + "***", text)
    return _URL.sub(lambda found: found["name"] + "***@", text)


def shown(name: str, value: object) -> object:
    """The value of a setting as it may be shown."""
    if _SECRET_NAME.fullmatch(name):
        return "***"
    return redacted(value) if isinstance(value, str) else value
