"""Records go only where WITH DATA says so, and only from topics that Dovetail has made; CASCADE asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dovetail.changelog.errors import DovetailError, Unsupported
from dovetail.services.session import Done, Session, agreed
from dovetail.services.session.context import Context
from dovetail.services.stack import Stack
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.services.conftest import Ask

pytestmark = pytest.mark.services


def message_of(session: Session, statement: str) -> str:
    [done] = session.run(statement)
    assert isinstance(done, Done)
    return done.text


def refused(session: Session, statement: str) -> DovetailError:
    with pytest.raises(DovetailError) as raised:
        session.run(statement)
    return raised.value


def there(session: Session, topic: str) -> bool:
    return topic in session.context.topics.partitions()


def outside(broker: str, topic: str, *values: bytes) -> None:
    """A topic of somebody else, with records."""
    admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": broker})
    for value in values:
        producer.produce(topic, value)
    producer.flush()


@pytest.mark.parametrize(
    ("create", "drop"),
    [
        ("CREATE STREAM kept (id int64)", "DROP STREAM kept"),
        ("CREATE MUTABLE STREAM kept (id int64) PRIMARY KEY id", "DROP STREAM kept"),
        ("CREATE TABLE kept (id int)", "DROP TABLE kept CASCADE"),
    ],
)
def test_drop_keeps_the_records_and_create_finds_them(session: Session, ask: Ask, create: str, drop: str) -> None:
    session.run(f"{create}; INSERT INTO kept VALUES (7)")
    text = message_of(session, drop)
    assert "the records stay in the topic kept, DROP TOPIC kept WITH DATA deletes them" in text
    assert message_of(session, create).endswith("over the topic kept that was there")
    assert ask("SELECT id FROM table(kept)") == [(7,)]


def test_with_data_deletes_and_says_so(session: Session) -> None:
    session.run("CREATE STREAM s (id int64); INSERT INTO s VALUES (7)")
    assert message_of(session, "DROP STREAM s WITH DATA") == "dropped stream s; deleted with all records: s"
    assert not there(session, "s")
    assert message_of(session, "DROP STREAM IF EXISTS s WITH DATA") == "there is no stream s"


def test_what_a_drop_has_left_can_be_deleted(session: Session) -> None:
    session.run("CREATE STREAM s (id int64); DROP STREAM s")
    assert message_of(session, "DROP TOPIC s WITH DATA") == "deleted topic s"
    assert not there(session, "s")
    assert message_of(session, "DROP TOPIC IF EXISTS s WITH DATA") == "there is no topic s"
    session.run("CREATE STREAM s (id int64)")
    assert refused(session, "DROP TOPIC s WITH DATA").fix == "DROP STREAM s WITH DATA"


def test_a_topic_that_was_there_is_never_deleted(session: Session, broker: str) -> None:
    outside(broker, "before", b'{"id":1}')
    session.run("CREATE STREAM before (id int64)")
    assert "the topic before stays, which Dovetail has not made" in message_of(session, "DROP STREAM before WITH DATA")
    assert "not one that Dovetail has made" in refused(session, "DROP TOPIC before WITH DATA").what
    session.run("CREATE STREAM before (id int64)")
    for statement in (
        "CREATE OR REPLACE STREAM before (id int64) WITH DATA",
        "CREATE OR REPLACE EXTERNAL STREAM before (id int64) WITH DATA",
    ):
        assert "not one that Dovetail has made" in refused(session, statement).what
    assert session.context.topics.ends("before") == {0: 1}


def test_a_topic_that_somebody_made_again_is_theirs(session: Session, broker: str) -> None:
    session.run("CREATE STREAM s (id int64)")
    session.context.topics.delete(["s"])
    outside(broker, "s", b'{"id":1}')
    session.run("DROP STREAM s WITH DATA")
    assert session.context.topics.ends("s") == {0: 1}
    session.context.topics.delete(["s"])


def test_a_topic_of_two_streams_stays_while_one_reads_it(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM one (id int64); CREATE STREAM two (id int64) SETTINGS topic = 'one'")
    session.run("INSERT INTO one VALUES (7)")
    error = refused(session, "DROP STREAM one WITH DATA")
    assert error.what == 'the stream "two" has the same records, of the topic "one"'
    assert "two" in refused(session, "CREATE OR REPLACE STREAM one (id int64) WITH DATA").what
    session.run("DROP STREAM one")
    assert ask("SELECT id FROM table(two)") == [(7,)]
    assert message_of(session, "DROP STREAM two WITH DATA").endswith("deleted with all records: one")


def test_or_replace_keeps_the_records(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (id int64); INSERT INTO s VALUES (7)")
    text = message_of(session, "CREATE OR REPLACE STREAM s (id int64, note string)")
    assert text.startswith("replaced stream s; the records stay in the topic s, WITH DATA")
    assert ask("SELECT id, note FROM table(s)") == [(7, None)]
    assert message_of(session, "CREATE OR REPLACE STREAM s (name string) WITH DATA") == "replaced stream s"
    assert ask("SELECT name FROM table(s)") == []
    assert "WITH DATA" not in session.context.catalog.get("s").ddl


def test_a_topic_of_another_policy_is_not_taken_over(session: Session) -> None:
    session.run("CREATE STREAM s (id int64); INSERT INTO s VALUES (7)")
    error = refused(session, "CREATE OR REPLACE MUTABLE STREAM s (id int64) PRIMARY KEY id")
    assert "made for records of kind append" in error.what
    assert session.context.catalog.get("s").ddl == "CREATE STREAM s (id int64)"
    message_of(session, "CREATE OR REPLACE MUTABLE STREAM s (id int64) PRIMARY KEY id WITH DATA")


def test_a_stream_is_not_replaced_by_a_view(session: Session) -> None:
    session.run("CREATE STREAM s (id int64); CREATE STREAM t (id int64)")
    assert refused(session, "CREATE OR REPLACE VIEW s AS SELECT id FROM t").what == '"s" is a stream'


def test_a_view_that_is_there_says_how_to_go_on(session: Session) -> None:
    session.run("CREATE STREAM t (id int64); CREATE VIEW v AS SELECT id FROM t")
    error = refused(session, "CREATE MATERIALIZED VIEW v AS SELECT id FROM t")
    assert error.what == 'there is a view "v" already'
    assert "CREATE OR REPLACE" in error.fix
    assert "DROP VIEW v" in error.fix


# -- what more than the named goes is asked for


def cascading(session: Session, answers: Callable[[str], bool]) -> Session:
    context: Context = session.context
    return Session(
        context.settings, context.catalog, context.brokers, runner_fault=context.runner_fault, confirm=answers
    )


def test_cascade_names_what_goes_and_asks(session: Session) -> None:
    session.run("CREATE STREAM s (id int64); CREATE VIEW v AS SELECT id FROM s; CREATE VIEW w AS SELECT id FROM v")
    error = refused(session, "DROP STREAM s CASCADE")
    assert isinstance(error, Unsupported)
    assert error.what == "DROP STREAM s CASCADE also drops view w, view v"
    assert "--yes" in error.fix
    assert "confirm=dovetail.agreed" in error.fix
    questions: list[str] = []

    def no(what: str) -> bool:
        questions.append(what)
        return False

    assert message_of(cascading(session, no), "DROP STREAM s CASCADE WITH DATA") == "nothing was dropped"
    assert questions == ["DROP STREAM s CASCADE WITH DATA also drops view w, view v, and the records of their topics"]
    assert [relation.name for relation in session.context.catalog.relations()] == ["s", "v", "w"]
    text = message_of(cascading(session, agreed), "DROP STREAM s CASCADE")
    assert text.startswith("dropped view w, view v, stream s; the records stay in the topic s")


def test_cascade_with_nothing_else_asks_nothing(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY, n int); CREATE INDEX by_n ON t (n)")
    assert message_of(session, "DROP TABLE t CASCADE").startswith("dropped index by_n, table t")


def test_what_comes_between_question_and_answer_is_not_dropped(session: Session) -> None:
    session.run("CREATE STREAM s (id int64); CREATE VIEW v AS SELECT id FROM s")

    def slowly(_what: str) -> bool:
        session.run("CREATE VIEW w AS SELECT id FROM s")
        return True

    assert "has just created w" in refused(cascading(session, slowly), "DROP STREAM s CASCADE").what
    assert len(session.context.catalog.relations()) == 3


# -- topics of views: the query itself is not run here


def test_a_view_over_kept_records_is_refused_with_ways_out(session: Session, stack: Stack, broker: str) -> None:
    ready = Session(stack.settings, session.context.catalog, session.context.brokers)
    session.run("CREATE STREAM s (id int64)")
    outside(broker, "v", b'{"id":1}')
    theirs = refused(ready, "CREATE MATERIALIZED VIEW v AS SELECT id FROM s")
    assert theirs.what == 'there is a topic "v" already, and it holds records'
    assert theirs.fix == "give the view another name; or write INTO a stream over v"
    assert "not one that Dovetail" in refused(ready, "CREATE MATERIALIZED VIEW v AS SELECT id FROM s WITH DATA").what
    assert session.context.topics.ends("v") == {0: 1}
    session.context.topics.delete(["v"])
    session.run("CREATE STREAM v (id int64); INSERT INTO v VALUES (1); DROP STREAM v")
    ours = refused(ready, "CREATE MATERIALIZED VIEW v AS SELECT id FROM s")
    assert ours.fix.startswith("WITH DATA at the end of the statement begins with an empty topic; or ")
    assert session.context.catalog.find("v") is None


def test_a_view_is_not_replaced_over_the_rows_it_has_written_into_a_stream(session: Session, stack: Stack) -> None:
    ready = Session(stack.settings, session.context.catalog, session.context.brokers, runner_fault=lambda _engine: "")
    session.run("CREATE STREAM s (id int64); CREATE STREAM target (id int64)")
    view = parse_one("CREATE MATERIALIZED VIEW v INTO target AS SELECT id FROM s SETTINGS seek_to = 'earliest'")
    assert isinstance(view, CreateView)
    existing, _ = session.context.catalog.create(view, now_ms=1, uses=["s", "target"])
    session.run("INSERT INTO target VALUES (1)")
    later = (
        "CREATE OR REPLACE MATERIALIZED VIEW v INTO target AS SELECT id + 1 AS id FROM s SETTINGS seek_to = 'earliest'"
    )

    error = refused(ready, later)

    assert error.what.startswith('"target" holds the rows that the view wrote as it was')
    assert "CREATE OR REPLACE STREAM target .. WITH DATA" in error.fix
    assert session.context.catalog.get("v") == existing
