"""Statements that others have and Dovetail has not, by the words that they begin with: what serves in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from sqlglot.tokenizer_core import Token

from dovetail.changelog.errors import Unsupported
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.pasted.filled_forms import noted
from dovetail.sql.syntax.grammar.pasted.text_edits import Edit, applied

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
    **dict.fromkeys(("CATALOG", "CLUSTER"), _ONE_DATABASE),
    **dict.fromkeys(
        ("CONNECTION", "CONNECTOR", "SOURCE CONNECTOR", "SINK CONNECTOR"),
        "any client of Kafka writes and reads the topics; rows of other databases: CREATE DICTIONARY",
    ),
    "SUBSCRIPTION": "dovetail tail v, or changes as server-sent events, docs/serve.md",
    "TYPE": "write the type into the column: STRUCT<a INT, b VARCHAR>, or tuple(a int, b string)",
}
"""What follows CREATE -> what to do."""


_ONE_OF_ALL = 'SHOW STREAMS;  -- all there is stands in one database, "default"; SHOW VIEWS, SHOW DICTIONARIES'
_OF_DATABASES = "SHOW DICTIONARIES;  -- rows of other databases; any client of Kafka writes and reads the topics"
_OF_VIEWS = "SHOW VIEWS;  -- each writes to a topic of its own, which any client of Kafka reads"
_OF_SETTINGS = "SHOW SETTINGS;  -- those of queries, each of which is given at the end of a statement"
LISTED: Mapping[str, str] = {
    **dict.fromkeys(("DATABASES", "SCHEMAS", "CATALOGS", "CURRENT", "NAMESPACES", "KEYSPACES"), _ONE_OF_ALL),
    **dict.fromkeys(("CONNECTORS", "CONNECTIONS", "SECRETS", "CLUSTERS", "DISKS"), _OF_DATABASES),
    **dict.fromkeys(("SINKS", "SUBSCRIPTIONS", "CURSORS", "INTERNAL TABLES"), _OF_VIEWS),
    **dict.fromkeys(("PROPERTIES", "VARIABLES", "PARAMETERS", "ALL", "SESSION"), _OF_SETTINGS),
    **dict.fromkeys(("PROCESSLIST", "FRAGMENTS", "ACTORS"), "SHOW QUERIES;  -- what runs, in which engine"),
    **dict.fromkeys(("MODULES", "JARS", "TYPES", "USER FUNCTIONS"), "SHOW FUNCTIONS;  -- of CREATE FUNCTION"),
    **dict.fromkeys(("FORMAT SCHEMAS", "REPLICAS", "PARTITIONS"), "SHOW TOPICS;  -- with the partitions of each"),
    **dict.fromkeys(("USERS", "ROLES", "GRANTS", "CURRENT_USER"), "dovetail user list, in a shell"),
}
"""What follows SHOW -> what lists something like it."""
_KINDS = ("SINK", "CONNECTION", "CONNECTOR", "CATALOG", "DATABASE", "SCHEMA", "SECRET", "SUBSCRIPTION", "QUERY")
"""Kinds of things that others show and describe by name."""
_SAYING_NOTHING = ("GLOBAL TEMPORARY", "LOCAL TEMPORARY", "TEMPORARY", "TEMP", "UNLOGGED", "LIVE")
_MORE = ("EXTENDED", "FORMATTED")
_EXPLAINED = ("VERBOSE", "ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE", "SYNTAX", "PIPELINE")


def refuse_listed(cursor: Cursor) -> None:
    """Raises Unsupported for what others list; else reads nothing."""
    for words, fix in LISTED.items():
        if cursor.at(words):
            cursor.fail(f"there is no statement SHOW {words}", fix=fix, kind=Unsupported)


def refuse_kind(cursor: Cursor, statement: str) -> None:
    """As ``refuse_listed``, for ``statement`` of a kind of things that there is none of: ``SHOW CREATE SINK s``."""
    if cursor.at(*_KINDS) and cursor.index + 2 == len(cursor.tokens):
        kind, last = cursor.word(), cursor.tokens[-1]
        named = cursor.script[last.start : last.end + 1]
        fix = f"{statement} {named};  -- where a stream, view or dictionary has this name"
        cursor.fail(f"there are no things of the kind {kind}", fix=fix, kind=Unsupported)


def refuse_details(cursor: Cursor) -> None:
    """As ``refuse_listed``, for ``DESCRIBE EXTENDED s`` and ``DESCRIBE s EXTENDED``."""
    rest = range(cursor.index, len(cursor.tokens))
    more = next((place for place in rest if cursor.word(place - cursor.index) in _MORE), None)
    if more is None or len(rest) < 2:
        return
    kept = [cursor.tokens[place] for place in rest if place != more]
    named = " ".join(cursor.script[token.start : token.end + 1] for token in kept)
    fix = f"DESCRIBE {named};  -- its columns; SHOW CREATE has its settings, EXPLAIN ANALYZE v what a view has done"
    token = cursor.tokens[more]
    cursor.fail(f"DESCRIBE has no {token.text.upper()}", fix=fix, kind=Unsupported, offset=token.start)


def same_explain(cursor: Cursor) -> None:
    """Reads PLAN FOR, which says what EXPLAIN does in any case; raises Unsupported for other kinds of EXPLAIN."""
    if cursor.at("PLAN FOR") or (cursor.at("PLAN") and _begins(cursor, cursor.index + 1)):
        cursor.accept("PLAN FOR", "PLAN")
        return
    start, bracketed = cursor.offset, cursor.at("(") and cursor.word(1) not in ("SELECT", "WITH", "(")
    query = next((place for place in range(cursor.index, len(cursor.tokens)) if _begins(cursor, place)), None)
    if query is not None and (bracketed or cursor.at(*_EXPLAINED)):
        fix = f"EXPLAIN {_text(cursor, cursor.tokens[query:])}"
        cursor.fail("EXPLAIN has one form, the plan with its state", fix=fix, kind=Unsupported, offset=start)


def _begins(cursor: Cursor, place: int) -> bool:
    return cursor.word(place - cursor.index) in ("SELECT", "WITH", "CREATE", "INSERT")


def refuse_other(cursor: Cursor) -> None:
    """Raises Unsupported for a statement that begins as one of OTHERS; else reads nothing."""
    for word, fix in OTHERS.items():
        if cursor.at(word):
            _refuse(cursor, word, fix)


def refuse_created(cursor: Cursor) -> None:
    """As ``refuse_other``, behind CREATE."""
    if cursor.at("UNIQUE INDEX"):
        note = "an index is for lookups; what stands once is said by a primary key"
        form = noted(f"CREATE {_text(cursor, cursor.tokens[cursor.index + 1 :])}", note)
        cursor.fail("an index is of no unique values", fix=form, kind=Unsupported)
    left_out = next((words for words in _SAYING_NOTHING if cursor.at(words)), "")
    if left_out and cursor.word(len(left_out.split())):
        form = f"CREATE {_text(cursor, cursor.tokens[cursor.index + len(left_out.split()) :])}"
        cursor.fail(f"what is created stays until it is dropped, and is not {left_out}", fix=form, kind=Unsupported)
    if cursor.at("RANDOM STREAM") and cursor.index + 2 < len(cursor.tokens):
        note = "its rows come by INSERT, or from any client of Kafka"
        cursor.fail("there are no streams of random rows", fix=noted(_without_random(cursor), note), kind=Unsupported)
    for words, fix in CREATED.items():
        if cursor.at(words):
            _refuse(cursor, f"CREATE {words}", fix)


def _without_random(cursor: Cursor) -> str:
    """CREATE RANDOM STREAM as CREATE STREAM: no default values, which are what it is random by, and no settings."""
    tokens, first = cursor.tokens, cursor.index + 1
    edits: list[Edit] = []
    depth, start = 0, None
    for place in range(first, len(tokens)):
        word = cursor.word(place - cursor.index)
        if start is not None and depth == 1 and word in (",", ")"):
            edits.append(Edit(tokens[start - 1].end + 1, tokens[place].start, ""))
            start = None
        elif depth == 1 and word == "DEFAULT" and start is None:
            start = place
        elif depth == 0 and word == "SETTINGS":
            edits.append(Edit(tokens[place - 1].end + 1, tokens[-1].end + 1, ""))
            break
        depth += (word == "(") - (word == ")")
    return f"CREATE {applied(cursor.script, tokens[first:], edits)}"


def _text(cursor: Cursor, tokens: Sequence[Token]) -> str:
    return " ".join(cursor.script[tokens[0].start : tokens[-1].end + 1].split())


def _refuse(cursor: Cursor, what: str, fix: str) -> NoReturn:
    cursor.fail(f"there is no statement {what}", fix=fix, kind=Unsupported)
