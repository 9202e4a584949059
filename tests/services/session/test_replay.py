"""Dead letters back to their topics: each once, whatever is killed, and whoever does it at the same time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicShape
from dovetail.changelog.errors import ServiceUnavailable, SqlError, UnknownName, Unsupported
from dovetail.services.session import Rows, Session
from dovetail.services.session.replay.put_back import LetterProducer
from dovetail.services.session.replay.replay import Targets, decided_dead_letters
from dovetail.services.stack import Stack
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView, Replay
from tests.services.session.dead_letters import REASON, WRITTEN_MS, dead_letters, output_row, post
from tests.spark.kafka import messages

pytestmark = pytest.mark.services
Made = Callable[..., str]


@pytest.fixture
def made(session: Session, request: pytest.FixtureRequest) -> Iterator[Made]:
    """``made("orders", 3)`` creates a topic of three partitions that no other test has, and gives its name."""
    names: list[str] = []

    def make(name: str, partitions: int = 1, **config: str) -> str:
        names.append(f"{request.node.name}.{name}")
        session.context.topics.create(names[-1], TopicShape(partitions, 1, config))
        return names[-1]

    yield make
    session.context.topics.delete(names)


def replayed(session: Session, topic: str, *reasons: str, dry_run: bool = False) -> list[tuple[object, ...]]:
    result = session.execute(Replay(topic, reasons, dry_run))
    assert isinstance(result, Rows)
    return [tuple(row.values()) for row in result.table.to_pylist()]


def held(session: Session, topic: str) -> list[tuple[int, int, bytes, bytes]]:
    """Partition, time, key and value of each record."""
    found = messages(session.context.brokers.servers, topic)
    records = [(one.partition() or 0, one.timestamp()[1], one.key() or b"", one.value() or b"") for one in found]
    return sorted(records)


def test_letters_go_back_to_their_partitions_as_they_were(session: Session, made: Made, broker: str) -> None:
    orders, clicks, dead = made("orders", 3), made("clicks"), made("v.dead_letter")
    post(broker, dead, [*dead_letters(orders, [b"a", b"b"], partition=2), *dead_letters(clicks, [b"c"])])
    would = [(clicks, "would be put back", 1), (orders, "would be put back", 2)]
    assert replayed(session, dead, dry_run=True) == would
    assert (held(session, orders), held(session, clicks)) == ([], [])

    assert replayed(session, dead) == [(clicks, "put back", 1), (orders, "put back", 2)]
    assert held(session, orders) == [(2, WRITTEN_MS, b"0", b"a"), (2, WRITTEN_MS + 1000, b"1", b"b")]
    assert held(session, clicks) == [(0, WRITTEN_MS, b"0", b"c")]

    assert replayed(session, dead) == [(clicks, "was put back before", 1), (orders, "was put back before", 2)]
    assert len(held(session, orders)) == 2
    post(broker, dead, dead_letters(orders, [b"new"], partition=7))
    assert (orders, "put back", 1) in replayed(session, dead)
    assert sorted(value for *_, value in held(session, orders)) == [b"a", b"b", b"new"]
    [listed] = session.run(f'SHOW DEAD LETTERS FROM "{dead}"')
    assert isinstance(listed, Rows)
    assert [tuple(row.values())[1:4] for row in listed.table.to_pylist()] == [(REASON, 4, 4)]


def test_letters_are_chosen_by_reason_in_any_order(session: Session, made: Made, broker: str) -> None:
    orders, dead = made("orders"), made("v.dead_letter")
    reasons = ("not UTF-8", "no object", "no key")
    for number in range(9):
        post(broker, dead, dead_letters(orders, [b"%d" % number], reason=reasons[number % 3]))
    assert replayed(session, dead, "no %") == [(orders, "put back", 6), (orders, "left: another reason", 3)]
    assert replayed(session, dead, "no key", "not%") == [
        (orders, "put back", 3),
        (orders, "was put back before", 6),
    ]
    assert replayed(session, dead) == [(orders, "was put back before", 9)]
    assert sorted(value for *_, value in held(session, orders)) == [b"%d" % number for number in range(9)]


def test_letters_that_cannot_go_back_are_told_and_left(session: Session, made: Made, broker: str) -> None:
    orders, small, dead = made("orders"), made("small", **{"max.message.bytes": "1000"}), made("v.dead_letter")
    post(broker, dead, dead_letters(orders, [b"good"]))
    post(broker, dead, dead_letters(orders, [b"x" * 9000], dead_letter_bytes=8000))
    post(broker, dead, dead_letters("gone", [b"a", b"b"]))
    post(broker, dead, dead_letters(small, [b"x" * 2000, b"y"]))
    post(broker, dead, [output_row(orders)])
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(dead, b"no letter at all")
    assert producer.flush(10) == 0
    left = [
        (orders, "left: its source is not known", 1),
        (None, "left: its source is not known", 1),
        (orders, "left: the letter holds only its beginning", 1),
        ("gone", "left: the topic is not there", 2),
        (small, "left: larger than the topic takes", 1),
    ]
    assert sorted(replayed(session, dead), key=str) == sorted(
        [(orders, "put back", 1), (small, "put back", 1), *left], key=str
    )
    session.context.topics.create("gone", TopicShape(1))
    assert ("gone", "put back", 2) in replayed(session, dead)
    assert [value for *_, value in held(session, "gone")] == [b"a", b"b"]
    assert [value for *_, value in held(session, orders)] == [b"good"]
    session.context.topics.delete(["gone"])


def test_an_empty_topic_of_letters_gives_nothing_back(session: Session, made: Made) -> None:
    dead = made("v.dead_letter")
    result = session.execute(Replay(dead))
    assert isinstance(result, Rows)
    assert (result.table.num_rows, result.note) == (0, f"of 0 letters in {dead} 0 were put back")


def test_what_is_no_topic_of_letters_is_refused(session: Session, made: Made) -> None:
    orders = made("orders")
    dead = made("orders.dead_letter")
    with pytest.raises(Unsupported, match="is no topic of dead letters") as refused:
        replayed(session, orders)
    assert refused.value.fix == f"REPLAY {dead}"
    with pytest.raises(UnknownName, match="there is no topic"):
        replayed(session, f"{orders[:-1]}.dead_letter")
    assert session.context.topics.ends(orders) == {0: 0}


def test_who_else_reads_the_topic_is_said(stack: Stack, tmp_path: Path, broker: str) -> None:
    said: list[str] = []
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'said.db'}")
    with Session(stack.settings, catalog, BrokerAddress(broker), say=said.append) as session:
        for stream in ("heard", "overheard", "unheard"):
            session.run(f"CREATE STREAM {stream} (id int64, n int64)")
        session.context.topics.create("priced.dead_letter", TopicShape(1))
        for view, stream in (("priced", "heard"), ("also", "heard"), ("third", "overheard"), ("last", "overheard")):
            definition = parse_one(f"CREATE MATERIALIZED VIEW {view} AS SELECT id FROM {stream}")
            assert isinstance(definition, CreateView)
            query = Query(view, definition.text, "", "", view, view=view)
            catalog.create(definition, now_ms=1, uses=[stream], query=query)
        sources = ("unheard", "overheard", "heard")
        post(
            broker,
            "priced.dead_letter",
            [dead_letter for source in sources for dead_letter in dead_letters(source, [b"{}"])],
        )
        replayed(session, "priced.dead_letter", dry_run=True)
        assert said[-2:] == [
            "heard is also read by also: what is put back comes to them once more",
            "overheard is also read by third, last: what is put back comes to them once more",
        ]
        session.context.topics.delete(["heard", "unheard", "priced.dead_letter"])


def test_a_replay_that_is_killed_again_and_again_puts_each_back_once(
    session: Session, made: Made, broker: str, tmp_path: Path
) -> None:
    orders, dead = made("orders", 3), made("v.dead_letter")
    count = 30_000
    values = [b"%d" % number for number in range(count)]
    for partition in range(3):
        post(broker, dead, dead_letters(orders, values[partition::3], partition=partition))
    for reached in (1, count // 4, count // 2):
        killed_at(broker, orders, dead, reached, tmp_path)
    before = Counter(value for *_, value in held(session, orders))
    assert sum(before.values()) < count
    outcomes = {outcome: number for _, outcome, number in replayed(session, dead)}
    assert outcomes["put back"] == count - sum(before.values())
    assert Counter(value for *_, value in held(session, orders)) == Counter(values)
    assert replayed(session, dead) == [(orders, "was put back before", count)]


def killed_at(broker: str, topic: str, dead: str, reached: int, folder: Path) -> None:
    """Replays in a process of its own, and kills it once ``topic`` holds so many records, committed or not."""
    environment = {**os.environ, "DOVETAIL_BROKERS": broker, "DOVETAIL_DATA_DIR": str(folder)}
    command = [sys.executable, "-m", "dovetail.services.cli.main", "replay", dead]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "watch", "isolation.level": "read_uncommitted"})
    while process.poll() is None:
        ends = (consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10) for partition in range(3))
        if sum(end for _, end in ends) >= reached:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.001)
    consumer.close()
    assert process.wait() == -signal.SIGKILL


def test_a_replay_that_another_has_followed_puts_nothing_back_any_more(
    session: Session, made: Made, broker: str
) -> None:
    orders, dead = made("orders"), made("v.dead_letter")
    values = [b"%d" % number for number in range(5_000)]
    post(broker, dead, dead_letters(orders, values))
    first, targets = LetterProducer(session.context, dead), Targets(session.context)
    parts = decided_dead_letters(session.context, Replay(dead), session.context.topics.decided_ends(dead), targets)
    first.put_back(next(parts), targets.known)
    assert replayed(session, dead) == [(orders, "put back", 3_000), (orders, "was put back before", 2_000)]
    with pytest.raises(SqlError, match="another replay of") as refused:
        first.put_back(next(parts), targets.known)
    assert "after putting back 2,000 letters" in refused.value.where
    assert Counter(value for *_, value in held(session, orders)) == Counter(values)


def test_two_replays_at_once_put_each_back_once(session: Session, made: Made, broker: str) -> None:
    orders, dead = made("orders"), made("v.dead_letter")
    values = [b"%d" % number for number in range(20_000)]
    post(broker, dead, dead_letters(orders, values))

    def attempt(_: int) -> str:
        try:
            replayed(session, dead)
        except SqlError as other:
            return other.what
        return ""

    with ThreadPoolExecutor(2) as both:
        ended = sorted(both.map(attempt, range(2)))
    assert ended in (["", ""], ["", f"another replay of {dead} has begun and goes on with the rest"])
    assert Counter(value for *_, value in held(session, orders)) == Counter(values)


def test_a_mark_that_an_open_transaction_hides_is_waited_for(stack: Stack, tmp_path: Path, made: Made) -> None:
    """A writer of letters is in the midst of a transaction: what is committed behind its letters cannot be read."""
    broker = stack.endpoint("kafka")
    orders, dead = made("orders"), made("v.dead_letter")
    post(broker, dead, dead_letters(orders, [b"first"]))
    settings = stack.settings.model_copy(update={"broker_timeout_s": 1.0})
    writer = clients.producer(BrokerAddress(broker), {"transactional.id": dead})
    writer.init_transactions()
    writer.begin_transaction()
    [second] = dead_letters(orders, [b"second"])
    writer.produce(dead, **second.message)
    writer.flush()
    with Session(settings, Catalog.open(f"sqlite:///{tmp_path / 'other.db'}"), BrokerAddress(broker)) as session:
        with pytest.raises(ServiceUnavailable, match="is open for longer than 1 s"):
            replayed(session, dead)
        assert held(session, orders) == []
        writer.commit_transaction()
        assert replayed(session, dead) == [(orders, "put back", 2)]
        assert [value for *_, value in held(session, orders)] == [b"first", b"second"]
