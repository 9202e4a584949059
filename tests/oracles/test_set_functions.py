"""Functions of several rows, and what INSERT assigns, beside PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions.risingwave.series import FUNCTIONS
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.set_functions import SET_FUNCTIONS
from tests.oracles.answers import ours, theirs
from tests.oracles.postgres import postgres
from tests.sqllogictest.memory import MemorySession

pytestmark = pytest.mark.services

COLUMNS = (
    "id int PRIMARY KEY, a int[], b varchar[], c varchar, d jsonb, n numeric, at timestamp, f boolean, "
    "r double precision, s bigint DEFAULT 7"
)
ROWS = (
    """(1, '{1,2,NULL}', ARRAY['x', 'y'], 'p,q', '{"k": 1, "l": [true, "z"], "m": null}', 1.5, '2026-01-01', 'yes',
    ' 2.5 ')""",
    """('2', '{}', '{"a b","c\\"d", NULL, "NULL"}', 5, '[1, "s", null, {"x": []}]', '2', NULL, 'off', '1e3',
    DEFAULT)""",
)
TABLES = (
    f"CREATE TABLE t ({COLUMNS})",
    f"INSERT INTO t VALUES {ROWS[0]}",
    f"INSERT INTO t VALUES {ROWS[1]}",
    r"INSERT INTO t (id, s, c, d) VALUES (3, 2.5, true, '[]'), (4, '-3', 1.50, '{}'), (5, NULL, 'a\nb', 'null')",
    "INSERT INTO t (id, s) SELECT g.i, g.i * 2 FROM generate_series(10, 12) AS g(i)",
)
QUERIES = (
    "SELECT * FROM t",
    "SELECT * FROM generate_series(1, 4)",
    "SELECT i FROM generate_series(10, 1, -4) AS g(i)",
    "SELECT * FROM generate_series(3, 1)",
    "SELECT g FROM generate_series(2147483647, 2147483649) AS g",
    "SELECT * FROM generate_series(1.5, 3.2, 0.5)",
    "SELECT * FROM generate_series(1, 2.5)",
    "SELECT * FROM generate_series(timestamp '2026-01-01', timestamp '2026-01-02', interval '7 hours')",
    "SELECT * FROM generate_series(timestamp '2026-01-02', timestamp '2026-01-01', interval '-12 hours')",
    "SELECT g AT TIME ZONE 'UTC' FROM generate_series('2026-01-01'::timestamptz, '2026-01-02', '7 hours') AS g",
    "SELECT g AT TIME ZONE 'UTC' FROM generate_series('2026-03-28 00:00+00', '2026-03-31', interval '1 day') AS g",
    "SELECT t.id, g.i, g.n FROM t, generate_series(1, t.id) WITH ORDINALITY AS g(i, n) WHERE t.id < 6",
    "SELECT t.id, g.i FROM t LEFT JOIN generate_series(2, 3) AS g(i) ON g.i = t.id",
    "SELECT t.id, g.i FROM t FULL JOIN generate_series(2, 14) AS g(i) ON g.i = t.id",
    "SELECT x.i, y.i FROM generate_series(1, 2) AS x(i) LEFT JOIN generate_series(2, 3) AS y(i) ON x.i = y.i",
    "SELECT id, u.x, u.n FROM t, UNNEST(a) WITH ORDINALITY AS u(x, n)",
    "SELECT id, u.x, u.y, u.n FROM t, UNNEST(a, b) WITH ORDINALITY AS u(x, y, n)",
    "SELECT id, p FROM t CROSS JOIN LATERAL generate_subscripts(b, 1) AS p",
    "SELECT id, p FROM t, string_to_table(c, ',') AS p",
    "SELECT id, p FROM t, regexp_split_to_table(c, '[,.]') AS p",
    "SELECT id, p FROM t, regexp_matches(c, '([a-z])(,)?', 'g') AS p",
    "SELECT id, p[2] AS q, r.n FROM t, regexp_matches(c, '([a-z])(,)?', 'gi') WITH ORDINALITY AS r(p, n)",
    "SELECT id, regexp_matches(c, '[a-z0-9]', 'g') AS p FROM t",
    "SELECT id, unnest(regexp_matches(c, '([a-z])(,)?', 'g')) AS p FROM t WHERE id = 1",
    "SELECT id, p FROM t, regexp_matches(c, NULL) AS p",
    "SELECT abs.abs FROM abs(-1)",
    "SELECT id, (jsonb_each(d)).key, (jsonb_each(d)).value FROM t WHERE id IN (1, 4)",
    "SELECT (m).value FROM (SELECT jsonb_each_text(d) AS m FROM t WHERE id = 1) AS x",
    """SELECT r.a FROM jsonb_to_record('{"a": {"x": [1, 2]}}') AS r(a text)""",
    """SELECT * FROM jsonb_to_record('{"a": 1, "b": [1, 2], "c": {"x": 1}}') AS r(a int, b int[], c jsonb, d text)""",
    """SELECT r.b FROM jsonb_to_recordset('[{"a": 1, "b": 2.5}, {"a": null}]') AS r(a int, b numeric(10,2))""",
    "SELECT id, r.k, r.m FROM t, jsonb_to_record(d) AS r(k int, m text) WHERE id IN (1, 4)",
    "SELECT id, r.x FROM t, jsonb_to_recordset(d) AS r(x text) WHERE id = 3",
    "SELECT a.x + 1 FROM abs(-1) AS a(x)",
    "SELECT * FROM string_to_array('a,b', ',') AS p",
    "SELECT id, l.x FROM t, upper('a') AS l(x) WHERE id < 3",
    "SELECT id, l.x, l.n FROM t LEFT JOIN abs(3) WITH ORDINALITY AS l(x, n) ON l.x = t.id",
    "SELECT 1 = SOME(NULL), 'a' NOT LIKE ANY(ARRAY['b', NULL]), 'a' NOT LIKE ALL(ARRAY['b', NULL])",
    "SELECT id, string_to_table(c, ',') AS p FROM t",
    "SELECT id, k FROM t, jsonb_object_keys(d) AS k WHERE jsonb_typeof(d) = 'object'",
    "SELECT id, m.key, m.value FROM t, jsonb_each(d) AS m WHERE id IN (1, 4)",
    "SELECT id, m.key, m.value FROM t, jsonb_each_text(d) AS m WHERE id IN (1, 4)",
    "SELECT id, e.value FROM t, jsonb_array_elements(d) AS e(value) WHERE id IN (2, 3)",
    "SELECT id, e.value, e.n FROM t, jsonb_array_elements_text(d) WITH ORDINALITY AS e(value, n) WHERE id IN (2, 3)",
    "SELECT sum(i), count(*) FROM generate_series(1, 100) AS g(i) WHERE i % 3 = 0",
    "WITH s AS (SELECT * FROM generate_series(1, 3) AS g(i)) SELECT s.i, t.s FROM s JOIN t ON t.id = s.i",
    "SELECT id FROM t WHERE id IN (SELECT i FROM generate_series(2, 11) AS g(i))",
    "SELECT i, (SELECT max(j) FROM generate_series(1, 5) AS h(j) WHERE h.j < g.i) FROM generate_series(1, 3) AS g(i)",
    "SELECT id, (id, s) > (2, 7), (id, s) <= (3, 3), ROW(id, s) <> ROW(4, -3), (id, n) >= (1, 1.5) FROM t",
    "SELECT id FROM t WHERE (id, s) IN ((1, 7), (4, -3), (5, 1)) OR (id, s) < (2, NULL)",
    "SELECT (1, 2, 3) < (1, 2, 4), (1, NULL) < (2, 1), (1, NULL) < (1, 1), (NULL, 1) < (1, 2), (2, NULL) > (1, 0)",
    "SELECT round(avg(s), 2), round(avg(n), 1) FROM t",
    "SELECT x.i FROM (SELECT id AS i FROM t ORDER BY id) AS x",
    "SELECT z.j, z.j + 1 FROM (SELECT x.i AS j FROM (SELECT id AS i, s FROM t ORDER BY s DESC, id LIMIT 2) AS x) AS z",
    "WITH q AS (SELECT id AS i FROM t ORDER BY s, id LIMIT 1 OFFSET 1) SELECT q.i FROM q",
    "SELECT x.i, y.i FROM (SELECT id AS i FROM t ORDER BY id LIMIT 1) AS x, (SELECT max(s) AS i FROM t) AS y",
    "VALUES (1, 'a'), (2, NULL)",
    "VALUES (3), (1), (2) ORDER BY 1 DESC LIMIT 2",
    "VALUES (1.5, 'x'), ('2', 'y'), (NULL, NULL)",
    "VALUES (1), (2.5), ('3.75')",
    "VALUES (1.5), ('2.25'), (NULL)",
    "SELECT v + 1 FROM (VALUES ('inf'::float8), ('2.5'), ('-inf')) AS t(v)",
    "WITH t(d, a) AS (VALUES (date '2026-01-01', ARRAY[1, 2]), ('2026-02-03', '{3}')) SELECT d + 1, a[1] FROM t",
    "SELECT v FROM (VALUES ('1 day'::interval), ('2 hours'), (NULL)) AS t(v)",
    "SELECT v FROM (VALUES (true), ('f'), (NULL)) AS t(v)",
    "SELECT v FROM (VALUES (ARRAY['x']), ('{y,NULL}'), (NULL)) AS t(v)",
    "SELECT v FROM (VALUES ('12:30'::time), ('01:00:05')) AS t(v)",
    "SELECT v, d FROM (VALUES ('\\xab'::bytea, '{}'::jsonb), ('\\xff', '[1]')) AS t(v, d)",
    "SELECT 1 = SOME(ARRAY[1, 2]), 3 > ALL(ARRAY[1, 2]), id = SOME(a) FROM t",
    "SELECT column1 + 1 FROM (VALUES (1), (2)) AS v",
)


@pytest.fixture(scope="module", name="connection")
def _connection() -> Iterator[psycopg.Connection]:
    with postgres(TABLES, "t", "id") as oracle:
        yield oracle.connection


@pytest.fixture(scope="module")
def dovetail() -> Iterator[MemorySession]:
    session = MemorySession(Rules.RISINGWAVE)
    for statement in TABLES:
        session.execute(statement)
    yield session
    session.close()


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_has_the_same_rows(connection: psycopg.Connection, dovetail: MemorySession, query: str) -> None:
    table = dovetail.execute(query)
    assert table is not None
    assert ours(table) == theirs(connection, query)


def test_a_text_beside_an_array_of_decimals_keeps_its_digits_or_is_refused(dovetail: MemorySession) -> None:
    with pytest.raises(SqlError, match="VALUES compares"):
        dovetail.execute("SELECT v FROM (VALUES (ARRAY[1.5]), ('{2.25}')) AS t(v)")


def test_each_function_is_asked() -> None:
    not_of_postgresql = {"range", "jsonb_populate_recordset"}
    assert {name for name in SET_FUNCTIONS if f"{name}(" not in " ".join(QUERIES)} == not_of_postgresql
    named = {name for function in SET_FUNCTIONS.values() for name in function.arrays}
    assert {row.names[0] for row in FUNCTIONS} <= named | {"ordinals_to_array"}


TOO_MANY = f"({', '.join(map(str, range(1, 12)))})"


@pytest.mark.parametrize(
    "values_of_row",
    ["('x')", "(1, '{1,2')", "(1, '{1,b}')", "(1, NULL, NULL, NULL, NULL, 'x')", "(99999999999)", TOO_MANY],
)
def test_what_is_no_value_of_its_column_is_refused(
    connection: psycopg.Connection, dovetail: MemorySession, values_of_row: str
) -> None:
    statement = f"INSERT INTO t VALUES {values_of_row}"
    with pytest.raises(psycopg.Error):
        connection.execute(statement.encode())
    with pytest.raises(Exception, match="row 1"):
        dovetail.execute(statement)
