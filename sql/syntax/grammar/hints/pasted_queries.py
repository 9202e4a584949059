"""Queries that go on forever, as others declare them: CREATE SINK, CREATE TABLE x AS SELECT, CREATE STREAM x AS ..

Each is a materialized view, whose topic any client of Kafka reads.
"""

from __future__ import annotations

from typing import NoReturn

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.hints.filled_forms import noted, refuse, written
from dovetail.sql.syntax.grammar.hints.pasted_selects import in_own_words
from dovetail.sql.syntax.grammar.settings import with_clause
from dovetail.sql.syntax.statements import Setting


def refuse_query_of(cursor: Cursor, kind: str, name: str, start: int) -> None:
    """Raises for ``[WITH (..)] AS SELECT ..`` behind the name in CREATE STREAM and CREATE TABLE; else reads nothing."""
    _refuse_copy(cursor, kind, name, start)
    index = cursor.index
    if cursor.at("WITH ("):
        with_clause(cursor)
    if not (cursor.at("AS") and cursor.word(1) in ("SELECT", "WITH", "(")):
        cursor.index = index
        return
    cursor.accept("AS")
    query, note = in_own_words(cursor.script, cursor.rest())
    form = noted(f"CREATE MATERIALIZED VIEW {written(name)} AS {query}", note)
    refuse(cursor, f"a {kind} is not a query: what is computed from others, continuously, is a view", form, start)


def _refuse_copy(cursor: Cursor, kind: str, name: str, start: int) -> None:
    """Raises Unsupported for ``LIKE t``, ``CLONE t`` and ``AS t`` behind the name; else reads nothing."""
    if not cursor.refused(("LIKE", "CLONE", "AS")) or cursor.word(1) in ("SELECT", "WITH", "VALUES", "(", ""):
        return
    cursor.index += 1
    copied = written(cursor.path("the name of what is copied"))
    if kind == "table":
        fix = f"CREATE TABLE {written(name)} AS SELECT * FROM table({copied});  -- with the rows that it has now"
    else:
        fix = f"SHOW CREATE {copied};  -- the statement to begin from; of its rows: CREATE VIEW v AS SELECT * FROM it"
    refuse(cursor, f"a {kind} is declared by its columns", fix, start)


def refuse_sink(cursor: Cursor) -> NoReturn:
    """What follows CREATE SINK: ``[IF NOT EXISTS] s [INTO t] {FROM v | AS SELECT ..} [WITH (..)] [FORMAT ..]``."""
    start = cursor.offset
    cursor.accept("IF NOT EXISTS")
    name = cursor.path("the name of a sink")
    into = cursor.path("the name of a table") if cursor.accept("INTO") else ""
    if cursor.expect("FROM", "AS") == "FROM":
        query = f"SELECT * FROM {written(cursor.path('the name of a view'))}"
    else:
        query = _up_to_options(cursor)
    given = _options(cursor)
    upsert = cursor.at("FORMAT UPSERT") or given.get("type") == "upsert"
    topic = str(given.get("topic", "")) or name
    view = f"{written(name)} INTO {written(into)}" if into else written(topic)
    form = f"CREATE MATERIALIZED VIEW {view} AS {query}" + (" SETTINGS output_format = 'upsert'" if upsert else "")
    note = "" if into or given.get("connector", "kafka") != "kafka" else "its topic has the same name"
    refuse(cursor, "there are no sinks: each view writes to a topic of its own", noted(form, note), start)


def _options(cursor: Cursor) -> dict[str, Setting]:
    try:
        return dict(with_clause(cursor)) if cursor.at("WITH") else {}
    except SqlError:
        # They are refused whatever they say.
        return {}


def _up_to_options(cursor: Cursor) -> str:
    """The text of a query up to the WITH of a sink outside of all brackets."""
    first, depth = cursor.index, 0
    while not cursor.done and not (depth == 0 and cursor.index > first and cursor.at("WITH (", "FORMAT")):
        depth += (cursor.word() == "(") - (cursor.word() == ")")
        cursor.index += 1
    return in_own_words(cursor.script, cursor.tokens[first : cursor.index])[0]
