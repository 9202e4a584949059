"""ALTER VIEW v AS SELECT ..: the topic of the view adds up to the rows of its new query, also where somebody dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.runtime import succession
from dovetail.services.session import Done, Rows, Session
from dovetail.services.stack import Stack
from dovetail.sql.catalog import Actual
from tests.paths import ROOT
from tests.services.conftest import leave_nothing
from tests.services.session.test_dry_run import EARLIEST, JOINED, TABLES, VISITED
from tests.services.session.test_queries import changelog_of, rows_of, settle
from tests.spark.kafka import send

pytestmark = pytest.mark.services

QUERIES = [
    {
        "priced": f"SELECT o.id AS id, u.name AS name, o.amount AS amount {JOINED.format('')}",
        "totals": "SELECT user_id, sum(amount) AS amount FROM orders GROUP BY user_id HAVING sum(amount) > 5",
        "visited": f"{VISITED} WHERE c.page <> 'a' {EARLIEST}",
    },
    {
        "priced": (
            f"SELECT o.id AS id, u.name AS name, o.amount * 2 AS amount {JOINED.format('LEFT')} WHERE o.amount > 5"
        ),
        "named": "SELECT name, count(*) AS n FROM priced WHERE amount > 5 GROUP BY name",
    },
]
VIEWS = ("priced", "totals", "named", "visited")
MORE = """
INSERT INTO users VALUES (9, 'eve'), (2, 'bea');
INSERT INTO orders VALUES (14, 9, 3), (10, 2, 50);
DELETE FROM orders WHERE id = 11;
INSERT INTO clicks (user_id, page) VALUES (9, 'd'), (1, 'a')
"""


@pytest.fixture
def session(running: Stack) -> Iterator[Session]:
    with Session.open(running.settings) as opened:
        opened.run(TABLES)
        for view in VIEWS:
            settle(opened, view)
        yield opened
        leave_nothing(opened)


def altered(session: Session, view: str, query: str) -> str:
    [done] = session.run(f"ALTER VIEW {view} AS {query}")
    assert isinstance(done, Done)
    return done.text


def altered_as_tried(session: Session, view: str, query: str) -> int:
    """How many changes the dry run shows, which are those that the view then gets."""
    [tried] = session.run(f"ALTER VIEW {view} AS {query} DRY RUN")
    assert isinstance(tried, Rows)
    message = altered(session, view, query)
    deltas = tried.table.column("_tp_delta").to_pylist()
    gained, lost = (sum(abs(delta) for delta in deltas if (delta > 0) is side) for side in (True, False))
    assert message == f"altered view {view}, running: {gained} row{'' if gained == 1 else 's'} added, {lost} taken back"
    return int(gained + lost)


def expected(session: Session, query: str) -> Counter[tuple[object, ...]]:
    """The rows of a view that was created with the query."""
    session.run(f"CREATE MATERIALIZED VIEW other AS {query}")
    settle(session, "other")
    rows = Counter(rows_of(session, "SELECT * FROM table(other)"))
    session.run("DROP VIEW other WITH DATA")
    return rows


def assert_follows(session: Session, view: str, query: str) -> None:
    """The net rows of the topic are those of the query, and no reader of it is ever below zero."""
    settle(session, "priced")
    settle(session, view)
    assert Counter(rows_of(session, f"SELECT * FROM table({view})")) == expected(session, query)
    counts: Counter[tuple[object, ...]] = Counter()
    for *row, delta in changelog_of(session, f"SELECT *, _tp_delta FROM {view} SETTINGS seek_to = 'earliest'"):
        assert isinstance(delta, int)
        counts[tuple(row)] += delta
        assert counts[tuple(row)] >= 0
    assert session.verify(view).holds


@pytest.mark.parametrize("queries", QUERIES, ids=" ".join)
def test_views_go_on_with_other_queries(session: Session, queries: Mapping[str, str]) -> None:
    for view, query in queries.items():
        settle(session, view)  # a view of a view altered just now still has its changes to write
        ends = session.context.topics.quiescent_ends(view)
        changes = altered_as_tried(session, view, query)
        written = session.context.topics.quiescent_ends(view)
        assert sum(written.values()) - sum(ends.values()) <= changes + len(written)
    session.run(MORE)
    for view, query in queries.items():
        assert_follows(session, view, query)
        assert session.context.catalog.get(view).ddl.endswith(query)


OTHER_COLUMNS = [
    {
        "priced": f"SELECT o.id AS id, u.name AS name, o.amount AS amount, u.id AS user {JOINED.format('LEFT')}",
        "totals": "SELECT user_id, count(*) AS n, sum(amount) AS amount FROM orders GROUP BY user_id",
        "visited": f"SELECT u.name FROM clicks AS c JOIN users AS u ON c.user_id = u.id {EARLIEST}",
    },
    {
        "priced": f"SELECT u.name AS name, o.id AS id, o.amount * 2 AS twice {JOINED.format('')} WHERE o.amount > 5",
        "totals": "SELECT user_id, max(amount) AS largest FROM orders GROUP BY user_id",
    },
    {"totals": "SELECT user_id::bigint AS user_id, sum(amount) AS amount FROM orders GROUP BY user_id::bigint"},
]


@pytest.mark.parametrize("queries", OTHER_COLUMNS, ids=" ".join)
def test_the_new_query_may_have_other_columns(session: Session, queries: Mapping[str, str]) -> None:
    """The view ``named`` reads ``name`` of ``priced``, and goes on."""
    for view, query in queries.items():
        altered_as_tried(session, view, query)
    session.run(MORE)
    for view, query in queries.items():
        assert_follows(session, view, query)
    assert_follows(session, "named", "SELECT name, count(*) AS n FROM priced GROUP BY name")


def test_a_column_that_a_reader_reads_stays(session: Session) -> None:
    session.run("CREATE MATERIALIZED VIEW whole AS SELECT * FROM totals")
    settle(session, "whole")
    for statement, readers in {
        f"ALTER VIEW priced AS SELECT o.id AS id, o.amount AS amount {JOINED.format('')}": "named would",
        "ALTER VIEW totals AS SELECT user_id, sum(amount) AS amount, 1 AS n FROM orders GROUP BY 1": "whole would",
    }.items():
        with pytest.raises(Unsupported, match=readers):
            session.run(statement)
    session.run("DROP VIEW whole")
    session.run(MORE)
    assert_follows(session, "named", "SELECT name, count(*) AS n FROM priced GROUP BY name")


def test_no_reader_takes_the_difference_for_late_rows(session: Session) -> None:
    closed = (
        "SELECT page, window_end AS ended, count(*) AS n FROM tumble(visits, at, INTERVAL '1 minute') "
        "GROUP BY page, window_end{} EMIT ON WINDOW CLOSE"
    )
    session.run(
        "CREATE TABLE visits (page varchar, at timestamp, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY;"
        f"CREATE MATERIALIZED VIEW often AS {closed.format(' HAVING count(*) > 1')};"
        "CREATE MATERIALIZED VIEW hourly AS SELECT window_end AS hour, sum(n) AS n "
        "FROM tumble(often, ended, INTERVAL '1 hour') GROUP BY window_end EMIT ON WINDOW CLOSE"
    )
    with pytest.raises(Unsupported, match='hourly goes by the watermark of "often"'):
        session.run(f"ALTER VIEW often AS {closed.format('')}")
    session.run("DROP VIEW hourly")
    assert altered(session, "often", closed.format("")) == "altered view often, running: 0 rows added, 0 taken back"


def test_a_view_that_began_at_the_end_of_a_topic_begins_there_with_its_new_query_too(session: Session) -> None:
    session.run(f"CREATE MATERIALIZED VIEW lately AS {VISITED}; {MORE}")
    settle(session, "lately")
    assert Counter(rows_of(session, "SELECT * FROM table(lately)")) == {("d", "eve"): 1, ("a", "ann"): 1}
    altered(session, "lately", f"{VISITED} WHERE c.page <> 'a'")
    session.run("INSERT INTO clicks (user_id, page) VALUES (1, 'a'), (9, 'e')")
    settle(session, "lately")
    assert Counter(rows_of(session, "SELECT * FROM table(lately)")) == {("d", "eve"): 1, ("e", "eve"): 1}
    assert session.verify("lately").holds


def test_a_view_is_altered_again_and_back(session: Session) -> None:
    first = "SELECT user_id, sum(amount) AS amount FROM orders GROUP BY user_id"
    second = f"{first} HAVING sum(amount) > 7"
    altered(session, "totals", second)
    session.run("PAUSE totals; INSERT INTO orders VALUES (20, 1, 9); RESUME totals")
    assert_follows(session, "totals", second)
    [done] = session.run("ALTER VIEW totals ROLLBACK")
    assert isinstance(done, Done)
    assert done.text.startswith("altered view totals, running: ")
    assert done.text.endswith("; ROLLBACK once more gives it the query that it had until now")
    assert_follows(session, "totals", first)
    assert altered(session, "totals", first) == "totals has this query already, and goes on"


def test_what_would_need_another_topic_is_refused_and_the_view_goes_on(session: Session) -> None:
    refusals = {
        "ALTER VIEW totals AS SELECT user_id, sum(amount)::int AS amount FROM orders GROUP BY user_id": "~ amount",
        "ALTER VIEW totals AS SELECT user_id, amount FROM orders": "another form",
        "ALTER VIEW visited AS SELECT page, page AS name FROM clicks": "another form",
        f"ALTER VIEW pages AS SELECT page, user_id FROM clicks {EARLIEST}": "would take back 3 rows",
    }
    session.run(f"CREATE MATERIALIZED VIEW pages AS SELECT page FROM clicks {EARLIEST}")
    settle(session, "pages")
    for statement, said in refusals.items():
        with pytest.raises(Unsupported, match=said):
            session.run(statement)
    with pytest.raises(SqlError, match="has the query that it was created with"):
        session.run("ALTER VIEW totals ROLLBACK")
    session.run("PAUSE totals")
    with pytest.raises(SqlError, match="is paused"):
        session.run("ALTER VIEW totals AS SELECT user_id, sum(amount + 3) AS amount FROM orders GROUP BY user_id")
    session.run("RESUME totals")
    session.run(MORE)
    assert_follows(session, "totals", "SELECT user_id, sum(amount) AS amount FROM orders GROUP BY user_id")
    assert not [one for one in session.context.catalog.queries(dropped=True) if "successor" in one.name]


def test_the_dead_letters_become_those_of_the_new_query(session: Session) -> None:
    """A record that the new query has counted is not put back, and ``verify`` knows of those that it could not use."""
    session.run("CREATE STREAM sales (id int, amount int, size int)")
    pairs: list[tuple[object, object]] = [("x", 1), (2, "x"), (3, 3)]
    records: list[dict[str, object]] = [
        {"id": number, "amount": amount, "size": size} for number, (amount, size) in enumerate(pairs, 1)
    ]
    send(session.context.brokers.servers, "sales", records)
    query = "SELECT count(*) AS n, sum({}) AS total FROM sales " + EARLIEST
    session.run(f"CREATE MATERIALIZED VIEW sold AS {query.format('amount')}")
    settle(session, "sold")
    assert rows_of(session, "SELECT * FROM table(sold)") == [(2, 5)]
    assert put_back(session) == {1}
    altered(session, "sold", query.format("size"))
    assert rows_of(session, "SELECT * FROM table(sold)") == [(2, 4)]
    assert put_back(session) == {2}
    later: list[dict[str, object]] = [{"id": 4, "amount": 4, "size": "y"}, {"id": 5, "size": 5}]
    send(session.context.brokers.servers, "sales", later)
    settle(session, "sold")
    assert put_back(session) == {2, 4}
    found = session.verify("sold")
    assert (found.holds, found.dead_letters, found.doubts) == (True, 2, ())


def put_back(session: Session) -> set[int]:
    """The ids in the dead letters of ``sold`` that a replay would put back."""
    waiting = rows_of(session, 'SELECT value FROM table("sold.dead_letter") WHERE replayed_at IS NULL')
    [replay] = session.run("REPLAY sold.dead_letter DRY RUN")
    assert isinstance(replay, Rows)
    assert sum(row["letters"] for row in replay.table.to_pylist() if "would" in row["outcome"]) == len(waiting)
    return {json.loads(str(value))["id"] for (value,) in waiting}


def test_of_two_sessions_that_alter_a_view_at_once_one_has_done_it(session: Session, running: Stack) -> None:
    start = Barrier(2)
    queries = [f"SELECT user_id, sum(amount) + {more} AS amount FROM orders GROUP BY user_id" for more in (1, 2)]

    def alter(query: str) -> str:
        with Session.open(running.settings) as other:
            start.wait()
            try:
                return altered(other, "totals", query)
            except SqlError as refused:
                return refused.what

    with ThreadPoolExecutor(2) as both:
        outcomes = dict(zip(queries, both.map(alter, queries), strict=True))
    [done] = [query for query, outcome in outcomes.items() if outcome.startswith("altered view totals, running")]
    [refused] = [outcome for query, outcome in outcomes.items() if query != done]
    assert refused in (
        'another process is changing the query of "totals"',
        'another process has just changed "totals"',
    )
    session.run(MORE)
    assert_follows(session, "totals", done)
    assert not [one for one in session.context.catalog.queries(dropped=True) if "successor" in one.name]


DYING = """
import os, sys
from dovetail.runtime import succession
from dovetail.runtime.settings import read_settings
from dovetail.services.session import Session
write = succession.write_difference
def dying(*arguments):
    if {written}:
        write(*arguments)
    os._exit(9)
succession.write_difference = dying
with Session.open(read_settings()) as session:
    session.run(sys.argv[1])
"""


def test_whoever_alters_a_view_and_dies_leaves_the_old_query_or_the_new_one(session: Session, running: Stack) -> None:
    """Before the difference is written it is the old one, after that the new one; and no hand is needed."""
    before, after = QUERIES[0]["totals"], "SELECT user_id, sum(amount + 1) AS amount FROM orders GROUP BY user_id"
    altered(session, "totals", before)
    pages = f"{VISITED} WHERE c.page <> 'a'"
    dying = [
        ("totals", f"ALTER VIEW totals AS {after}", False, before),
        ("visited", f"ALTER VIEW visited AS {pages} {EARLIEST}", True, f"{pages} {EARLIEST}"),
    ]
    for _, statement, written, _ in dying:
        died = subprocess.run(
            [sys.executable, "-c", DYING.format(written=written), statement],
            env={**running.connected_settings().as_environment(), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
            check=False,
            capture_output=True,
            text=True,
        )
        assert died.returncode == 9, died.stderr
    session.run(MORE)
    deadline_s = time.monotonic() + 120
    while time.monotonic() < deadline_s:
        queries = {one.name: one for one in session.context.catalog.queries(dropped=True)}
        if not [name for name in queries if "successor" in name]:
            break
        time.sleep(0.5)
    for view, _, _, query in dying:
        while session.context.catalog.query(view).actual is not Actual.RUNNING and time.monotonic() < deadline_s:
            time.sleep(0.2)
        assert_follows(session, view, query)


def test_a_runner_that_dies_while_both_queries_stand_still_is_no_matter(
    session: Session, running: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = succession.write_difference

    def killing(*arguments: object) -> None:
        [pid] = [line.pid for line in running.status() if line.name == "spark"]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(succession, "write_difference", killing)
    query = "SELECT user_id, sum(amount + 2) AS amount FROM orders GROUP BY user_id"
    altered(session, "totals", query)
    session.run(MORE)
    assert_follows(session, "totals", query)
