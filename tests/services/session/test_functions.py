"""Functions in Python from SQL to the rows of a view, with real runners of both engines."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.services.session import Done, Session, Text
from dovetail.services.stack import Stack
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateFunction
from tests.services.conftest import Ask
from tests.services.session.conftest import settle

pytestmark = pytest.mark.services

SHOUTED = """CREATE FUNCTION shouted(name string, times int) RETURNS string LANGUAGE python AS $$
def shouted(name, times):
    pairs = zip(name.to_pylist(), times.to_pylist())
    return ["nobody" if who is None else who.upper() + "!" * times for who, times in pairs]
$$"""
ORDERS = """
CREATE TABLE users (id int PRIMARY KEY, name varchar);
CREATE TABLE orders (id int PRIMARY KEY, user_id int, amount int);
"""
CLICKS = "CREATE STREAM clicks (id int, k int); CREATE MUTABLE STREAM users (k int, name string) PRIMARY KEY k"


@pytest.fixture
def session(session_of_runners: Session) -> Session:
    return session_of_runners


def test_spark_runs_them_and_a_view_holds_on_to_them(session: Session, ask: Ask) -> None:
    assert session.run(f"{ORDERS}{SHOUTED};")[-1] == Done("created function shouted")
    view = (
        "CREATE MATERIALIZED VIEW told AS SELECT o.id AS id, shouted(u.name, o.amount) AS told FROM orders AS o "
        "LEFT JOIN users AS u ON o.user_id = u.id AND shouted(u.name, 1) <> 'EVE!'"
    )
    session.run(view)
    session.run("INSERT INTO users VALUES (1, 'ann'), (2, 'eve'); INSERT INTO orders VALUES (10, 1, 2), (11, 2, 1)")
    settle(session, "told")
    assert ask("SELECT * FROM table(told) ORDER BY id") == [(10, "ANN!!"), (11, "nobody")]
    session.run("UPDATE orders SET amount = 3 WHERE id = 10; DELETE FROM users WHERE id = 2")
    settle(session, "told")
    assert ask("SELECT *, shouted(told, 0) AS x FROM table(told) ORDER BY id") == [
        (10, "ANN!!!", "ANN!!!"),
        (11, "nobody", "NOBODY"),
    ]
    assert session.verify("told").holds
    (shown,) = ask("SHOW FUNCTIONS")
    assert shown == ("shouted", "name string, times int32", "string", "", "told", SHOUTED)
    assert session.run("SHOW CREATE FUNCTION shouted") == [Text(SHOUTED)]
    for statement in ("DROP FUNCTION shouted", SHOUTED.replace("CREATE", "CREATE OR REPLACE")):
        with pytest.raises(Unsupported, match='the function "shouted" is used by told'):
            session.run(statement)
    assert session.run("DROP VIEW told WITH DATA; DROP FUNCTION Shouted(string, int)")[-1] == Done(
        "dropped function shouted"
    )


def test_lookup_workers_run_them(session: Session, ask: Ask) -> None:
    session.run(f"{CLICKS};{SHOUTED}")
    session.run("INSERT INTO users VALUES (1, 'ann')")
    session.run(
        "CREATE MATERIALIZED VIEW greeted AS SELECT id, shouted(name, id) AS told FROM clicks "
        "LEFT JOIN users ON clicks.k = users.k SETTINGS join_algorithm = 'direct'"
    )
    assert [row[1] for row in ask("SHOW QUERIES")] == ["faust"]
    session.run("INSERT INTO clicks VALUES (1, 1), (2, 5)")
    settle(session, "greeted")
    assert ask("SELECT id, told FROM table(greeted) ORDER BY id") == [(1, "ANN!"), (2, "nobody")]


@pytest.mark.parametrize("engine", ["spark", "faust"])
def test_one_that_breaks_its_declaration_fails_the_query_and_says_so(session: Session, ask: Ask, engine: str) -> None:
    session.run(CLICKS)
    session.run("CREATE FUNCTION short(int) RETURNS int LANGUAGE python AS $$def short(x): return [1, 2, 3, 4, 5]$$")
    algorithm = "SETTINGS join_algorithm = 'direct'" if engine == "faust" else ""
    query = "SELECT id, short(id) AS s FROM clicks LEFT JOIN users ON clicks.k = users.k"
    session.run(f"CREATE MATERIALIZED VIEW broken AS {query} {algorithm}")
    assert [row[1] for row in ask("SHOW QUERIES")] == [engine]
    session.run("INSERT INTO clicks VALUES (1, 1)")
    with pytest.raises(SqlError, match=r"the function short\(\) gives 5 values for 1 row"):
        settle(session, "broken")
    assert [row[2] for row in ask("SHOW QUERIES")] == ["failed"]


@pytest.mark.parametrize("name", ["sum", "upper", "to_int", "dict_get", "tumble", "coalesce", "count_if", "now", "and"])
def test_a_name_that_means_something_is_refused(session: Session, name: str) -> None:
    body = f"globals()['{name}'] = abs"
    statement = CreateFunction(name, (("x", pa.int32()),), pa.int32(), body)
    with pytest.raises(SqlError, match="means something in SQL already"):
        session.execute(statement)


def test_a_session_for_which_they_are_off_makes_and_calls_none(session: Session, running: Stack) -> None:
    session.run(f"CREATE STREAM s (k int, name string);{SHOUTED}")
    settings = running.settings.model_copy(update={"python_functions": "off"})
    with Session.open(settings) as careful:
        for statement in (SHOUTED.replace("shouted", "other"), "SELECT shouted(name, k) FROM table(s)"):
            with pytest.raises(Unsupported, match="this process runs none"):
                careful.execute(parse_one(statement))
