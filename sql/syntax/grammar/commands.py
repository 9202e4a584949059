"""SHOW, DESCRIBE, PRINT, DROP, EXPLAIN, PAUSE, RESUME, TERMINATE, BACKUP, RESTORE, REPLAY, SYSTEM, WHY."""

from __future__ import annotations

from typing import NoReturn

from dovetail.changelog.errors import Unsupported
from dovetail.sql.syntax.calls import DATABASES
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.functions import function_arguments
from dovetail.sql.syntax.grammar.hints.other_statements import refuse_details, refuse_kind, refuse_listed
from dovetail.sql.syntax.grammar.rows import where_clause
from dovetail.sql.syntax.grammar.schema_statements import drop_schema
from dovetail.sql.syntax.statements import (
    BackupView,
    Describe,
    Drop,
    ExplainAnalyze,
    Pause,
    Print,
    Replay,
    RestoreView,
    Resume,
    Show,
    ShowCreate,
    System,
    Terminate,
    Why,
)

LISTINGS = {
    "STREAMS": "streams",
    "TABLES": "streams",
    "SOURCES": "streams",
    "MATERIALIZED VIEWS": "views",
    "VIEWS": "views",
    "DICTIONARIES": "dictionaries",
    "INDEXES": "indexes",
    "TOPICS": "topics",
    "SCHEMAS": "schemas",
    "FUNCTIONS": "functions",
    "QUERIES": "queries",
    "DEAD LETTERS": "dead letters",
    "JOBS": "queries",
    "SETTINGS": "settings",
    "STATE OF": "state",
}
KINDS = {
    "MUTABLE STREAM": "stream",
    "EXTERNAL STREAM": "stream",
    "EXTERNAL TABLE": "dictionary",
    "STREAM": "stream",
    "TABLE": "stream",
    "SOURCE": "stream",
    "MATERIALIZED VIEW": "view",
    "VIEW": "view",
    "DICTIONARY": "dictionary",
    "INDEX": "index",
    "FUNCTION": "function",
}
_FORMS = ("TEXT", "JSON", "MERMAID")
_DROPPED = {**KINDS, "TOPIC": "topic"}
WITH_DATA = "WITH DATA"
"""At the end of DROP and CREATE: the records of the topic go, which stay otherwise."""


def show(cursor: Cursor) -> Show | ShowCreate | Describe:
    cursor.clause = "SHOW"
    cursor.expect("SHOW", "LIST")
    if cursor.accept("CREATE"):
        refuse_kind(cursor)
        return ShowCreate(_named(cursor, _kind(cursor)))
    if cursor.accept("COLUMNS FROM", "COLUMNS IN"):
        return Describe(cursor.path())
    if cursor.at(*(f"ALL {listed}" for listed in LISTINGS)):
        cursor.accept("ALL")
    refuse_listed(cursor)
    what = LISTINGS[cursor.expect(*LISTINGS)]
    if what == "state":
        return Show(what, of=cursor.path("the name of a view"))
    of = cursor.dotted("a view, or a topic of dead letters") if what == "dead letters" and cursor.accept("FROM") else ""
    schema = cursor.name("the name of a schema") if not of and cursor.accept("FROM", "IN") else ""
    like = cursor.string("a pattern") if cursor.accept("LIKE") else None
    if schema and schema.lower() not in DATABASES:
        like = f"{schema}.{like or '%'}"
    return Show(what, like, of)


def _kind(cursor: Cursor) -> str:
    """The word for a kind of thing, if one stands here before a name; '' else (a stream may be called ``source``)."""
    for words, kind in KINDS.items():
        if cursor.at(words) and len(cursor.tokens) > cursor.index + len(words.split()):
            cursor.accept(words)
            return kind
    return ""


def _named(cursor: Cursor, kind: str) -> str:
    """A name; that of a function in lower case, and without its arguments: there is one of each name."""
    if kind != "function":
        return cursor.path()
    name = cursor.path("the name of a function").lower()
    if cursor.at("("):
        function_arguments(cursor)
    return name


def describe(cursor: Cursor) -> Describe:
    cursor.clause = "DESCRIBE"
    cursor.expect("DESCRIBE", "DESC")
    refuse_details(cursor)
    refuse_kind(cursor)
    _kind(cursor)
    if cursor.word(1) == ".":
        return Describe(cursor.dotted("a stream, a view, or a topic of dead letters"))
    return Describe(cursor.path())


def print_topic(cursor: Cursor) -> Print:
    """``PRINT topic [FROM BEGINNING] [LIMIT n]``; a name that is no identifier stands in quotes."""
    cursor.clause = "PRINT"
    cursor.expect("PRINT")
    name = cursor.string() if cursor.at_string else cursor.dotted("a topic, a stream or a view")
    from_beginning = bool(cursor.accept("FROM BEGINNING"))
    return Print(name, from_beginning, cursor.integer() if cursor.accept("LIMIT") else None)


def drop(cursor: Cursor) -> Drop:
    """``DROP STREAM [IF EXISTS] s [CASCADE | RESTRICT] [WITH DATA]``, ``DROP TOPIC [IF EXISTS] t WITH DATA``."""
    cursor.clause = "DROP"
    cursor.expect("DROP")
    if cursor.accept("SCHEMA"):
        return drop_schema(cursor)
    words = cursor.expect(*_DROPPED)
    what = _DROPPED[words]
    if_exists = bool(cursor.accept("IF EXISTS"))
    name = cursor.dotted("the name of a topic") if what == "topic" else _named(cursor, what)
    if cursor.at(","):
        _refuse_several(cursor)
    cascade = what != "topic" and cursor.accept("CASCADE", "RESTRICT") == "CASCADE"
    with_data = bool(cursor.accept(WITH_DATA))
    if with_data and what in ("dictionary", "index", "function"):
        cursor.fail(f"no topic belongs to a {what}", fix=f"DROP {what.upper()} {name}")
    if what == "topic" and not with_data:
        cursor.fail("all that there is of a topic is its data", fix=f"DROP TOPIC {name} WITH DATA", kind=Unsupported)
    noun = words.lower()
    return Drop(what, name, if_exists, cascade, with_data, noun="" if noun == what else noun)


def _refuse_several(cursor: Cursor) -> NoReturn:
    """Raises Unsupported for ``DROP STREAM a, b``, at the comma, with a statement for each."""
    offset, named = cursor.offset, cursor.index - 1
    head = cursor.script[cursor.tokens[0].start : cursor.tokens[named].start]
    names = [cursor.script[cursor.tokens[named].start : offset].rstrip()]
    while cursor.accept(","):
        names.append(cursor.path())
    fix = "; ".join(f"{head}{name}" for name in names)
    cursor.fail("one thing is dropped at a time", fix=fix, kind=Unsupported, offset=offset)


def pause(cursor: Cursor) -> Pause:
    cursor.expect("PAUSE")
    return Pause(_query_name(cursor))


def resume(cursor: Cursor) -> Resume:
    cursor.expect("RESUME")
    return Resume(_query_name(cursor))


def terminate(cursor: Cursor) -> Terminate:
    cursor.expect("TERMINATE", "KILL", "CANCEL")
    return Terminate(_query_name(cursor))


def backup(cursor: Cursor) -> BackupView:
    """``BACKUP [MATERIALIZED] VIEW v TO 'folder'``."""
    return BackupView(*_view_and_folder(cursor, "BACKUP", "TO"))


def restore(cursor: Cursor) -> RestoreView:
    """``RESTORE [MATERIALIZED] VIEW v FROM 'folder'``."""
    return RestoreView(*_view_and_folder(cursor, "RESTORE", "FROM"))


def _view_and_folder(cursor: Cursor, verb: str, preposition: str) -> tuple[str, str]:
    cursor.clause = verb
    cursor.expect(verb)
    cursor.expect("MATERIALIZED VIEW", "VIEW")
    name = cursor.path("the name of a view")
    cursor.expect(preposition)
    return name, cursor.string("a folder")


def _query_name(cursor: Cursor) -> str:
    """``v``, ``QUERY v`` or ``MATERIALIZED VIEW v``; a name in quotes is taken too."""
    if len(cursor.tokens) > cursor.index + 1:
        cursor.accept("QUERY", "MATERIALIZED VIEW", "VIEW", "JOB")
    return cursor.string() if cursor.at_string else cursor.path("the name of a query")


def replay(cursor: Cursor) -> Replay:
    """``REPLAY v.dead_letter [LIKE 'column price%', '%UTF-8'] [DRY RUN]``"""
    cursor.clause = "REPLAY"
    cursor.expect("REPLAY")
    topic = cursor.dotted("a topic of dead letters")
    reasons = cursor.listed(lambda: cursor.string("a pattern of reasons")) if cursor.accept("LIKE") else ()
    if not cursor.done:
        cursor.expect("DRY RUN", *(() if reasons else ("LIKE",)))
        return Replay(topic, reasons, dry_run=True)
    return Replay(topic, reasons)


def explain_analyze(cursor: Cursor) -> ExplainAnalyze:
    """``EXPLAIN ANALYZE v [FORMAT json | mermaid | text]``, from ANALYZE on."""
    cursor.expect("ANALYZE")
    if cursor.at("SELECT") or cursor.at("WITH") or cursor.at("CREATE"):
        cursor.fail(
            "EXPLAIN ANALYZE tells what a running view has done",
            fix="create the view and name it: EXPLAIN ANALYZE v; EXPLAIN without ANALYZE shows the plan of any query",
        )
    name = _query_name(cursor)
    form = cursor.expect(*_FORMS) if cursor.accept("FORMAT") else "TEXT"
    return ExplainAnalyze(name, form.lower())


def system(cursor: Cursor) -> System | Pause | Resume:
    """``SYSTEM RELOAD DICTIONARY d``, ``SYSTEM RELOAD DICTIONARIES``, ``SYSTEM PAUSE | RESUME MATERIALIZED VIEW v``."""
    cursor.clause = "SYSTEM"
    cursor.expect("SYSTEM")
    if cursor.at("PAUSE"):
        return pause(cursor)
    if cursor.at("RESUME"):
        return resume(cursor)
    if cursor.expect("RELOAD DICTIONARIES", "RELOAD DICTIONARY", "PAUSE", "RESUME") == "RELOAD DICTIONARIES":
        return System("reload dictionaries")
    return System("reload dictionary", cursor.path("the name of a dictionary"))


def why(cursor: Cursor) -> Why:
    """``WHY v WHERE k = 5``, ``WHY NOT v SINCE '-2h' WHERE k = 5``."""
    cursor.clause = "WHY"
    cursor.expect("WHY")
    absent = len(cursor.tokens) > cursor.index + 1 and bool(cursor.accept("NOT"))
    view = cursor.path("the name of a view")
    since = cursor.string("a moment: '2026-01-31 12:00:00', or '-2h'") if cursor.accept("SINCE") else ""
    where = where_clause(cursor)
    if where is None:
        cursor.fail("WHY is about rows that a condition names", fix=f"WHY {view} WHERE key = value")
    return Why(view, where, absent, since=since)
