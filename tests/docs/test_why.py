"""What docs/why.md shows is what a trace of its example gives."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from dovetail.services.cli.show import Screen
from dovetail.services.session.typed_rows import typed_rows
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.parse import parse, parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateStream, CreateView, Insert, Why
from tests.docs.pages import Page
from tests.sql.trace.traced_world import why
from tests.sql.world import World

PAGE = Page.of("docs/why.md")
SHOWN = re.findall(r"```sql\n(WHY .*?)\n```\n\n```\n(.*?)```", PAGE.text, re.DOTALL)
NOON_MS = 1_767_268_800_000


def shown(text: str) -> str:
    """The lines of WHY and WHY NOT, as a pipe gets them."""
    statement = parse_one(text)
    assert isinstance(statement, Why)
    world, query = example()
    found = why(world, query, text.partition(" WHERE ")[2])
    lines = found.lost if statement.absent else found.behind.drop_columns(["reason"])
    output = io.StringIO()
    Screen(output=output).plain(lines)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def example() -> tuple[World, str]:
    """The world of the page, a record a second, and the query of its view."""
    world, query = World.of(), ""
    for statement in parse(PAGE.blocks("sql")[0], Rules.RISINGWAVE):
        if isinstance(statement, CreateView):
            query = statement.text.partition(" AS\n")[2]
        elif isinstance(statement, Insert):
            definition = world.engine.catalog.get(statement.stream).definition
            assert isinstance(definition, CreateStream)
            rows = typed_rows(Stream.declared(definition).schema, statement.columns, statement.rows)
            world.insert(statement.stream, *rows.drop_columns(["__delta"]).to_pylist())
        else:
            world.engine.create(statement.text)
    for topic in world.engine.host.topics.values():  # type: ignore[attr-defined]
        topic.records[:] = [
            replace(record, timestamp_ms=NOON_MS + 1000 * place) for place, record in enumerate(topic.records)
        ]
    return world, query


@pytest.mark.parametrize(("statement", "output"), SHOWN, ids=[statement for statement, _ in SHOWN])
def test_the_page_shows_what_is_said(statement: str, output: str) -> None:
    assert shown(statement) == output


def test_the_page_shows_more_than_one_answer() -> None:
    assert len(SHOWN) == 6
