"""CREATE INDEX: an index is of columns that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import DovetailError
from dovetail.services.session import Done, Session
from dovetail.services.stack.temporary import temporary_settings
from dovetail.sql.catalog import Catalog
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView


@pytest.fixture
def session(tmp_path: Path) -> Session:
    catalog = Catalog.open("sqlite://")
    for text in (
        "CREATE TABLE items (k int PRIMARY KEY, name varchar)",
        "CREATE VIEW named AS SELECT k, name FROM items",
        "CREATE MATERIALIZED VIEW priced AS SELECT k, name AS label FROM items",
    ):
        definition = parse_one(text)
        assert isinstance(definition, CreateStream | CreateView)
        catalog.create(definition, now_ms=0)
    return Session(temporary_settings(tmp_path), catalog, BrokerAddress("nowhere"))


@pytest.mark.parametrize("of", ["items (name)", "items (k, name)", "ITEMS (name) INCLUDE (k)", "priced (label)"])
def test_an_index_of_columns_that_are_there(session: Session, of: str) -> None:
    assert session.run(f"CREATE INDEX i ON {of}") == [Done("created index i")]


@pytest.mark.parametrize(
    ("of", "what", "fix"),
    [
        ("itms (name)", 'there is no stream or view "itms"', 'did you mean "items"?'),
        ("items (nme)", '"items" has no column "nme"', 'did you mean "name"?'),
        ("items (name) INCLUDE (price)", '"items" has no column "price"', "there are: k, name"),
        ("priced (name)", '"priced" has no column "name"', "there are: k, label"),
        ("named (name)", '"named" is no stream: it has no topic', "SHOW STREAMS"),
    ],
)
def test_an_index_of_what_is_not_there_is_refused(session: Session, of: str, what: str, fix: str) -> None:
    with pytest.raises(DovetailError) as refused:
        session.run(f"CREATE INDEX i ON {of}")
    assert refused.value.what.startswith(what)
    assert refused.value.fix.startswith(fix)
    assert session.context.catalog.find("i") is None
