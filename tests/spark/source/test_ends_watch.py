"""One look at the broker for many sources."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.transactional_writer import WriteTarget
from dovetail.changelog.errors import RecordsGone, ServiceUnavailable
from dovetail.spark_jobs.source import ends_watch, kafka_source, topic_ends
from dovetail.spark_jobs.source.ends_watch import EndsAnswer, EndsWatch, WatchedEnds
from dovetail.spark_jobs.source.kafka_source import KafkaReader
from dovetail.spark_jobs.state.checkpoint import JsonOffsets
from tests.spark.flows import orders_clicks
from tests.spark.jobs import job_of
from tests.spark.kafka import made_again, send

LONG_S = 60.0
START = {"again": {"0": 0}, "beside": {"0": 0}}
Source = Callable[[str, str], WatchedEnds]


@pytest.fixture
def watch(broker: str) -> Iterator[EndsWatch]:
    watching = EndsWatch(BrokerAddress(broker))
    yield watching
    watching.close()


@pytest.fixture
def source(watch: EndsWatch) -> Iterator[Source]:
    """A source of that name, of that topic."""
    made: list[WatchedEnds] = []

    def of(name: str, topic: str) -> WatchedEnds:
        made.append(WatchedEnds(watch.address, name, [topic]))
        return made[-1]

    yield of
    for one in made:
        one.close()


def make_topic(broker: str, name: str) -> None:
    topics.ensure(clients.admin(BrokerAddress(broker)), {name: 1})


def latest(watch: EndsWatch, broker: str, names: tuple[str, str], topic_ids: dict[str, str]) -> JsonOffsets:
    """Where a query finds the ends of its topics, which had these ids when it began."""
    job = job_of(
        orders_clicks(*names), target=WriteTarget(BrokerAddress(broker), "q", "marks", 30.0, 30.0), topic_ids=topic_ids
    )
    reader = KafkaReader(job.ship(), None, watch.address)
    try:
        return reader.latestOffset(START, ReadAllAvailable())
    finally:
        reader.stop()


def _until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + LONG_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_who_waits_is_answered_once_its_topic_grows(watch: EndsWatch, broker: str, source: Source) -> None:
    make_topic(broker, "grows")
    make_topic(broker, "silent")
    one, other = source("one", "grows"), source("other", "silent")
    first = one.ask()
    assert first is not None
    assert first.ends == {"grows": {"0": 0}}
    assert set(first.ids) == {"grows"}
    with ThreadPoolExecutor() as waiting:
        grown = waiting.submit(one.ask, first.ends, LONG_S)
        not_grown = waiting.submit(other.ask, {"silent": {"0": 0}}, 2.0)
        _until(lambda: watch.silence("one") is not None and watch.silence("other") is not None)
        assert watch.silence("one") != watch.silence("other")
        send(broker, "grows", [{"k": 1}])
        answer = grown.result(LONG_S)
        assert answer is not None
        assert answer.ends == {"grows": {"0": 1}}
        assert watch.silence("one") is None
        answer = not_grown.result(LONG_S)
        assert answer is not None
        assert answer.ends == {"silent": {"0": 0}}


def test_one_that_is_held_begins_nothing_whatever_comes(watch: EndsWatch, broker: str, source: Source) -> None:
    for name in ("held", "free"):
        make_topic(broker, name)
        send(broker, name, [{"k": 1}])
    watch.hold("held")
    held, free = source("held", "held"), source("free", "free")
    with ThreadPoolExecutor() as waiting:
        pending = [waiting.submit(held.ask, None, 0.0), waiting.submit(free.ask, None, 0.0)]
        assert pending[1].result(LONG_S) is not None
        _until(partial(_waits, watch, "held"))
        free.ask({"free": {"0": 1}}, 0.5)
        assert not pending[0].done()
        watch.release("held")
        assert pending[0].result(LONG_S) is not None
        watch.hold("held")
        pending = [waiting.submit(held.ask, None, 0.0)]
        _until(partial(_waits, watch, "held"))
        held.close()
        assert pending[0].result(LONG_S) is None
    _until(lambda: watch.silence("held") is None)
    # Another life of it is not held.
    again = held.ask(None, 0.0)
    assert again is not None
    assert again.ends == {"held": {"0": 1}}


def test_a_wait_has_a_number_of_its_own(watch: EndsWatch, broker: str, source: Source) -> None:
    make_topic(broker, "twice")
    ends_source = source("q", "twice")
    numbers = []
    with ThreadPoolExecutor() as waiting:
        for end in (0, 1):
            pending = waiting.submit(ends_source.ask, {"twice": {"0": end}}, LONG_S)
            _until(lambda: watch.silence("q") is not None)
            numbers.append(watch.silence("q"))
            send(broker, "twice", [{"k": 1}])
            assert pending.result(LONG_S) is not None
    assert numbers[0] != numbers[1]


def test_who_has_news_waits_for_its_turn_behind_those_that_have_waited_for_longer(broker: str) -> None:
    """A turn ends where its source asks again, and where it ends."""
    names = ["before", "first", "second", "third"]
    for name in names:
        make_topic(broker, name)
    watching = EndsWatch(BrokerAddress(broker), longest_turn_s=LONG_S)
    watching.share(1)
    sources = [WatchedEnds(watching.address, name, [name]) for name in names]
    assert sources[0].ask() is not None
    with ThreadPoolExecutor() as waiting:
        answers: list[Future[EndsAnswer | None]] = []
        for name, source in zip(names[1:], sources[1:], strict=True):
            answers.append(waiting.submit(source.ask, {name: {"0": 0}}, LONG_S))
            _until(partial(_waits, watching, name))
        for name in reversed(names[1:]):
            send(broker, name, [{"k": 1}])
        for number, source in enumerate(sources[:-1]):
            assert [answer.done() for answer in answers[number:]] == [False] * len(answers[number:])
            source.close()
            answer = answers[number].result(LONG_S)
            assert answer is not None
            assert answer.ends == {names[number + 1]: {"0": 1}}
            assert watching.silence(names[number + 1]) is None
    sources[-1].close()
    watching.close()


def _waits(watch: EndsWatch, source: str) -> bool:
    return watch.silence(source) is not None


def test_a_topic_that_is_not_there_holds_up_no_other(watch: EndsWatch, broker: str, source: Source) -> None:
    make_topic(broker, "there")
    lost, well = source("lost", "gone"), source("well", "there")
    with ThreadPoolExecutor() as waiting:
        answered = waiting.submit(well.ask, {"there": {"0": 0}}, LONG_S)
        _until(lambda: watch.silence("well") is not None)
        assert lost.ask() is None
        assert lost.ask() is None
        send(broker, "there", [{"k": 1}])
        assert answered.result(LONG_S) is not None


def test_a_topic_without_a_leader_holds_up_no_other(
    watch: EndsWatch, broker: str, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One broker is there whenever its topics are, so what it would say of such a topic is said in its place."""
    make_topic(broker, "led")
    asked: list[list[str]] = []

    def ends_now(brokers: BrokerAddress, names: list[str]) -> topics.Offsets:
        asked.append(names)
        if "leaderless" in names:
            raise ServiceUnavailable("no leader is known")
        return topic_ends.ends_now(brokers, names)

    monkeypatch.setattr(ends_watch, "ends_now", ends_now)
    monkeypatch.setattr(ends_watch, "unanswered_now", lambda _, names: ({"leaderless"} & set(names), set()))
    lost, well = source("lost", "leaderless"), source("well", "led")
    with ThreadPoolExecutor() as waiting:
        answered = waiting.submit(well.ask, {"led": {"0": 0}}, LONG_S)
        _until(lambda: watch.silence("well") is not None)
        assert lost.ask() is None
        assert not answered.done()
        send(broker, "led", [{"k": 1}])
        assert answered.result(LONG_S) is not None
    assert sum("leaderless" in names for names in asked) == 1


def test_one_that_is_gone_is_named_once_it_has_been_for_a_while(watch: EndsWatch, source: Source) -> None:
    assert watch.gone_topic(["absent"]) == ""
    lost = source("lost", "absent")

    def is_named() -> bool:
        assert lost.ask() is None
        return watch.gone_topic(["led", "absent"]) == "absent"

    _until(is_named)


def test_one_that_is_deleted_under_a_source_is_named(watch: EndsWatch, broker: str, source: Source) -> None:
    """Its partitions are known still, from a moment ago. It is named no longer once it is back."""
    client, names = clients.admin(BrokerAddress(broker)), ("deleted", "kept")
    for name in names:
        make_topic(broker, name)
    lost, well = source("lost", "deleted"), source("well", "kept")
    with ThreadPoolExecutor() as waiting:
        answered = waiting.submit(lost.ask, {"deleted": {"0": 0}}, LONG_S)
        _until(lambda: watch.silence("lost") is not None)
        topics.delete(client, ["deleted"])
        assert answered.result(LONG_S) is None
    _until(lambda: watch.gone_topic(names) == "deleted")
    assert well.ask() is not None

    make_topic(broker, "deleted")
    _until(lambda: lost.ask() is not None)
    assert watch.gone_topic(names) == ""


def test_a_query_over_a_topic_that_was_made_again_begins_at_once(
    watch: EndsWatch, broker: str, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the watch has known the former topic a moment ago. A query of before is told."""
    monkeypatch.setattr(kafka_source, "_LONGEST_WAIT_S", 1.0)
    client, names = clients.admin(BrokerAddress(broker)), ("again", "beside")
    for name in names:
        make_topic(broker, name)
    before = topics.ids(client, names)
    assert source("q", "again").ask() is not None
    assert source("p", "beside").ask() is not None
    assert latest(watch, broker, names, before) == START
    made_again(broker, "again")
    send(broker, "again", [{"k": 1}])
    now = topics.ids(client, names)

    found = latest(watch, broker, names, now)

    assert found == {"again": {"0": 1}, "beside": {"0": 0}}
    with pytest.raises(RecordsGone, match='the topic "again" was deleted and made again'):
        latest(watch, broker, names, before)


def test_a_source_that_ends_waits_no_longer(watch: EndsWatch, broker: str, source: Source) -> None:
    make_topic(broker, "left")
    ends_source = source("q", "left")
    with ThreadPoolExecutor() as waiting:
        pending = waiting.submit(ends_source.ask, {"left": {"0": 0}}, LONG_S)
        _until(lambda: watch.silence("q") is not None)
        ends_source.close()
        _until(lambda: watch.silence("q") is None)
        assert pending.result(LONG_S) is None


def test_without_a_watch_there_is_no_answer() -> None:
    assert WatchedEnds("/nowhere/watch", "q", ["t"]).ask() is None


def test_a_watch_that_has_ended_leaves_sources_to_themselves(broker: str) -> None:
    watching = EndsWatch(BrokerAddress(broker))
    make_topic(broker, "later")
    source = WatchedEnds(watching.address, "q", ["later"])
    assert source.ask() is not None
    watching.close()
    assert source.ask() is None
