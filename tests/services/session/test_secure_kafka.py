"""A stack over a cluster that is encrypted and asks for a password: Spark, lookups and the session itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from dovetail.services.session import Rows, Session
from dovetail.services.session.input_progress import await_reading, input_ends
from dovetail.services.stack import Stack, temporary_stack
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.statements import CreateView
from tests.servers.process import PASSWORD
from tests.servers.secure_broker import USER, secure_broker

pytestmark = pytest.mark.services

SETUP = """
CREATE STREAM orders (id int64, k int64);
CREATE MUTABLE STREAM names (k int64, name string) PRIMARY KEY k;
CREATE MATERIALIZED VIEW joined AS
SELECT orders.id AS id, name FROM orders JOIN names ON orders.k = names.k SETTINGS seek_to = 'earliest';
CREATE MATERIALIZED VIEW looked_up AS
SELECT orders.id AS id, name FROM orders LEFT JOIN names ON orders.k = names.k
SETTINGS seek_to = 'earliest', join_algorithm = 'direct';
INSERT INTO names VALUES (1, 'ann');
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with secure_broker(tmp_path_factory.mktemp("broker")) as secure:
        given = {
            "brokers": secure.login,
            "kafka_security_protocol": "sasl_ssl",
            "kafka_ssl_ca_location": secure.folder / "ca.pem",
            "kafka_sasl_mechanism": "SCRAM-SHA-512",
            "kafka_sasl_username": USER,
            "kafka_sasl_password": SecretStr(PASSWORD),
        }
        folder = tmp_path_factory.mktemp("secure-stack")
        with temporary_stack(folder, ("redis", "spark", "worker"), start_timeout_s=240.0, **given) as stack:
            yield stack


def test_views_of_both_engines_answer_and_nothing_tells_the_password(running: Stack) -> None:
    with Session.open(running.settings) as session:
        session.run(SETUP)
        for view in ("joined", "looked_up"):
            settle(session, view)
        session.run("INSERT INTO orders VALUES (10, 1), (11, 2)")
        for view in ("joined", "looked_up"):
            settle(session, view)
        assert rows(session, "SELECT id, name FROM table(joined)") == [(10, "ann")]
        assert rows(session, "SELECT id, name FROM table(looked_up) ORDER BY id") == [(10, "ann"), (11, None)]
    files = [path for path in running.settings.log_dir.rglob("*") if path.is_file()]
    logs = "".join(path.read_text(errors="replace") for path in files)
    assert logs
    assert PASSWORD not in logs
    assert PASSWORD not in str(Catalog.open(running.settings.catalog_address).queries())


def settle(session: Session, view: str) -> None:
    definition = session.context.catalog.get(view).definition
    assert isinstance(definition, CreateView)
    plan = plan_query(view, definition, session.context.catalog)
    await_reading(session.context, view, input_ends(session.context, plan))
    session.context.topics.quiescent_ends(plan.stream().topic)


def rows(session: Session, query: str) -> list[tuple[object, ...]]:
    [result] = session.run(query)
    assert isinstance(result, Rows)
    return [tuple(row.values()) for row in result.table.to_pylist()]
