"""Dead letters in SQL and on the screen, over a real broker."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest

from dovetail.broker.topic_shapes import TopicShape
from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.services.cli.row_format import Format
from dovetail.services.cli.show import Screen
from dovetail.services.cli.tail import tail_rows
from dovetail.services.session import Session
from dovetail.sql.syntax.parse import parse_one
from tests.services.conftest import Ask
from tests.services.session.dead_letters import REASON, dead_letters, output_row, post

pytestmark = pytest.mark.services
SOURCE = ("source_topic", "source_partition", "source_offset", "source_time")
FIRST = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


@pytest.fixture
def dead(session: Session, request: pytest.FixtureRequest) -> str:
    """A topic of dead letters: two of a reason, one of bytes that are no text, one without a place."""
    name = f"{request.node.name.partition('[')[0]}.dead_letter"
    session.context.topics.create(name, TopicShape(1))
    brokers = session.context.brokers.servers
    post(brokers, name, dead_letters("orders", [b'{"price":"abc"}', b'{"price":"d\ne"}']))
    post(brokers, name, [*dead_letters("orders", [b"\xff"], partition=1, reason="not UTF-8"), output_row("priced")])
    return name


@pytest.mark.parametrize("written", ["table({})", 'table("{}")', "table({}) AS d"])
def test_letters_are_rows_of_a_bounded_query(written: str, dead: str, ask: Ask) -> None:
    columns = "source_topic, source_partition, source_offset, source_time, reason, value"
    found = ask(f"SELECT {columns} FROM {written.format(dead)} WHERE key = '0' ORDER BY source_partition")
    assert found == [
        ("orders", 0, 0, FIRST, REASON, '{"price":"abc"}'),
        ("orders", 1, 0, FIRST, "not UTF-8", "\N{REPLACEMENT CHARACTER}"),
    ]
    assert ask(f"SELECT count() FROM {written.format(dead)}") == [(4,)]


def test_letters_are_joined_with_other_content(dead: str, session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM known (reason string, mend string)")
    session.run(f"INSERT INTO known VALUES ('{REASON.replace(chr(39), chr(39) * 2)}', 'the shop')")
    joined = f"table({dead}) AS d JOIN table(known) AS k ON d.reason = k.reason"
    assert ask(f"SELECT k.mend, count() AS n FROM {joined} GROUP BY k.mend") == [("the shop", 2)]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT reason FROM {}", "is no stream of rows"),
        ("SELECT s.a FROM s JOIN {} AS d ON s.a = d.reason", "is no stream of rows"),
        ("SELECT s.a FROM s JOIN table({}) AS d ON s.a = d.reason", "cannot be read in a streaming query"),
    ],
)
def test_a_streaming_query_reads_no_letters_and_says_what_does(
    query: str, said: str, dead: str, session: Session
) -> None:
    session.run("CREATE STREAM s (a string)")
    with pytest.raises(Unsupported, match=said):
        session.execute(parse_one(query.format(dead)))


def test_letters_of_a_topic_that_is_not_there(session: Session) -> None:
    session.context.topics.create("prices.dead_letter", TopicShape(1))
    with pytest.raises(UnknownName, match='there is no topic "price') as refused:
        session.run("SELECT * FROM table(price.dead_letter)")
    assert "prices.dead_letter" in refused.value.fix


def test_letters_are_counted_by_reason(dead: str, ask: Ask) -> None:
    counted = [(row[0], row[1], row[2], row[3]) for row in ask(f"SHOW DEAD LETTERS FROM {dead}")]
    assert counted == [(dead, REASON, 2, 0), (dead, "not UTF-8", 1, 0), (dead, "too large", 1, 0)]
    [(_, _, _, _, first, last)] = ask("SHOW DEAD LETTERS LIKE 'column price%'")
    assert isinstance(first, datetime)
    assert isinstance(last, datetime)
    assert first <= last
    assert ask("SHOW DEAD LETTERS LIKE 'nothing'") == []


def test_dead_letters_of_what_is_no_view(session: Session) -> None:
    with pytest.raises(SqlError, match='there is no view "prised"'):
        session.run("SHOW DEAD LETTERS FROM prised")


def tailed(session: Session, topic: str, form: Format) -> str:
    output = io.StringIO()
    tail_rows(session, Screen(form, output), topic, from_beginning=True, limit=4)
    return output.getvalue()


def test_tail_shows_a_line_for_each_letter(dead: str, session: Session) -> None:
    header, _, *lines = tailed(session, dead, Format.TABLE).splitlines()
    assert header.split() == [*SOURCE, "reason", "key", "value"]
    assert len(lines) == 4
    assert [part for part in lines[1].split("  ") if part][-3:] == [REASON, "1", ' {"price":"d e"}']
    rows = [json.loads(line) for line in tailed(session, dead, Format.JSON).splitlines()]
    assert [row["value"] for row in rows][:2] == ['{"price":"abc"}', '{"price":"d\ne"}']


def test_tail_of_letters_that_are_not_there(session: Session) -> None:
    with pytest.raises(UnknownName, match='there is no topic "nobody'):
        tailed(session, "nobody.dead_letter", Format.TABLE)
