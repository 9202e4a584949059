"""Words with a backslash in the console: those of psql that are statements, and what serves in place of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.changelog.errors import SqlError
from dovetail.changelog.suggest import choice

STATEMENTS: Mapping[str, Sequence[str]] = {
    "\\d": ("SHOW STREAMS", "SHOW VIEWS", "SHOW DICTIONARIES"),
    "\\df": ("SHOW FUNCTIONS",),
    "\\di": ("SHOW INDEXES",),
    "\\dt": ("SHOW TOPICS",),
    "\\dv": ("SHOW VIEWS",),
    "\\dm": ("SHOW VIEWS",),
    "\\dn": ("SHOW SCHEMAS",),
}
"""Those that psql has, as statements; behind the first one may stand a name."""
_OWN = ("\\?", "\\h", "\\q", "\\mode")
_IN_PLACE = {
    "\\l": "SHOW STREAMS; there is one database",
    "\\c": "\\q, then dovetail sql with DOVETAIL_BROKERS of the other stack; there is one database",
    "\\du": "dovetail user list, in a shell",
    "\\i": "\\q, then dovetail run file.sql",
    "\\o": "\\q, then dovetail sql -c 'SELECT ..' -o json > file",
    "\\copy": "write rows from Python, from a frame: db.insert('t', frame), docs/python.md",
    "\\x": "\\mode table shows current rows; dovetail sql -c '..' -o json shows a row as names and values",
    "\\timing": "nothing: how long a query took is shown below its rows; that of a view is in EXPLAIN ANALYZE v",
    "\\watch": "a SELECT goes on by itself: \\mode table shows its current rows in place",
    "\\e": "the up key goes back to a statement, and Enter within it begins a new line",
    "\\set": "SETTINGS at the end of a statement; SHOW SETTINGS lists them",
    "\\pset": "\\mode table, or \\mode changelog",
}


def is_backslash(text: str) -> bool:
    """Whether this is a word with a backslash, on one line: no statement begins with one."""
    return text.lstrip().startswith("\\") and "\n" not in text.strip()


def refuse_backslash(text: str) -> None:
    """Raises SqlError for a word of this kind that the console does not know, with what serves in its place."""
    if not is_backslash(text):
        return
    word = text.split(maxsplit=1)[0].rstrip(";").lower()
    fix = _IN_PLACE.get(word) or choice(word, (*STATEMENTS, *_OWN))
    raise SqlError(f"the console has no {word}", where=text.strip(), fix=fix)
