"""Statements that others have and Dovetail has not, by the words that they begin with: what serves in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from changelog.errors import Unsupported
from sql.syntax.cursor import Cursor

_SETTINGS = "a query has its settings at its end: SELECT .. SETTINGS seek_to = 'earliest'; SHOW SETTINGS lists them"
_NO_TRANSACTIONS = "leave it out: each statement stands for itself, and each batch of a view is committed as one"
_USERS = "dovetail user add ann --role reader, in a shell; roles and users stand in docs/serve.md"
_NOTHING_BY_HAND = "leave it out: there are no statistics and no storage to be looked after by hand"
_ONE_DATABASE = 'leave it out: there is one database, "default"'
_BY_KEY = "INSERT INTO t VALUES ..: a row of a keyed table replaces the one of its key; DELETE FROM t WHERE .."
_FILES = "write rows from Python, from a frame: db.insert('t', frame), docs/python.md; or by any client of Kafka"

OTHERS: Mapping[str, str] = {
    "SET": _SETTINGS,
    "RESET": _SETTINGS,
    "UNSET": _SETTINGS,
    "USE": _ONE_DATABASE,
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "ROLLBACK"), _NO_TRANSACTIONS),
    **dict.fromkeys(("GRANT", "REVOKE"), _USERS),
    **dict.fromkeys(("ANALYZE", "VACUUM", "OPTIMIZE", "FLUSH"), _NOTHING_BY_HAND),
    **dict.fromkeys(("MERGE", "UPSERT", "REPLACE"), _BY_KEY),
    **dict.fromkeys(("COPY", "LOAD"), _FILES),
    "TRUNCATE": "DELETE FROM t, of what has a key; or DROP STREAM t WITH DATA, and CREATE it again",
    "COMMENT": "write it into the statement: -- as here",
}
"""First word -> what to do."""

CREATED: Mapping[str, str] = {
    **dict.fromkeys(("USER", "ROLE"), _USERS),
    "CATALOG": _ONE_DATABASE,
    **dict.fromkeys(
        ("CONNECTION", "CONNECTOR", "SOURCE CONNECTOR", "SINK CONNECTOR"),
        "any client of Kafka writes and reads the topics; rows of other databases: CREATE DICTIONARY",
    ),
    "SUBSCRIPTION": "dovetail tail v, or changes as server-sent events, docs/serve.md",
    "TYPE": "write the type into the column: STRUCT<a INT, b VARCHAR>, or tuple(a int, b string)",
}
"""What follows CREATE -> what to do."""


def refuse_other(cursor: Cursor) -> None:
    """Raises Unsupported for a statement that begins as one of OTHERS; else reads nothing."""
    for word, fix in OTHERS.items():
        if cursor.at(word):
            _refuse(cursor, word, fix)


def refuse_created(cursor: Cursor) -> None:
    """As ``refuse_other``, behind CREATE."""
    for words, fix in CREATED.items():
        if cursor.at(words):
            _refuse(cursor, f"CREATE {words}", fix)


def _refuse(cursor: Cursor, what: str, fix: str) -> NoReturn:
    cursor.fail(f"there is no statement {what}", fix=fix, kind=Unsupported)
