"""ALTER VIEW v AS SELECT .. DRY RUN and EXPLAIN ALTER: against the view that the new query makes under another name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition

from dovetail.broker import clients
from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.wording import counted
from dovetail.services.session import Rows, Session, Text
from dovetail.services.stack import Stack
from tests.services.conftest import leave_nothing
from tests.services.session.test_queries import rows_of, settle

pytestmark = pytest.mark.services

TABLES = """
CREATE TABLE users (id int PRIMARY KEY, name varchar);
CREATE TABLE orders (id int PRIMARY KEY, user_id int, amount int);
CREATE STREAM clicks (user_id int, page string);
INSERT INTO users VALUES (1, 'ann'), (2, 'bob');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7), (12, 9, 8), (13, NULL, 9);
INSERT INTO clicks (user_id, page) VALUES (1, 'a'), (1, 'b'), (2, 'a'), (NULL, 'c');
CREATE MATERIALIZED VIEW priced AS
SELECT o.id AS id, u.name AS name, o.amount AS amount FROM orders AS o LEFT JOIN users AS u ON o.user_id = u.id;
CREATE MATERIALIZED VIEW totals AS SELECT user_id, sum(amount) AS amount FROM orders GROUP BY user_id;
CREATE MATERIALIZED VIEW named AS SELECT name, count(*) AS n FROM priced GROUP BY name;
CREATE MATERIALIZED VIEW visited AS SELECT c.page, u.name FROM clicks AS c JOIN users AS u ON c.user_id = u.id
    SETTINGS seek_to = 'earliest'
"""
JOINED = "FROM orders AS o {} JOIN users AS u ON o.user_id = u.id"
VISITED = "SELECT c.page, u.name FROM clicks AS c JOIN users AS u ON c.user_id = u.id"
EARLIEST = "SETTINGS seek_to = 'earliest'"
QUERIES = [
    ("priced", f"SELECT o.id AS id, u.name AS name, o.amount AS amount {JOINED.format('')}"),
    ("priced", f"SELECT o.id AS id, u.name AS name, o.amount * 2 AS amount {JOINED.format('LEFT')} WHERE o.amount > 5"),
    ("totals", "SELECT user_id, sum(amount) AS amount FROM orders GROUP BY user_id HAVING sum(amount) > 5"),
    ("totals", "SELECT user_id, max(amount) + 1 AS amount FROM orders WHERE user_id IS NOT NULL GROUP BY user_id"),
    ("named", "SELECT name, count(*) AS n FROM priced WHERE amount > 5 GROUP BY name"),
    ("visited", f"{VISITED} WHERE c.page <> 'a' {EARLIEST}"),
]


@pytest.fixture(scope="module")
def session(running: Stack) -> Iterator[Session]:
    with Session.open(running.settings) as opened:
        opened.run(TABLES)
        for view in ("priced", "totals", "named", "visited"):
            settle(opened, view)
        yield opened
        leave_nothing(opened)


def dry_run(session: Session, statement: str) -> Rows:
    [result] = session.run(statement)
    assert isinstance(result, Rows)
    return result


@pytest.mark.parametrize(("view", "query"), QUERIES)
def test_it_shows_what_a_view_of_the_new_query_has_more_and_less(session: Session, view: str, query: str) -> None:
    session.run(f"CREATE OR REPLACE MATERIALIZED VIEW other AS {query} WITH DATA")
    settle(session, "other")
    before, after = (Counter(rows_of(session, f"SELECT * FROM table({name})")) for name in (view, "other"))
    shown = dry_run(session, f"ALTER VIEW {view} AS {query} DRY RUN")
    assert {tuple(row.values()) for row in shown.table.to_pylist()} == {
        *((*row, times) for row, times in (after - before).items()),
        *((*row, -times) for row, times in (before - after).items()),
    }
    gained, lost = (after - before).total(), (before - after).total()
    assert f"would gain {gained} row{'' if gained == 1 else 's'} and lose {lost} of its {before.total()}" in shown.note
    session.run("DROP VIEW other WITH DATA")


def test_the_query_that_a_view_has_changes_nothing(session: Session) -> None:
    query = "SELECT user_id, sum(amount) AS amount FROM orders GROUP BY user_id"
    shown = dry_run(session, f"ALTER VIEW totals AS {query} DRY RUN")
    assert (shown.table.num_rows, shown.note) == (0, "totals would keep its 4 rows")


def test_rows_of_a_key_count_as_changed(session: Session) -> None:
    query = "SELECT user_id, sum(amount) + 1 AS amount FROM orders WHERE user_id > 1 GROUP BY user_id"
    shown = dry_run(session, f"ALTER VIEW totals AS {query} DRY RUN")
    assert "0 keys new, 2 with another row, 2 gone; 6 of 6 changes shown" in shown.note
    assert [row["_tp_delta"] for row in shown.table.to_pylist()[1:3]] == [-1, 1]


def test_an_added_column_changes_each_row_that_has_a_value_there(session: Session) -> None:
    query = "SELECT user_id, sum(amount) AS amount, nullif(count(*), 1) AS n FROM orders GROUP BY user_id"
    assert "would gain 0 rows and lose 0" not in dry_run(session, f"ALTER VIEW totals AS {query} DRY RUN").note
    assert dry_run(session, f"ALTER VIEW totals AS {query} DRY RUN").note == "totals would keep its 4 rows"


def test_explain_alter_says_what_changes_who_reads_and_how_much(session: Session) -> None:
    [text] = session.run(
        "EXPLAIN ALTER priced AS SELECT o.id AS id, o.amount * 1.5 AS amount, 'x' AS kind FROM orders AS o"
    )
    assert isinstance(text, Text)
    for part in ("- name string", "+ kind string", "orders: ", "named: reads name, and could not go on"):
        assert part in text.text
    assert "consumer groups\n  none" in text.text
    consumer = clients.consumer(session.context.brokers, "report", {})
    consumer.commit(offsets=[TopicPartition("priced", 0, 3)], asynchronous=False)
    consumer.close()
    [text] = session.run(
        f"EXPLAIN ALTER priced AS SELECT o.id AS id, u.name AS name, o.amount + 1 AS amount {JOINED.format('LEFT')}"
    )
    assert isinstance(text, Text)
    there = session.context.topics.ends("priced")[0] - 3
    assert "views below\n  named: goes on" in text.text
    assert re.search(r"to read\n(  .*\n)*  at most \d+ s, at the mean rate of priced while it had records", text.text)
    assert f"report: gets -1 and +1 of the rows that change, after {counted(there, 'record')} that it" in text.text
    [text] = session.run(
        "EXPLAIN ALTER VIEW visited AS SELECT c.page, u.name FROM clicks AS c JOIN users AS u ON c.user_id = u.id"
    )
    assert isinstance(text, Text)
    assert text.text.startswith("columns\n  as they are\n\nplan\n  as it is\n\nto read\n  clicks: ")
    assert "views below\n  none" in text.text


@pytest.mark.parametrize(
    ("statement", "error", "said"),
    [
        ("ALTER VIEW orders AS SELECT id FROM users DRY RUN", SqlError, "is a table, not a view"),
        ("ALTER VIEW nothing AS SELECT id FROM users DRY RUN", UnknownName, "nothing"),
        ("ALTER VIEW totals AS SELECT nothing FROM orders DRY RUN", SqlError, "nothing"),
        ("ALTER VIEW totals AS SELECT id FROM table(orders) DRY RUN", Unsupported, "would end at once"),
        ("ALTER VIEW priced AS SELECT name, n FROM named DRY RUN", Unsupported, "priced"),
        (f"ALTER VIEW visited AS {VISITED.replace('JOIN', 'ASOF JOIN')} DRY RUN", SqlError, ""),
    ],
)
def test_what_cannot_be_the_query_of_the_view_is_refused_and_nothing_changes(
    session: Session, statement: str, error: type[SqlError], said: str
) -> None:
    before = session.context.catalog.relations()
    with pytest.raises(error) as refused:
        session.run(statement)
    assert said in str(refused.value)
    assert session.context.catalog.relations() == before
