"""Statements that others have and Dovetail has not, by the words that they begin with: what serves in their place."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.changelog.errors import Unsupported
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.hints.filled_forms import noted
from dovetail.sql.syntax.grammar.hints.patterns import Piece, Table, found, table
from dovetail.sql.syntax.grammar.hints.words import Words

_SETTINGS = "a query has its settings at its end: SELECT .. SETTINGS seek_to = 'earliest'; SHOW SETTINGS lists them"
_NO_TRANSACTIONS = "leave it out: each statement stands for itself, and each batch of a view is committed as one"
_USERS = "dovetail user add ann --role reader, in a shell; docs/serve.md describes roles and users"
_NOTHING_BY_HAND = "leave it out: there are no statistics and no storage to be looked after by hand"
_ONE_DATABASE = 'leave it out: there is one database, "default"'
_BY_KEY = "INSERT INTO t VALUES ..: a row of a keyed table replaces the one of its key; DELETE FROM t WHERE .."
_FILES = "dovetail insert t file.csv, in a shell; from Python db.insert('t', frame), docs/python.md"
_PIECES = table(
    [
        *(
            Piece(
                words,
                "there is no statement TRUNCATE",
                {"here": "DELETE FROM"},
                "of a table with a key; else DROP STREAM t WITH DATA, and CREATE it again",
            )
            for words in ("TRUNCATE TABLE", "TRUNCATE")
        ),
        *(
            Piece(
                f"{words}{into} {{name.1}}",
                f"there is no statement {words}",
                {"here": "INSERT INTO {name}"},
                "a row replaces the one of its key",
            )
            for words in ("REPLACE", "UPSERT")
            for into in (" INTO", "")
        ),
        *(
            Piece(
                f"RENAME {words}{{old.1}} TO {{new.1}} $",
                "there is no statement RENAME",
                {"here": "CREATE VIEW {new} AS SELECT * FROM {old}"},
                "it is called so too",
            )
            for words in ("TABLE ", "STREAM ", "")
        ),
        Piece(
            "CLONE TABLE {old.1}",
            "there is no statement CLONE",
            {"here": "CREATE TABLE {old}_copy AS SELECT * FROM table({old})"},
            "with the rows that it has now",
        ),
        Piece("TABLE {name.1}", "a query begins with SELECT", {"here": "SELECT * FROM table({name})"}),
        *(
            Piece(f"{word} {{name.1}}", f"there is no statement {word}", {"here": "DESCRIBE {name}"}, "its columns")
            for word in ("SUMMARIZE", "DISPLAY")
        ),
        Piece("STOP {name*}", "there is no statement STOP", {"here": "PAUSE {name}"}, "RESUME goes on where it ended"),
        Piece("RECOVER {name*}", "there is no statement RECOVER", {"here": "RESUME {name}"}, "from where it ended"),
        Piece("FROM {from*} SELECT {what*}", "a query begins with SELECT", {"here": "SELECT {what} FROM {from}"}),
    ]
)
"""Statements of others with the one that does here what they do."""

_NOT_RELOADED = (
    "leave it out: a materialized view follows its inputs by itself; of a dictionary SYSTEM RELOAD DICTIONARY d"
)
_PIVOTED = "SELECT k, sum(CASE WHEN kind = 'a' THEN n END) AS a FROM s GROUP BY k"
_NO_PROGRAMS = (
    "leave it out: there are no procedures, cursors or prepared statements. Values are given beside a statement: "
    "docs/python.md, docs/serve.md; a function is made by CREATE FUNCTION"
)
_NAMED = "leave it out: what is created keeps its name, its owner and its topic until it is dropped"
_TOPICS = "DROP STREAM s leaves the topic with its records, and CREATE STREAM s of the same columns reads them again"
_FOLLOWED = "dovetail tail v, in a shell; or SELECT * FROM v EMIT CHANGES; docs/serve.md has changes over HTTP"
_SCRIPTS = "dovetail run file.sql, in a shell, runs the statements of a file"
_ADDED = "leave it out: there are no plugins. A function of your own: CREATE FUNCTION, docs/python-functions.md"

_DROPPED = (
    "CREATE it again: without WITH DATA in the DROP its records are still in their topic, which a stream or table reads"
    " again from the beginning; a view computes its rows again, CREATE MATERIALIZED VIEW .. WITH DATA"
)

OTHERS: Mapping[str, str] = {
    "SET ROLE": _USERS,
    **dict.fromkeys(("SET", "RESET", "UNSET", "PRAGMA", "DEFINE", "UNDEFINE"), _SETTINGS),
    **dict.fromkeys(("USE", "CONNECT", "DISCONNECT"), _ONE_DATABASE),
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "ABORT", "END"), _NO_TRANSACTIONS),
    **dict.fromkeys(("LOCK", "UNLOCK"), _NO_TRANSACTIONS),
    **dict.fromkeys(("GRANT", "REVOKE", "DENY", "REASSIGN"), _USERS),
    **dict.fromkeys(("ANALYZE", "VACUUM", "OPTIMIZE", "FLUSH", "CHECKPOINT", "DISCARD"), _NOTHING_BY_HAND),
    **dict.fromkeys(("CACHE", "UNCACHE", "CLEAR", "REINDEX", "CLUSTER", "MSCK", "REPAIR", "CHECK"), _NOTHING_BY_HAND),
    **dict.fromkeys(("REFRESH", "RELOAD"), _NOT_RELOADED),
    **dict.fromkeys(("MERGE", "UPSERT", "REPLACE"), _BY_KEY),
    "TRUNCATE": "DELETE FROM t, of what has a key; or DROP STREAM t WITH DATA, and CREATE it again",
    **dict.fromkeys(("COPY", "LOAD", "IMPORT"), _FILES),
    "EXPORT": "dovetail sql -c 'SELECT * FROM table(t)' -o json > t.json, in a shell",
    **dict.fromkeys(("CALL", "EXEC", "EXECUTE", "DO", "DECLARE", "PREPARE", "DEALLOCATE"), _NO_PROGRAMS),
    **dict.fromkeys(("FETCH", "CLOSE", "IF", "WHILE", "LOOP", "RETURN"), _NO_PROGRAMS),
    **dict.fromkeys(("ATTACH", "DETACH"), _TOPICS),
    **dict.fromkeys(("RENAME", "EXCHANGE", "SECURITY"), _NAMED),
    **dict.fromkeys(("UNDROP", "UNDELETE"), _DROPPED),
    **dict.fromkeys(("LISTEN", "NOTIFY", "UNLISTEN", "SUBSCRIBE", "UNSUBSCRIBE", "TAIL", "WATCH"), _FOLLOWED),
    **dict.fromkeys(("RUN", "SOURCE"), _SCRIPTS),
    **dict.fromkeys(("INSTALL", "UNINSTALL", "ADD", "REMOVE"), _ADDED),
    **dict.fromkeys(("PIVOT", "UNPIVOT"), _PIVOTED),
    "HELP": "help, in the console; dovetail docs, in a shell",
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

_ONE_OF_ALL = 'SHOW STREAMS;  -- everything is in one database, "default"; SHOW VIEWS, SHOW DICTIONARIES'
_OF_DATABASES = "SHOW DICTIONARIES;  -- rows of other databases; any client of Kafka writes and reads the topics"
_OF_VIEWS = "SHOW VIEWS;  -- each writes to a topic of its own, which any client of Kafka reads"
_OF_SETTINGS = "SHOW SETTINGS;  -- those of queries, each of which is given at the end of a statement"
LISTED: Mapping[str, str] = {
    **dict.fromkeys(("DATABASES", "CATALOGS", "CURRENT", "NAMESPACES", "KEYSPACES"), _ONE_OF_ALL),
    **dict.fromkeys(("CONNECTORS", "CONNECTIONS", "SECRETS", "CLUSTERS", "DISKS"), _OF_DATABASES),
    **dict.fromkeys(("SINKS", "SUBSCRIPTIONS", "CURSORS", "INTERNAL TABLES"), _OF_VIEWS),
    **dict.fromkeys(("PROPERTIES", "VARIABLES", "PARAMETERS", "ALL", "SESSION"), _OF_SETTINGS),
    **dict.fromkeys(("PROCESSLIST", "FRAGMENTS", "ACTORS"), "SHOW QUERIES;  -- what runs, in which engine"),
    **dict.fromkeys(("MODULES", "JARS", "TYPES", "USER FUNCTIONS"), "SHOW FUNCTIONS;  -- of CREATE FUNCTION"),
    **dict.fromkeys(("FORMAT SCHEMAS", "REPLICAS", "PARTITIONS"), "SHOW TOPICS;  -- with the partitions of each"),
    **dict.fromkeys(("USERS", "ROLES", "GRANTS", "CURRENT_USER"), "dovetail user list, in a shell"),
}
"""What follows SHOW -> what lists something like it."""
_STATES = table(
    (
        *(
            Piece(f"STATE {words}{{name.1}} $", "the state is that of a view", {"here": "STATE OF {name}"})
            for words in ("FOR ", "FROM ", "")
        ),
        Piece("STATE $", "the state is that of a view", {"here": "STATE OF v"}, "v is one that SHOW VIEWS lists"),
    )
)
_KINDS = table(
    Piece(
        f"{kind} {{name.1}} $",
        f"there are no things of the kind {kind}",
        {"here": "{name}"},
        "where a stream, view or dictionary has this name",
    )
    for kind in ("SINK", "CONNECTION", "CONNECTOR", "CATALOG", "DATABASE", "SCHEMA", "SECRET", "SUBSCRIPTION", "QUERY")
)
"""Kinds of things that others show and describe by name."""
_DETAILS = table(
    Piece(
        word,
        f"DESCRIBE has no {word}",
        {"here": ""},
        "its columns; SHOW CREATE has its settings, EXPLAIN ANALYZE v what a view has done",
    )
    for word in ("EXTENDED", "FORMATTED")
)
_STAYS = "what is created stays until it is dropped, and is not {}"
_CREATED = table(
    [
        Piece(
            "UNIQUE INDEX",
            "an index is of no unique values",
            {"name": ""},
            "an index is for lookups; what stands once is said by a primary key",
        ),
        *(
            Piece(
                f"{words} {{what.1}}",
                f"what is created stays until it is dropped, and is not {words}",
                {"here": "{what}"},
            )
            for words in ("GLOBAL TEMPORARY", "LOCAL TEMPORARY", "TEMPORARY", "TEMP", "UNLOGGED", "LIVE")
        ),
    ]
)
_EXPLAINED = ("VERBOSE", "ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE", "SYNTAX", "PIPELINE")
_QUERIES = ("SELECT", "WITH", "CREATE", "INSERT")


def refuse_other(cursor: Cursor) -> None:
    """Raises Unsupported for a statement that begins as one of others; else reads nothing."""
    _refuse_piece(cursor, cursor.index, _PIECES)
    _refuse_words(cursor, OTHERS, "there is no statement {}")


def refuse_listed(cursor: Cursor) -> None:
    """As ``refuse_other``, behind SHOW."""
    _refuse_piece(cursor, cursor.index, _STATES)
    _refuse_words(cursor, LISTED, "there is no statement SHOW {}")


def refuse_kind(cursor: Cursor) -> None:
    """As ``refuse_other``, for a kind of things that there is none of: ``SHOW CREATE SINK s``."""
    _refuse_piece(cursor, cursor.index, _KINDS)


def refuse_details(cursor: Cursor) -> None:
    """As ``refuse_other``, for ``DESCRIBE EXTENDED s`` and ``DESCRIBE s EXTENDED``."""
    rest = range(cursor.index, len(cursor.tokens))
    for place in rest if len(rest) > 1 else ():
        _refuse_piece(cursor, place, _DETAILS)


def refuse_created(cursor: Cursor) -> None:
    """As ``refuse_other``, behind CREATE."""
    _refuse_piece(cursor, cursor.index, _CREATED)
    _refuse_words(cursor, CREATED, "there is no statement CREATE {}")


def same_explain(cursor: Cursor) -> None:
    """Reads PLAN FOR, which says what EXPLAIN does in any case; raises Unsupported for other kinds of EXPLAIN."""
    if cursor.at("PLAN FOR") or (cursor.at("PLAN") and cursor.word(1) in _QUERIES):
        cursor.accept("PLAN FOR", "PLAN")
        return
    words, bracketed = Words(cursor.script, cursor.tokens), cursor.at("(") and cursor.word(1) not in ("(", *_QUERIES)
    query = next((place for place in range(cursor.index, len(words)) if words.word(place) in _QUERIES), None)
    if query is not None and (bracketed or cursor.at(*_EXPLAINED)):
        fix = f"EXPLAIN {words.text(query, len(words))}"
        cursor.fail("EXPLAIN has one form, the plan with its state", fix=fix, kind=Unsupported)


def _refuse_words(cursor: Cursor, refused: Mapping[str, str], what: str) -> None:
    if words := cursor.refused(refused):
        cursor.fail(what.format(words), fix=refused[words], kind=Unsupported)


def _refuse_piece(cursor: Cursor, at: int, pieces: Table) -> None:
    words = Words(cursor.script, cursor.tokens)
    piece = found(words, at, pieces)
    if piece is not None:
        form = words.edited(piece.edits)
        fix, offset = noted(form, piece.note) if piece.note else form, cursor.tokens[at].start
        cursor.fail(piece.what, fix=fix, kind=Unsupported, offset=offset)
