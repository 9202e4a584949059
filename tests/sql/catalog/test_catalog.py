"""The catalog: names, what depends on what, queries, and several processes at once."""

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable

from dovetail.changelog.errors import ServiceUnavailable, SqlError, UnknownName, Unsupported
from dovetail.sql.catalog import Actual, Catalog, Desired, Leadership, Query, What
from dovetail.sql.catalog.metadata_tables import METADATA
from dovetail.sql.catalog.stored_relations import target
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, Drop
from tests.sql.catalog.relations import create, definition
from tests.sql.planner import Planner


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog.open(f"sqlite:///{tmp_path}/deep/catalog.db")
    yield opened
    opened.close()


def drop(text: str) -> Drop:
    statement = parse_one(text)
    assert isinstance(statement, Drop)
    return statement


def query(name: str) -> Query:
    return Query(name, f"SELECT 1 AS {name}", "Plan", "f00d", f"{name}_topic")


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    create(catalog, "CREATE STREAM orders (k int, password string)")
    create(catalog, "CREATE TABLE users (k INT PRIMARY KEY)")
    create(catalog, "CREATE INDEX users_by_k ON users (k)")
    create(catalog, "CREATE MATERIALIZED VIEW v AS SELECT k FROM orders", "orders", "users", query=query("v"))
    create(catalog, "CREATE MATERIALIZED VIEW w AS SELECT k FROM v", "v", query=query("w"))
    return catalog


def test_a_relation_comes_back_as_it_was_written(filled: Catalog) -> None:
    found = filled.get("orders")
    assert (found.what, found.created_ms) == (What.STREAM, 1)
    assert found.ddl == "CREATE STREAM orders (k int, password string)"
    assert isinstance(found.definition, CreateStream)
    assert found.definition == definition(found.ddl)
    assert [relation.name for relation in filled.relations()] == ["orders", "users", "users_by_k", "v", "w"]
    assert [relation.name for relation in filled.relations(What.VIEW)] == ["v", "w"]
    assert [relation.name for relation in filled.relations(like="USER%")] == ["users", "users_by_k"]
    assert [relation.name for relation in filled.relations(like="_")] == ["v", "w"]


def test_a_view_without_a_query_is_not_materialized(filled: Catalog) -> None:
    create(filled, "CREATE VIEW shown AS SELECT k FROM orders", "orders")
    views = {relation.name: relation.materialized_view for relation in filled.relations()}
    assert [name for name, view in views.items() if view is not None] == ["v", "w"]
    assert views["v"] == filled.get("v").definition


def test_a_password_for_the_brokers_is_not_kept(catalog: Catalog) -> None:
    """The process says how they are reached."""
    create(catalog, "CREATE EXTERNAL STREAM s (a int) SETTINGS type='kafka', password='hunter2', topic='t'")
    assert catalog.get("s").ddl == "CREATE EXTERNAL STREAM s (a int) SETTINGS type='kafka', password='***', topic='t'"
    create(
        catalog,
        "CREATE SOURCE r (a int) WITH (connector = 'kafka', topic = 't', properties.sasl.password = 'hunter2') "
        "FORMAT PLAIN ENCODE JSON",
    )
    assert "hunter2" not in catalog.get("r").ddl
    assert catalog.get("r").definition.name == "r"


def test_show_create_hides_passwords(catalog: Catalog) -> None:
    create(catalog, "CREATE EXTERNAL STREAM s (a int) SETTINGS type='kafka', password='hunter2'")
    assert catalog.get("s").shown == "CREATE EXTERNAL STREAM s (a int) SETTINGS type='kafka', password='***'"


def test_an_unknown_name_offers_the_nearest(filled: Catalog) -> None:
    with pytest.raises(UnknownName, match='no stream or view "order"') as caught:
        filled.get("order")
    assert caught.value.fix == 'did you mean "orders"?'
    assert filled.find("order") is None


def test_what_a_view_uses_must_be_there(filled: Catalog) -> None:
    with pytest.raises(UnknownName, match='"userz"'):
        create(filled, "CREATE MATERIALIZED VIEW x AS SELECT k FROM userz", "userz", query=query("x"))
    assert filled.find("x") is None


def test_a_name_is_taken_once(filled: Catalog) -> None:
    with pytest.raises(SqlError, match='a stream "orders" already') as caught:
        create(filled, "CREATE TABLE orders (k INT)")
    assert "IF NOT EXISTS" in caught.value.fix
    create(filled, "CREATE TABLE IF NOT EXISTS orders (k INT)")
    assert filled.get("orders").ddl.startswith("CREATE STREAM")


def test_replacing_stops_the_old_query(filled: Catalog) -> None:
    create(filled, "CREATE OR REPLACE VIEW w AS SELECT k + 1 AS k FROM v", "v")
    assert "k + 1" in filled.get("w").ddl
    assert [one.name for one in filled.queries()] == ["v"]


def test_only_what_was_seen_is_replaced(filled: Catalog) -> None:
    """Of two that replace a view at once, the second has seen the one before."""
    first, second = (definition(f"CREATE OR REPLACE VIEW w AS SELECT k + {n} AS k FROM v") for n in (1, 2))
    seen = [filled.get("w")]
    filled.create(first, now_ms=2, uses=["v"], seen=seen)
    with pytest.raises(SqlError, match='another process has just changed "w"'):
        filled.create(second, now_ms=3, uses=["v"], seen=seen)
    assert "k + 1" in filled.get("w").ddl
    filled.create(second, now_ms=3, uses=["v"], seen=[filled.get("w")])
    assert "k + 2" in filled.get("w").ddl


def test_what_was_not_there_is_not_replaced(filled: Catalog) -> None:
    with pytest.raises(SqlError, match='another process has just changed "w"'):
        filled.create(definition("CREATE OR REPLACE VIEW w AS SELECT k FROM v"), now_ms=2, uses=["v"], seen=[])


def test_a_view_that_is_still_being_made_is_not_replaced(filled: Catalog) -> None:
    later = "CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT k + {} AS k FROM v"
    made = replace(query("w"), desired=Desired.PAUSED)
    create(filled, later.format(1), "v", query=made)
    with pytest.raises(SqlError, match='another process is just creating the view "w"') as refused:
        create(filled, later.format(2), "v", query=made)
    assert "RESUME w" in refused.value.fix
    filled.want("w", Desired.RUNNING, now_ms=3)
    create(filled, later.format(2), "v", query=made)


def test_a_paused_view_is_replaced(filled: Catalog) -> None:
    filled.set_checkpoint(filled.query("w").id, "there")
    filled.want("w", Desired.PAUSED, now_ms=2)
    create(filled, "CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT k + 1 AS k FROM v", "v", query=query("w"))
    assert filled.query("w").desired is Desired.RUNNING


def test_only_what_no_view_uses_is_replaced(catalog: Catalog) -> None:
    create(catalog, "CREATE TABLE users (k INT PRIMARY KEY)")
    create(catalog, "CREATE INDEX users_by_k ON users (k)")
    create(catalog, "CREATE OR REPLACE TABLE users (k INT PRIMARY KEY, n INT)")
    assert [relation.name for relation in catalog.relations()] == ["users"]
    create(catalog, "CREATE VIEW v AS SELECT k FROM users", "users")
    with pytest.raises(Unsupported, match="used by v"):
        create(catalog, "CREATE OR REPLACE TABLE users (k INT PRIMARY KEY)")


def test_what_a_view_reads_stays(filled: Catalog) -> None:
    with pytest.raises(Unsupported, match='the table "users" is used by v') as caught:
        filled.drop(drop("DROP STREAM users"), now_ms=2)
    assert caught.value.fix == "drop v first, or DROP TABLE users CASCADE"
    assert [relation.name for relation in filled.users("users")] == ["users_by_k", "v"]


def test_dropping_goes_from_the_last_user_to_the_first(filled: Catalog) -> None:
    dropped = filled.drop(drop("DROP TABLE users CASCADE"), now_ms=2)
    assert [relation.name for relation in dropped] == ["users_by_k", "w", "v", "users"]
    assert [relation.name for relation in filled.relations()] == ["orders"]
    assert filled.queries() == []
    assert {(one.name, one.desired, one.updated_ms) for one in filled.queries(dropped=True)} == {
        ("v", Desired.DROPPED, 2),
        ("w", Desired.DROPPED, 2),
    }


def test_an_index_goes_with_its_stream(catalog: Catalog) -> None:
    create(catalog, "CREATE TABLE users (k INT PRIMARY KEY)")
    create(catalog, "CREATE INDEX users_by_k ON users (k)")
    assert len(catalog.drop(drop("DROP TABLE users"), now_ms=2)) == 2


@pytest.mark.parametrize(
    ("made", "order", "fix"),
    [
        ("CREATE TABLE t (k int PRIMARY KEY)", "DROP SOURCE t", "DROP TABLE t"),
        ("CREATE TABLE t (k int PRIMARY KEY)", "DROP VIEW t", "DROP TABLE t"),
        ("CREATE STREAM s (k int)", "DROP TABLE s", "DROP STREAM s"),
        ("CREATE STREAM s (k int)", "DROP MUTABLE STREAM s", "DROP STREAM s"),
        ("CREATE EXTERNAL STREAM s (k int) SETTINGS topic = 't'", "DROP TABLE s", "DROP EXTERNAL STREAM s"),
        ("CREATE VIEW v AS SELECT 1 AS one", "DROP MATERIALIZED VIEW v", "DROP VIEW v"),
        ("CREATE VIEW v AS SELECT 1 AS one", "DROP EXTERNAL TABLE v", "DROP VIEW v"),
    ],
)
def test_drop_says_what_it_drops(catalog: Catalog, made: str, order: str, fix: str) -> None:
    create(catalog, made)
    with pytest.raises(SqlError, match=r"is an? .*, not an? ") as refused:
        catalog.drop(drop(order), now_ms=2)
    assert refused.value.fix == fix
    assert len(catalog.drop(drop(fix), now_ms=2)) == 1


@pytest.mark.parametrize(
    ("made", "order"),
    [
        ("CREATE TABLE t (k int PRIMARY KEY)", "DROP STREAM t"),
        ("CREATE MUTABLE STREAM s (k int) PRIMARY KEY k", "DROP MUTABLE STREAM s"),
        ("CREATE SOURCE s (k int) WITH (connector = 'kafka', topic = 't')", "DROP SOURCE s"),
    ],
)
def test_the_general_word_drops_each_kind(catalog: Catalog, made: str, order: str) -> None:
    create(catalog, made)
    assert len(catalog.drop(drop(order), now_ms=2)) == 1


def test_what_uses_a_relation_may_name_it_in_another_letter_case(catalog: Catalog) -> None:
    create(catalog, "CREATE TABLE users (k INT PRIMARY KEY)")
    create(catalog, "CREATE INDEX users_by_k ON Users (k)")
    assert len(catalog.indexes("users")) == len(catalog.indexes("USERS")) == 1
    create(catalog, "CREATE MATERIALIZED VIEW w INTO Users AS SELECT k FROM USERS", "USERS", "Users", query=query("w"))
    assert catalog.used("w") == ["users"]
    assert target(catalog.get("w").definition, catalog.used("w")) == "users"
    with pytest.raises(Unsupported, match='the table "users" is used by w'):
        catalog.drop(drop("DROP TABLE users"), now_ms=2)
    assert len(catalog.drop(drop("DROP TABLE users CASCADE"), now_ms=2)) == 3


def test_drop_knows_the_kind(filled: Catalog) -> None:
    with pytest.raises(SqlError, match='"w" is a view, not a stream'):
        filled.drop(drop("DROP STREAM w"), now_ms=2)
    assert filled.drop(drop("DROP STREAM IF EXISTS nothing"), now_ms=2) == []
    with pytest.raises(UnknownName):
        filled.drop(drop("DROP STREAM nothing"), now_ms=2)


@pytest.mark.parametrize("kind", ["stream", "view", "dictionary", "index", "function"])
def test_drop_of_an_unknown_name_speaks_of_its_kind(filled: Catalog, kind: str) -> None:
    drop = parse_one(f"DROP {kind.upper()} nope")
    assert isinstance(drop, Drop)
    with pytest.raises(UnknownName, match=f'there is no {kind} "nope"') as fault:
        filled.drop(drop, now_ms=0)
    known = [one.name for one in filled.relations(What(kind))]
    assert all(name in fault.value.fix for name in known) or "lists what there is" in fault.value.fix


def test_the_life_of_a_query(filled: Catalog) -> None:
    first = filled.query("w")
    assert (first.desired, first.actual, first.topic) == (Desired.RUNNING, Actual.PENDING, "w_topic")
    filled.set_checkpoint(first.id, f"checkpoints/{first.id}")
    filled.report(first.id, now_ms=3, actual=Actual.RUNNING, progress={"rows_in": 5})
    filled.report(first.id, now_ms=4, error="broker lost")
    filled.want("w", Desired.PAUSED, now_ms=5)
    now = filled.query("w")
    assert (now.desired, now.actual, now.error, now.progress) == (
        Desired.PAUSED,
        Actual.RUNNING,
        "broker lost",
        {"rows_in": 5},
    )
    assert (now.checkpoint, now.created_ms, now.updated_ms) == (f"checkpoints/{first.id}", 1, 5)


def test_a_name_can_run_again_while_its_old_query_is_cleaned_up(filled: Catalog) -> None:
    old = filled.query("w")
    filled.drop(drop("DROP VIEW w"), now_ms=2)
    create(filled, "CREATE MATERIALIZED VIEW w AS SELECT k FROM v", "v", query=query("w"))
    new = filled.query("w")
    assert new.id != old.id
    filled.forget_query(old.id)
    assert [one.id for one in filled.queries(dropped=True) if one.name == "w"] == [new.id]


def test_queries_of_no_view(catalog: Catalog) -> None:
    catalog.add_query(query("adhoc"), now_ms=1)
    with pytest.raises(SqlError, match='a query "adhoc" already'):
        catalog.add_query(query("adhoc"), now_ms=1)
    with pytest.raises(UnknownName) as caught:
        catalog.want("adhok", Desired.PAUSED, now_ms=1)
    assert caught.value.fix == 'did you mean "adhoc"?'


def test_a_catalog_that_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").mkdir()
    with pytest.raises(ServiceUnavailable, match="the catalog does not answer"):
        Catalog.open(f"sqlite:///{tmp_path}/catalog.db")


def test_the_tables_are_of_types_that_mysql_has() -> None:
    written = [str(CreateTable(table).compile(dialect=mysql.dialect())) for table in METADATA.sorted_tables]
    assert len(written) == 9
    assert "VARCHAR(255) COLLATE utf8mb4_bin" in next(text for text in written if "TABLE relations" in text)


WRITERS = 3
ROUNDS = 10


def _write(url: str, writer: int) -> None:
    """Opens (and so makes) the catalog, then creates, reports and reads, as the console and the runner do at once."""
    catalog = Catalog.open(url)
    for number in range(ROUNDS):
        name = f"s{writer}_{number}"
        create(catalog, f"CREATE STREAM {name} (k int)")
        added = catalog.add_query(query(name), now_ms=number)
        catalog.report(added.id, now_ms=number, actual=Actual.RUNNING, progress={"round": number})
        catalog.relations()
        # One name for which all of them race: exactly one makes it.
        create(catalog, f"CREATE STREAM IF NOT EXISTS shared_{number} (k int)")
    catalog.close()


def test_several_processes_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(url, writer)) for writer in range(WRITERS)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(timeout=120)
    assert [process.exitcode for process in writers] == [0] * WRITERS
    catalog = Catalog.open(url)
    assert len(catalog.relations()) == WRITERS * ROUNDS + ROUNDS
    queries = catalog.queries()
    assert len({one.id for one in queries}) == WRITERS * ROUNDS
    assert all(one.actual == Actual.RUNNING for one in queries)
    catalog.close()


def test_the_text_of_a_view_is_that_of_its_query(filled: Catalog) -> None:
    before = filled.get("v")
    after = f"{before.ddl} SETTINGS buckets = 3"
    filled.redefine(before, after)
    assert filled.get("v").ddl == filled.query("v").sql == after
    assert filled.query("w").sql == query("w").sql
    with pytest.raises(SqlError, match="another process has just changed"):
        filled.redefine(before, before.ddl)


def test_a_checkpoint_is_switched_once(catalog: Catalog) -> None:
    begun = catalog.add_query(query("v"), now_ms=0)
    catalog.set_checkpoint(begun.id, "/c/1")
    assert catalog.switch_checkpoint(begun.id, "/c/1", "/c/1.1")
    assert not catalog.switch_checkpoint(begun.id, "/c/1", "/c/1.2")
    assert catalog.query("v").checkpoint == "/c/1.1"


def test_the_checkpoints_of_several_queries_are_switched_together_or_not_at_all(catalog: Catalog) -> None:
    begun = [catalog.add_query(query(name), now_ms=0) for name in ("v", "w")]
    for one in begun:
        catalog.set_checkpoint(one.id, f"/c/{one.name}")
    assert not catalog.switch_checkpoints([(begun[0].id, "/c/v", "/p/v"), (begun[1].id, "/c/other", "/p/w")])
    assert [catalog.query(name).checkpoint for name in ("v", "w")] == ["/c/v", "/c/w"]
    assert catalog.switch_checkpoints([(one.id, f"/c/{one.name}", f"/p/{one.name}") for one in begun])
    assert [catalog.query(name).checkpoint for name in ("v", "w")] == ["/p/v", "/p/w"]


# -- leases


LEASE = Leadership("spark", "a:1", until_ms=100)


def test_a_lease_has_one_holder_until_its_time_is_over(catalog: Catalog) -> None:
    held = catalog.take_leadership(LEASE, now_ms=0)
    other = replace(LEASE, holder="b:2", until_ms=300)
    assert catalog.take_leadership(other, now_ms=99) == held
    assert catalog.renew_leadership(held, 200)
    assert catalog.take_leadership(other, now_ms=150).holder == "a:1"
    assert catalog.take_leadership(other, now_ms=201).holder == "b:2"


def test_whoever_has_lost_a_lease_cannot_renew_it(catalog: Catalog) -> None:
    held = catalog.take_leadership(LEASE, now_ms=0)
    taken = catalog.take_leadership(replace(LEASE, holder="b:2", until_ms=300), now_ms=101)
    assert not catalog.renew_leadership(held, 400)
    assert catalog.leadership("spark") == taken
    assert taken.epoch > held.epoch


def test_an_expired_lease_that_nobody_took_is_renewed(catalog: Catalog) -> None:
    held = catalog.take_leadership(LEASE, now_ms=0)
    assert catalog.renew_leadership(held, 10_000)


def test_the_lease_of_a_holder_that_is_known_to_be_gone_is_free(catalog: Catalog) -> None:
    held = catalog.take_leadership(LEASE, now_ms=0)
    other = replace(LEASE, holder="b:2", until_ms=300)
    assert catalog.take_leadership(other, now_ms=1, after=held.epoch + 1) == held
    assert catalog.take_leadership(other, now_ms=1, after=held.epoch).holder == "b:2"


def test_nobody_else_reads_its_file(tmp_path: Path) -> None:
    """A statement may hold a password. What is there already stays as its owner has made it."""
    path = tmp_path / "new" / "catalog.db"
    catalog = Catalog.open(f"sqlite:///{path}")
    catalog.queries()
    assert {one.name: one.stat().st_mode & 0o777 for one in path.parent.iterdir()} == dict.fromkeys(
        (one.name for one in path.parent.iterdir()), 0o600
    )
    path.chmod(0o640)
    Catalog.open(f"sqlite:///{path}").close()
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_catalog_has_the_identity_it_was_given_first(catalog: Catalog) -> None:
    assert catalog.identity("first") == "first"
    assert catalog.identity("second") == "first"


def test_a_definition_is_read_once_and_stays_what_it_is_when_queries_read_it() -> None:
    planner = Planner.of(
        "CREATE STREAM s (k int, n int)",
        "CREATE VIEW v AS SELECT DISTINCT k, upper('a') AS a FROM default.s WHERE n > 1",
    )
    first = planner.catalog.get("v").definition
    text = repr(first)
    for query in ("SELECT * FROM v", "SELECT v.a, count() FROM v GROUP BY v.a", "SELECT count() FROM table(v)"):
        planner.plan(query)
    assert planner.catalog.get("v").definition is first
    assert repr(first) == text
