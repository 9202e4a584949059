"""A lane against a real broker: what fails is tried again, isolated or handed over, and nothing comes twice."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from dovetail.broker import group_member as group
from dovetail.broker.address import BrokerAddress
from dovetail.broker.group_member import GroupMember
from dovetail.broker.transactional_writer import transactional_producer
from dovetail.changelog.errors import InternalError, RecordsGone, ServiceUnavailable
from dovetail.services.worker.lane.fetches import Fetch
from dovetail.services.worker.lane.lane_settings import LaneSettings
from tests.services.worker.lanes import Bench, Echo, Given, fetch, until
from tests.spark.kafka import messages, send, trim, values

pytestmark = pytest.mark.services


@pytest.fixture
def bench(broker: str, topics: Callable[..., str]) -> Iterator[Bench]:
    made = Bench(broker, topics("identity"), topics("input"), topics("output"), topics("letters"))
    yield made
    made.close()


def numbers(bench: Bench) -> list[object]:
    return [value["n"] for value in values(bench.broker, bench.output)]


def test_the_form_of_group_metadata_is_that_of_the_library(broker: str) -> None:
    group.check(BrokerAddress(broker))


def test_fetches_are_answered_in_order_and_committed(bench: Bench) -> None:
    lane = bench.lane(Echo())
    assert lane.open() == 0
    assert [lane.offer(fetch(0, 10)), lane.offer(fetch(10, 5))] == [None, None]
    until(lambda: lane.reached == 15)
    lane.close()
    assert numbers(bench) == list(range(15))
    assert lane.counts["rows_in"] == 15
    assert bench.lane(Echo()).open() == 15


def test_a_fetch_that_was_lost_is_asked_for_again(bench: Bench) -> None:
    lane = bench.lane(Echo())
    lane.open()
    assert lane.offer(fetch(0, 5)) is None
    assert lane.offer(fetch(8, 5)) == 5
    assert lane.offer(fetch(5, 8)) is None
    until(lambda: lane.reached == 13)
    assert numbers(bench) == list(range(13))


def test_a_fetch_without_records_moves_on(bench: Bench) -> None:
    lane = bench.lane(Echo())
    lane.open()
    lane.offer(Fetch(0, 0, 3, []))
    until(lambda: lane.reached == 3)
    lane.offer(fetch(3, 2))
    until(lambda: lane.reached == 5)
    assert numbers(bench) == [3, 4]


def test_a_poison_record_is_a_dead_letter_and_the_rest_goes_on(bench: Bench) -> None:
    def poison(given: Sequence[int]) -> None:
        if 7 in given:
            raise ZeroDivisionError("seven")

    lane = bench.lane(Echo(poison))
    lane.open()
    lane.offer(fetch(0, 20))
    until(lambda: lane.reached == 20)
    assert numbers(bench) == [n for n in range(20) if n != 7]
    [dead_letter] = messages(bench.broker, bench.dead_letters)
    headers = dict(dead_letter.headers() or [])
    assert dead_letter.value() == b'{"n":7}'
    assert (headers["dovetail.offset"], headers["dovetail.reason"]) == (b"7", b"ZeroDivisionError: seven")
    assert lane.counts["rejected"] == 1


def test_a_defect_that_hits_every_record_ends_the_query_and_writes_nothing(bench: Bench) -> None:
    def defect(given: Sequence[int]) -> None:
        raise ZeroDivisionError("always")

    lane = bench.lane(Echo(defect))
    lane.open()
    lane.offer(fetch(0, 64))
    until(lambda: bool(bench.failures))
    lane.close()
    assert isinstance(bench.failures[0], InternalError)
    assert messages(bench.broker, bench.dead_letters) == []
    assert bench.lane(Echo()).open() == 0


def test_records_that_are_gone_before_they_were_read_end_the_query(bench: Bench) -> None:
    send(bench.broker, bench.input, [{"n": n} for n in range(10)])
    lane = bench.lane(Echo())
    lane.open()
    lane.offer(fetch(0, 3))
    until(lambda: lane.reached == 3)
    lane.close()
    trim(bench.broker, bench.input, 6)
    bench.lane(Echo()).open()
    [failure] = bench.failures
    assert isinstance(failure, RecordsGone)
    assert "up to offset 3" in str(failure)


def test_a_query_that_has_read_nothing_begins_at_the_first_record_there_is(bench: Bench) -> None:
    send(bench.broker, bench.input, [{"n": n} for n in range(10)])
    trim(bench.broker, bench.input, 6)
    assert bench.lane(Echo()).open() == 6


def test_a_service_that_is_away_is_waited_for(bench: Bench) -> None:
    left = [3]

    def away(given: Sequence[int]) -> None:
        if left[0]:
            left[0] -= 1
            raise ServiceUnavailable("the source is away")

    lane = bench.lane(Echo(away))
    lane.open()
    lane.offer(fetch(0, 5))
    until(lambda: lane.reached == 5)
    assert numbers(bench) == list(range(5))
    assert bench.failures == []


def test_a_service_that_stays_away_ends_the_query_and_nothing_is_lost(bench: Bench) -> None:
    def away(given: Sequence[int]) -> None:
        if 10 in given:
            raise ServiceUnavailable("the source is away")

    lane = bench.lane(Echo(away), LaneSettings(wait_s=0.3))
    lane.open()
    lane.offer(fetch(0, 10))
    until(lambda: lane.reached == 10)
    lane.offer(fetch(10, 10))
    until(lambda: bool(bench.failures))
    assert "the source is away" in str(bench.failures[0])
    lane.close()
    resumed = bench.lane(Echo())
    assert resumed.open() == 10
    resumed.offer(fetch(10, 10))
    until(lambda: resumed.reached == 20)
    assert numbers(bench) == list(range(20))


def test_fetches_that_wait_are_answered_as_one_batch(bench: Bench) -> None:
    batches: list[int] = []
    first = threading.Event()

    def held(given: Sequence[int]) -> None:
        batches.append(len(given))
        first.wait()

    lane = bench.lane(Echo(held), LaneSettings(commit_records=40, queued_fetches=10))
    lane.open()
    lane.offer(fetch(0, 10))
    until(lambda: batches == [10])
    for start in range(10, 80, 10):
        lane.offer(fetch(start, 10))
    first.set()
    until(lambda: lane.reached == 80)
    lane.close()
    assert batches == [10, 40, 30]
    assert numbers(bench) == list(range(80))


def test_a_fenced_lane_begins_again_where_the_broker_says(bench: Bench) -> None:
    lane = bench.lane(Echo())
    lane.open()
    lane.offer(fetch(0, 5))
    until(lambda: lane.reached == 5)
    rival = transactional_producer(bench.target, 0)
    rival.init_transactions(20)
    lane.offer(fetch(5, 5))
    until(lambda: lane.reached == 10)
    assert numbers(bench) == list(range(10))


def test_half_a_transaction_is_taken_back(bench: Bench) -> None:
    """What a killed process has written, and not committed, is not read, and is written again."""
    killed = transactional_producer(bench.target, 0)
    killed.init_transactions(20)
    killed.begin_transaction()
    killed.produce(bench.output, b'{"n":0}')
    killed.flush(10)
    lane = bench.lane(Echo())
    assert lane.open() == 0
    lane.offer(fetch(0, 3))
    until(lambda: lane.reached == 3)
    assert numbers(bench) == [0, 1, 2]


def test_who_is_no_member_commits_nothing(bench: Bench) -> None:
    zombie = bench.lane(Echo(), member=GroupMember(bench.identity, 7, "somebody"))
    zombie.open()
    zombie.offer(fetch(0, 5))
    until(lambda: not zombie.has_room)
    until(lambda: zombie.let_go)
    zombie.close()
    assert numbers(bench) == []
    assert bench.failures == []


def test_an_answer_that_is_too_large_is_a_dead_letter(bench: Bench) -> None:
    lane = bench.lane(Echo())
    lane.open()
    given = fetch(0, 3)
    large = Given(1, b'{"n":1,"x":"%s"}' % (b"x" * 1_000_000))
    lane.offer(Fetch(0, 0, 3, [given.records[0], large, given.records[2]]))
    until(lambda: lane.reached == 3)
    assert numbers(bench) == [0, 2]
    [dead_letter] = messages(bench.broker, bench.dead_letters)
    assert (dead_letter.value() or b"x").startswith(b'{"n":1,"x":"xxx')


def test_a_letter_that_its_topic_takes_no_more_tells_place_and_reason(
    broker: str, topics: Callable[..., str], bench: Bench
) -> None:
    bench.dead_letters = topics("narrow", max_message_bytes="20000")
    lane = bench.lane(Echo())
    lane.open()
    given, noise = fetch(0, 3), base64.b64encode(os.urandom(600_000))
    bad = Given(1, b'{"m":"%s"}' % noise)
    lane.offer(Fetch(0, 0, 3, [given.records[0], bad, given.records[2]]))
    until(lambda: lane.reached == 3)
    assert (numbers(bench), bench.failures) == ([0, 2], [])
    [dead_letter] = messages(broker, bench.dead_letters)
    headers = dict(dead_letter.headers() or [])
    assert (dead_letter.key() or b"", dead_letter.value() or b"") == (b"", b"")
    assert (headers["dovetail.offset"], headers["dovetail.bytes"]) == (b"1", b"%d" % (len(bad.value or b"") + 1))
    assert headers["dovetail.reason"] == b"KeyError: 'n'"
