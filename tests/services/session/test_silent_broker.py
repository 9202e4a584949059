"""Statements against a broker that accepts connections and never answers: each says so, none waits forever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.broker.timed_call import begun
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.services.session import Session
from dovetail.services.stack.temporary import temporary_settings
from dovetail.sql.catalog import Catalog
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.catalog.records import RelationDefinition
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.paths import ROOT
from tests.silent_broker import silent_broker

pytestmark = pytest.mark.services
HANGS_S = 60.0
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT s.k FROM s JOIN r ON s.k = r.k"
THERE = (
    "CREATE STREAM s (k int)",
    "CREATE STREAM r (k int)",
    "CREATE MUTABLE STREAM m (k int, v int) PRIMARY KEY k",
    "CREATE DICTIONARY d (k int, v string) PRIMARY KEY k SOURCE(SQLITE(PATH '/d.db' TABLE 'd')) LAYOUT(DIRECT())",
)
STATEMENTS = (
    "CREATE STREAM t (k int)",
    "CREATE EXTERNAL STREAM e (k int) SETTINGS type = 'kafka', topic = 'x'",
    VIEW.replace("VIEW v", "VIEW w"),
    "INSERT INTO s (k) VALUES (1)",
    "UPDATE m SET v = 3 WHERE k = 1",
    "DELETE FROM m WHERE k = 1",
    "SELECT * FROM table(s)",
    "SHOW STREAMS",
    "SYSTEM RELOAD DICTIONARY d",
    "DROP STREAM r",
    "DROP STREAM r WITH DATA",
)


@pytest.fixture
def brokers() -> Iterator[str]:
    with silent_broker() as address:
        yield address


@pytest.fixture
def session(brokers: str, tmp_path: Path) -> Iterator[Session]:
    """Over a catalog that was filled while the broker still answered."""
    settings = temporary_settings(tmp_path, brokers=brokers, broker_timeout_s=0.5, command_timeout_s=0.5)
    catalog = Catalog.open(settings.catalog_address)
    for text in THERE:
        definition = parse_one(text)
        assert isinstance(definition, RelationDefinition)
        catalog.create(definition, now_ms=0)
    with Session(settings, catalog, BrokerAddress(brokers)) as opened:
        yield opened


def outcome(session: Session, statement: str) -> Future[object]:
    """On a thread that ends with the process, so that one that hangs is a failure and nothing more."""
    return begun(lambda: session.execute(parse_one(statement)))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_says_that_kafka_does_not_answer(session: Session, brokers: str, statement: str) -> None:
    before = {relation.name for relation in session.context.catalog.relations()}

    failure = outcome(session, statement).exception(HANGS_S)

    assert isinstance(failure, ServiceUnavailable), repr(failure)
    assert "Kafka does not answer within 0.5 s" in failure.what
    assert brokers in failure.where
    assert "DOVETAIL_BROKERS" in failure.fix
    # What was not done is not half done: neither made without its topic, nor gone with its topic left.
    assert {relation.name for relation in session.context.catalog.relations()} == before


def test_a_comparison_says_so_too(session: Session) -> None:
    statement = parse_one(VIEW)
    assert isinstance(statement, CreateView)
    catalog = session.context.catalog
    plan = plan_query("v", statement, catalog)
    *upstream, query = queries_of(plan, VIEW)
    catalog.create(statement, now_ms=0, uses=plan.reads, query=query, upstream=upstream)
    with pytest.raises(ServiceUnavailable, match=r"Kafka does not answer within 0\.5 s"):
        session.verify("v")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dovetail.services.cli.main", "sql", "-c", "CREATE STREAM s (k int)"], "Kafka does not answer within 1 s"),
        (["dovetail.spark_jobs.runner"], "no broker answered at"),
        (["dovetail.services.worker"], "no broker answered at"),
    ],
    ids=["sql", "runner", "worker"],
)
def test_a_process_ends_with_the_reason(arguments: list[str], said: str, brokers: str, tmp_path: Path) -> None:
    settings = {"DATA_DIR": tmp_path, "BROKERS": brokers, "BROKER_TIMEOUT_S": 1}
    ended = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, **{f"DOVETAIL_{name}": str(value) for name, value in settings.items()}},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert ended.returncode == 1
    message = " ".join(ended.stderr.split())
    assert said in message
    assert brokers in message
    assert "DOVETAIL_BROKERS" in message
