"""Sessions against a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.dead_letter import SUFFIX
from dovetail.services.session import Rows, Session, topics
from dovetail.services.stack import Stack
from dovetail.sql.catalog import Catalog
from dovetail.sql.syntax.statements import Drop


@pytest.fixture
def session(stack: Stack, tmp_path: Path) -> Iterator[Session]:
    """A session with a catalog of its own; there is no runner. What the test creates is dropped after it."""
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    with Session(
        stack.settings, catalog, BrokerAddress(stack.endpoint("kafka")), runner_fault=lambda engine: "the test has none"
    ) as opened:
        yield opened
        leave_nothing(opened)


def leave_nothing(session: Session) -> None:
    """Drop all that there is, and delete the topics that were made for it."""
    for relation in reversed(session.context.catalog.relations()):
        session.execute(Drop(relation.what.value, relation.name, if_exists=True))
    there = session.context.topics.partitions()
    dead_letter_topics = [topic for topic in there if topic.endswith(SUFFIX)]
    topics.delete(session.context, [*topics.own(session.context, there), *dead_letter_topics])


Ask = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def ask(session: Session) -> Ask:
    """The rows of a bounded query or a listing."""

    def rows(statement: str) -> list[tuple[object, ...]]:
        [result] = session.run(statement)
        assert isinstance(result, Rows)
        return [tuple(row.values()) for row in result.table.to_pylist()]

    return rows
