"""ALTER VIEW v SET (buckets = n): what is refused, by the catalog alone; and a view that is altered, by its runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import DovetailError, SqlError, UnknownName, Unsupported
from dovetail.runtime.settings import Settings
from dovetail.services.session import Done, Session, Text
from dovetail.sql.catalog import Actual, Catalog, Desired, Query
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream, CreateView
from tests.services.session.test_backup import machine, net, settle

DDL = """
CREATE STREAM orders (id int, user_id int);
CREATE MUTABLE STREAM users (id int, name string) PRIMARY KEY id;
CREATE VIEW plain AS SELECT id FROM orders;
CREATE MATERIALIZED VIEW joined AS SELECT o.id, u.name FROM orders AS o JOIN users AS u ON o.user_id = u.id;
CREATE MATERIALIZED VIEW looked_up AS SELECT o.id, u.name FROM orders AS o JOIN users AS u ON o.user_id = u.id
    SETTINGS join_algorithm = 'direct'
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Views of which the catalog says that they run; nobody runs them."""
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    for statement in parse(DDL):
        assert isinstance(statement, CreateStream | CreateView | CreateDictionary)
        if isinstance(statement, CreateView) and statement.materialized:
            plan = plan_query(statement.name, statement, catalog)
            *upstream, query = queries_of(plan, statement.text)
            catalog.create(statement, now_ms=0, uses=plan.reads, query=query, upstream=upstream)
        else:
            catalog.create(statement, now_ms=0)
    for query in catalog.queries():
        say(catalog, query, Actual.RUNNING)
    with Session(
        Settings(start_timeout_s=0.3), catalog, BrokerAddress("127.0.0.1:1"), runner_fault=lambda _: ""
    ) as opened:
        yield opened


def say(
    catalog: Catalog, query: Query, actual: Actual, error: str = "", progress: Mapping[str, object] | None = None
) -> None:
    """As its runner would."""
    catalog.report(query.id, now_ms=0, actual=actual, error=error, progress=progress or {"buckets": 2})


def refused(session: Session, statement: str) -> DovetailError:
    before = session.context.catalog.relations()
    with pytest.raises(DovetailError) as raised:
        session.run(statement)
    assert session.context.catalog.relations() == before
    return raised.value


@pytest.mark.parametrize("value", ["0", "-1", "1025", "2.5", "'many'", "true"])
def test_a_number_that_is_none(session: Session, value: str) -> None:
    error = refused(session, f"ALTER VIEW joined SET (buckets = {value})")
    assert isinstance(error, SqlError)
    assert error.what.startswith("buckets cannot be ")
    assert "a whole number" in error.fix


@pytest.mark.parametrize(
    ("statement", "kind", "said", "fix"),
    [
        ("ALTER VIEW joned SET (buckets = 3)", UnknownName, 'no stream or view "joned"', '"joined"'),
        ("ALTER VIEW orders SET (buckets = 3)", SqlError, "is a stream, not a view", "SHOW VIEWS"),
        ("ALTER VIEW plain SET (buckets = 3)", Unsupported, "is not materialized", "that read it"),
        ("ALTER VIEW looked_up SET (buckets = 3)", Unsupported, "is a lookup view", "more partitions"),
        ("ALTER VIEW joined SET (bukets = 3)", UnknownName, 'no setting "bukets"', "buckets"),
        ("ALTER VIEW joined SET (output = 'append')", Unsupported, "is not altered", "CREATE OR REPLACE"),
    ],
)
def test_what_has_no_buckets(session: Session, statement: str, kind: type[DovetailError], said: str, fix: str) -> None:
    error = refused(session, statement)
    assert isinstance(error, kind)
    assert said in error.what
    assert fix in error.fix


@pytest.mark.parametrize(
    ("desired", "actual", "said", "fix"),
    [
        (Desired.PAUSED, Actual.PAUSED, "is paused", "RESUME joined"),
        (Desired.RUNNING, Actual.FAILED, "has failed: there is no broker", "RESUME joined"),
        (Desired.RUNNING, Actual.RECOVERING, "is recovering", "wait until it is running"),
        (Desired.RUNNING, Actual.PENDING, "is just being made, restored or started", "wait until it is running"),
    ],
)
def test_a_view_that_does_not_run(session: Session, desired: Desired, actual: Actual, said: str, fix: str) -> None:
    catalog = session.context.catalog
    catalog.set_checkpoint(catalog.query("joined").id, "/checkpoints/1-joined")
    catalog.want("joined", desired, now_ms=0)
    say(catalog, catalog.query("joined"), actual, "there is no broker")
    error = refused(session, "ALTER VIEW joined SET (buckets = 3)")
    assert said in error.what
    assert fix in error.fix


def test_what_is_so_already_and_what_is_not_there(session: Session) -> None:
    assert session.run("ALTER VIEW joined SET buckets = 2") == [Done("joined has 2 buckets already")]
    assert session.run("ALTER VIEW IF EXISTS none SET buckets = 2") == [Done("there is no view none")]


def test_a_definition_with_other_buckets_is_the_same_and_names_the_way_to_them(session: Session) -> None:
    """A script that is run again after an ALTER VIEW does not begin the view anew."""
    definition = "CREATE OR REPLACE MATERIALIZED VIEW joined AS SELECT o.id, u.name FROM orders AS o JOIN users AS u"
    definition += " ON o.user_id = u.id"
    for text, way in ((definition, "WITH DATA"), (f"{definition} SETTINGS buckets = 4", "ALTER VIEW joined SET (buc")):
        [done] = session.run(text)
        assert isinstance(done, Done)
        assert f"joined has this query already, running; it goes on: {way}" in done.text


@pytest.mark.parametrize("actual", [Actual.RUNNING, Actual.PACKING])
def test_one_that_nobody_takes_up_is_said_to_go_on_and_may_be_altered_back(session: Session, actual: Actual) -> None:
    catalog = session.context.catalog
    say(catalog, catalog.query("joined"), actual)
    with pytest.raises(DovetailError, match="not rescaled yet"):
        session.run("ALTER VIEW joined SET (buckets = 3)")
    assert catalog.get("joined").ddl.endswith("SETTINGS buckets = 3")
    assert catalog.query("joined").sql == catalog.get("joined").ddl
    say(catalog, catalog.query("joined"), Actual.RECOVERING)
    with pytest.raises(DovetailError, match="not rescaled yet"):
        session.run("ALTER VIEW joined SET (buckets = 2)")
    assert catalog.get("joined").ddl.endswith("SETTINGS buckets = 2")


@pytest.mark.services
def test_a_view_is_altered_and_stays_as_it_was_where_that_cannot_be(broker: str, tmp_path: Path) -> None:
    with machine(tmp_path / "machine", broker) as session:
        session.run("CREATE TABLE rebuyers (id int PRIMARY KEY, name varchar)")
        session.run("CREATE TABLE resales (id int PRIMARY KEY, buyer int, amount int)")
        session.run(
            "CREATE MATERIALIZED VIEW resold AS SELECT s.id AS id, b.name AS name, s.amount AS amount"
            " FROM resales AS s LEFT JOIN rebuyers AS b ON s.buyer = b.id"
            " SETTINGS buckets = 2, join_max_buffered_bytes = 4000"
        )
        session.run("INSERT INTO rebuyers VALUES (1, 'ann'); INSERT INTO resales VALUES (10, 1, 5), (11, 2, 7)")
        settle(session, "resold")

        error = refused(session, "ALTER VIEW resold SET (buckets = 200)")
        assert "could not be rescaled, and is as it was" in error.what
        assert "join_max_buffered_bytes" in error.what
        assert session.run("ALTER VIEW resold SET (buckets = 1)") == [Done("altered view resold: 1 bucket, running")]

        [shown] = session.run("SHOW CREATE resold")
        assert isinstance(shown, Text)
        assert "SETTINGS buckets = 1, join_max" in shown.text
        session.run("INSERT INTO rebuyers VALUES (2, 'bob'); UPDATE resales SET amount = 6 WHERE id = 10")
        settle(session, "resold")
        assert net(broker, "resold") == {(10, "ann", 6): 1, (11, "bob", 7): 1}
        assert session.verify("resold").holds
        session.run("DROP VIEW resold; DROP TABLE resales; DROP TABLE rebuyers")
        assert not list((tmp_path / "machine").rglob("*-resold*/query.json"))
