"""Passwords do not show: in logs, in errors, in any text that is no statement (``sql.syntax.masked`` is for those).

Each pattern begins with a word of its own and is possessive or bounded from there on: a text of any content is read in
time that grows with its length.
"""

from __future__ import annotations

import re

_WORDS = {
    "a": r"(?:ccess|pi)[._-]?key",
    "c": r"redentials?",
    "p": r"ass(?:word|wd|phrase)|wd|rivate[._-]?key",
    "s": r"ecret(?:[._-]?key)?|asl\.(?!mechanisms?\b)[\w.]{1,32}+",
    "t": r"oken",
}
"""By their first letter: with the letters in both cases in front, most places of a text are passed over at once."""
_WORD = "|".join(f"{letter}(?i:{rest})" for first, rest in _WORDS.items() for letter in (first, first.upper()))
_SECRET_NAME = re.compile(rf"[\w.\-]*?(?:{_WORD})")
_GAP = r"(?:\s++|/\*[^*]{0,40}+\*/|--[^\n]{0,40}+\n){0,4}+"
_NAME = rf"""(?P<name>(?:{_WORD})["'`]?+{_GAP}(?:(?:=>|[=:])(?P<given>){_GAP})?+)"""
# One that is never closed goes to the end: else each name would look for its end anew.
_TEXT = r"""[nNeE]?'(?:[^'\\]|''|\\.?)*+'?|\$(?P<tag>\w{0,64}+)\$(?:(?!\$(?P=tag)\$).)*+(?:\$(?P=tag)\$)?"""
_WORD_GIVEN = r"""(?!(?i:env\b|file\b)|['"(])[^\s,;)&}"']++"""
_NAMED = re.compile(rf"""{_NAME}(?P<secret>{_TEXT}|(?(given)(?:"[^"]*+"?|{_WORD_GIVEN})|(?!)))""", re.DOTALL)
"""``PASSWORD 'x'``, ``sasl.password = 'x'``, ``"password": "x"``, ``password=x``."""
_AS = re.compile(rf"(?P<name>(?i:\bCREATE\s++SECRET\b)[^;]{{0,64}}?(?i:\bAS)\s+)(?P<secret>{_TEXT})", re.DOTALL)
"""``CREATE SECRET name WITH (..) AS 'x'``."""
_LOGIN = re.compile(r"""(?P<name>://[^\s:/@'"]*+:)(?P<secret>[^\s/'"]+)(?=@)""")
"""``mysql://user:x@host``."""
_TOKEN = re.compile(r"""(?P<name>https?://)(?P<secret>[^\s:/@'"]++)(?=@)""")
"""``https://x@host``."""
_PARAMETER = re.compile(
    rf"""(?P<name>[?&][\w.\-]{{0,16}}?(?:(?i:key|sig(?:nature)?|auth(?:orization)?|jwt)|{_WORD})=)(?P<secret>[^\s&'"#;,)]++)"""
)
"""``https://host/path?key=x``."""
_SIGN = re.compile(rf"{_WORD}|://|[?&]")
"""What no secret is without: its name, or the address that it is in."""
_PLACEHOLDERS = frozenset({"..", "...", "password"})
"""What stands for a password in a fix."""


def has_secrets(text: str) -> bool:
    """Whether there may be any in it."""
    return _SIGN.search(text) is not None


def redacted(text: str) -> str:
    """``text`` with ``***`` in the place of every password in it."""
    for pattern in (_NAMED, _AS):
        text = pattern.sub(_masked, text)
    return without_logins(text)


def without_logins(text: str) -> str:
    """``text`` with ``***`` in the place of what is secret in an address."""
    for pattern in (_LOGIN, _TOKEN, _PARAMETER):
        text = pattern.sub(_masked, text)
    return text


def quoted(text: str, longest: int = 200) -> str:
    """The beginning of a text from outside, its passwords masked: it is cut first, and no half of one is left."""
    if len(text) <= longest:
        return redacted(text)
    # Behind the cut may have been the @ that tells a password from a port.
    return redacted(text[:longest] + "@").removesuffix("@") + ".."


def shown(name: str, value: object) -> object:
    """The value of a setting as it may be shown."""
    if is_secret(name):
        return "***"
    return redacted(value) if isinstance(value, str) else value


def is_secret(name: str) -> bool:
    """Whether a setting or option of this name is a password or the like."""
    return _SECRET_NAME.fullmatch(name) is not None


def _masked(found: re.Match[str]) -> str:
    secret = found["secret"]
    if secret.strip("'\"") in _PLACEHOLDERS:
        return found[0]
    mark = secret.lstrip("nNeE")[:1]
    quote = mark if mark in ("'", '"') else ""
    return f"{found['name']}{quote}***{quote}"
