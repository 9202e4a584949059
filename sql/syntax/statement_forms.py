"""The form of a statement or of its clause, with names put in: the fix of a fault for which no guess helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_JOIN = "SELECT a.k, b.n FROM a JOIN b ON a.k = b.k"
_GROUP = "SELECT k, count() AS c FROM s WHERE n > 5 GROUP BY k HAVING count() > 1"
_ORDER = "SELECT k, n FROM s ORDER BY n DESC LIMIT 10"
_WITH = "WITH x AS (SELECT k FROM s) SELECT k FROM x"
_UNION = "SELECT k FROM a UNION ALL SELECT k FROM b"
_CHANGED = "UPDATE t SET n = 1, s = 'b' WHERE k = 2"
_STREAM = "CREATE STREAM s (k int, name string) SETTINGS shards = 2"
_TABLE = "CREATE TABLE t (k INT, name VARCHAR, at TIMESTAMP, PRIMARY KEY (k))"
_VIEW = "CREATE MATERIALIZED VIEW v AS SELECT k, count() AS c FROM s GROUP BY k"
_FUNCTION = "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE python AS $$\ndef twice(n):\n    return n * 2\n$$"

FORMS: Mapping[str, str] = {
    "SELECT": "SELECT k, n * 2 AS m FROM s WHERE n > 5",
    **dict.fromkeys(("FROM", "JOIN", "ON", "USING"), _JOIN),
    "WHERE": "SELECT k, n FROM s WHERE n > 5 AND k = 'a'",
    **dict.fromkeys(("GROUP BY", "HAVING"), _GROUP),
    **dict.fromkeys(("ORDER BY", "LIMIT"), _ORDER),
    "UNION": _UNION,
    "WITH": _WITH,
    "VALUES": "VALUES (1, 'a'), (2, 'b')",
    "EMIT": "SELECT window_start, count() AS c FROM tumble(s, 1m) GROUP BY window_start EMIT AFTER WINDOW CLOSE",
    "SETTINGS": "SELECT k FROM s SETTINGS seek_to = 'earliest'",
    "INSERT": "INSERT INTO t (k, s) VALUES (1, 'a'), (2, 'b')",
    "UPDATE": _CHANGED,
    "DELETE": "DELETE FROM t WHERE k = 2",
    "CREATE": _VIEW,
    "CREATE STREAM": _STREAM,
    "CREATE MUTABLE STREAM": "CREATE MUTABLE STREAM s (k int, name string) PRIMARY KEY k",
    "CREATE EXTERNAL STREAM": "CREATE EXTERNAL STREAM s (k int) SETTINGS type = 'kafka', topic = 'orders'",
    "CREATE RANDOM STREAM": "CREATE RANDOM STREAM s (k int DEFAULT rand() % 100) SETTINGS eps = 5",
    "CREATE TABLE": _TABLE,
    "CREATE SOURCE": "CREATE SOURCE s (k INT, name VARCHAR) WITH (connector = 'kafka', topic = 'orders')",
    "CREATE INDEX": "CREATE INDEX i ON t (k)",
    "CREATE FUNCTION": _FUNCTION,
    "CREATE SCHEMA": "CREATE SCHEMA sales",
    "CREATE DICTIONARY": (
        "CREATE DICTIONARY d (k int, name string) PRIMARY KEY k "
        "SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' PASSWORD FILE 'path' DB 'shop' TABLE 'd')) "
        "LAYOUT(HASHED()) LIFETIME(300)"
    ),
    "ALTER": "ALTER STREAM s ADD COLUMN c int",
    **dict.fromkeys(("SHOW", "LIST"), "SHOW STREAMS LIKE 'a%'"),
    **dict.fromkeys(("DESCRIBE", "DESC"), "DESCRIBE s"),
    "DROP": "DROP STREAM IF EXISTS s",
    "EXPLAIN": "EXPLAIN SELECT k FROM s",
    "PRINT": "PRINT s FROM BEGINNING LIMIT 10",
    "PAUSE": "PAUSE v",
    "RESUME": "RESUME v",
    **dict.fromkeys(("TERMINATE", "KILL", "CANCEL"), "TERMINATE v"),
    "REPLAY": "REPLAY v.dead_letter DRY RUN",
    "BACKUP": "BACKUP VIEW v TO 'folder'",
    "RESTORE": "RESTORE VIEW v FROM 'folder'",
    "SYSTEM": "SYSTEM RELOAD DICTIONARY d",
    "WHY": "WHY v WHERE k = 5",
    "WAIT": "WAIT FOR v TO INCLUDE s[0]@17",
}
"""By the clause of a query, or the words that a statement begins with."""
_OF_QUERIES = ("SELECT", "WITH", "VALUES", "EXPLAIN", "(")
_VIEWS = ("VIEW", "MATERIALIZED")
_OPTIONAL = ("OR", "REPLACE")


def form_of(statement: Sequence[str], clause: str) -> str:
    """What is shown for a fault in a clause of a statement, which begins with these words; '' for none."""
    words = [word for word in statement if word not in _OPTIONAL]
    is_query = words[:1] and (words[0] in _OF_QUERIES or any(word in _VIEWS for word in words[1:2]))
    names = [*([clause] if is_query else []), *(" ".join(words[:length]) for length in (3, 2, 1))]
    return next((f"the form is {FORMS[name]}" for name in names if name in FORMS), "")
