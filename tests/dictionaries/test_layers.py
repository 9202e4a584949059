"""The layers of a cache, each alone: what it answers itself, what it leaves to the one below, what it counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from dovetail.changelog.errors import DovetailError, ServiceUnavailable
from dovetail.changelog.lookup import Key, LookupRejected, Rows
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cache_settings import CacheSettings, read_settings
from dovetail.dictionaries.cache.cold.cold_tier import ColdTier
from dovetail.dictionaries.cache.cold.entry_codec import EntryCodec
from dovetail.dictionaries.cache.cold.key_locks import Claim, Lease
from dovetail.dictionaries.cache.cold.redis_space import RedisSpace
from dovetail.dictionaries.cache.filling.cold_layers import ColdLayer, TolerantColdTier
from dovetail.dictionaries.cache.filling.entry_writer import EntryWriter
from dovetail.dictionaries.cache.filling.fetcher import Fetcher, SourceLayer
from dovetail.dictionaries.cache.filling.key_lock_layers import ClaimedKeys, KeyLockLayer, RenewalLayer
from dovetail.dictionaries.cache.filling.on_error import OnErrorLayer
from dovetail.dictionaries.cache.filling.stale_layers import KeptLayer, StaleLayer
from dovetail.dictionaries.cache.flights.flight import Flight, Unanswered
from dovetail.dictionaries.cache.flights.flight_layers import FlightLayer, SingleFlightLayer
from dovetail.dictionaries.cache.flights.flights import Flights
from dovetail.dictionaries.cache.hot.guarded_hot import UNHEARD_MS, GuardedHot
from dovetail.dictionaries.cache.hot.hot_layers import HotLayer, SecondLookLayer
from dovetail.dictionaries.cache.hot.hot_tier import HotTier
from dovetail.dictionaries.cache.layout_statistics import MeteredLookup, Statistics
from tests.dictionaries.cache_world import NOW_MS, TTL_MS, FakeSource, definition, settle

DOWN = ServiceUnavailable("the layer below is down")


def rows(key: Key, name: str = "pen") -> Rows:
    return ((key, name),)


def entry(key: Key, expires_ms: int = NOW_MS + TTL_MS, name: str = "pen") -> CacheEntry:
    return CacheEntry(rows(key, name), expires_ms - TTL_MS, expires_ms, 20)


def flown(*keys: Key, ahead: float = 0.0) -> Flight:
    return Flight(keys, NOW_MS, ahead)


def statistics() -> Statistics:
    return Statistics(definition())


def settings(**given: Any) -> CacheSettings:
    return read_settings(definition(**given))


@dataclass
class Below:
    """Answers with a pen, but for the keys that are ``absent`` (), ``down``, or ``left`` to others."""

    absent: Sequence[Key] = ()
    down: Sequence[Key] = ()
    left: Sequence[Key] = ()
    fetched: list[list[Key]] = field(default_factory=list)

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        self.fetched.append(list(keys))
        found = [key for key in keys if key not in self.down and key not in self.left]
        flight.answers.update({key: () if key in self.absent else rows(key) for key in found})
        failed = [key for key in keys if key in self.down]
        return Unanswered(failed, DOWN) if failed else None


@dataclass
class Renewed:
    keys: list[Key] = field(default_factory=list)

    def __call__(self, keys: Iterable[Key]) -> None:
        self.keys += keys


# -- metered, hot


def hot_over(below: Below, renewed: Renewed, figures: Statistics, **bounds: Any) -> tuple[HotTier, HotLayer]:
    hot, flights = HotTier(10, 10**6, **bounds), Flights()
    return hot, HotLayer(hot, figures, renewed, FlightLayer(flights, figures, below))


def test_hot_answers_what_it_holds_and_asks_for_the_rest_at_once() -> None:
    below, figures = Below(absent=["x"]), statistics()
    hot, layer = hot_over(below, Renewed(), figures)
    hot.store({"a": entry("a", name="held"), "gone": CacheEntry((), NOW_MS, NOW_MS + 1, 5)})
    assert layer.lookup(["b", "a", "x", "gone"], NOW_MS) == [rows("b"), rows("a", "held"), (), ()]
    assert below.fetched == [["b", "x"]]
    assert layer.lookup(["a"], NOW_MS) == [rows("a", "held")]
    assert below.fetched == [["b", "x"]]
    assert figures["hot"] == 3


def test_hot_has_keys_renewed_that_are_near_their_expiry() -> None:
    renewed = Renewed()
    hot, layer = hot_over(Below(), renewed, statistics(), ahead=100 / TTL_MS)
    hot.store({"a": entry("a", NOW_MS + 100), "b": entry("b", NOW_MS + 101)})
    layer.lookup(["a", "b"], NOW_MS)
    assert renewed.keys == ["a"]


def test_metered_counts_keys_and_those_that_have_rows() -> None:
    figures = statistics()
    _, layer = hot_over(Below(absent=["x"]), Renewed(), figures)
    assert MeteredLookup(figures, layer).lookup(["a", "x", "b"], NOW_MS) == [rows("a"), (), rows("b")]
    assert (figures["query_count"], figures["found"]) == (3, 2)


# -- flights


def test_a_flight_raises_what_nobody_below_could_answer() -> None:
    flights = Flights()
    with pytest.raises(ServiceUnavailable):
        FlightLayer(flights, statistics(), Below(down=["a"])).answers(["a", "b"], NOW_MS)
    assert FlightLayer(flights, statistics(), Below()).answers(["a"], NOW_MS) == {"a": rows("a")}


def test_of_two_flights_one_asks_and_the_other_waits_for_its_keys_alone() -> None:
    flights, below, figures = Flights(), Below(), statistics()
    first = flights.open(["a", "c"], NOW_MS)
    with ThreadPoolExecutor(1) as pool, flights.flying(first):
        flights.lead(first, ["a", "c"])
        layer = FlightLayer(flights, figures, SingleFlightLayer(flights, below))
        second = pool.submit(layer.answers, ["a", "b"], NOW_MS)
        settle(lambda: figures["coalesced"] == 1)
        assert not second.done()
        first.answer({"a": rows("a", "theirs")})
        assert second.result(5) == {"a": rows("a", "theirs"), "b": rows("b")}
    assert below.fetched == [["b"]]


def test_what_a_flight_ends_without_is_asked_for_again() -> None:
    flights, below, figures = Flights(), Below(), statistics()
    first = flights.open(["a"], NOW_MS)
    with ThreadPoolExecutor(1) as pool:
        with flights.flying(first):
            flights.lead(first, ["a"])
            layer = FlightLayer(flights, figures, SingleFlightLayer(flights, below))
            second = pool.submit(layer.answers, ["a"], NOW_MS)
            settle(lambda: figures["coalesced"] == 1)
        assert second.result(5) == {"a": rows("a")}
    assert below.fetched == [["a"]]


def test_a_single_flight_that_leads_nothing_asks_nothing() -> None:
    flights, below = Flights(), Below()
    first, second = flights.open(["a"], NOW_MS), flights.open(["a"], NOW_MS)
    flights.lead(first, ["a"])
    assert SingleFlightLayer(flights, below).answer(second, ["a"]) is None
    assert (below.fetched, dict(second.joined)) == ([], {first: ["a"]})


def test_a_second_look_finds_what_came_since_the_first() -> None:
    hot, below = HotTier(10, 10**6), Below()
    hot.store({"a": entry("a", NOW_MS + 5, "held")})
    flight = flown("a", "b")
    SecondLookLayer(hot, below).answer(flight, ["a", "b"])
    assert flight.answers == {"a": rows("a", "held"), "b": rows("b")}
    renewal = flown("a", ahead=5 / TTL_MS)
    SecondLookLayer(hot, below).answer(renewal, ["a"])
    assert renewal.answers == {"a": rows("a")}
    assert below.fetched == [["b"], ["a"]]


# -- cold, without Redis and with one that does not answer


def unreachable(figures: Statistics) -> ColdTier:
    space = RedisSpace("redis://127.0.0.1:1/0", definition(), settings(), figures, lambda: None)
    return ColdTier(space, EntryCodec([]))


@pytest.mark.parametrize("is_there", [False, True])
def test_a_redis_that_is_gone_is_a_miss(is_there: bool) -> None:
    figures, below = statistics(), Below()
    redis = unreachable(figures) if is_there else None
    cold = TolerantColdTier(redis, figures)
    assert cold.claim(["a"], NOW_MS) == Claim(None, mine=["a"])
    with cold.kept(None, ["a"]):
        cold.store(None, {"a": (b"", 0)})
        cold.release(None, ["a"])
    layer = ColdLayer(cold, GuardedHot(HotTier(10, 10**6), Flights()), figures, below)
    assert layer.answer(flown("a", "b"), ["a", "b"]) is None
    assert below.fetched == [["a", "b"]]
    assert (figures["cold"], figures["misses"], figures["redis_errors"] > 0) == (0, 2, is_there)
    if redis is not None:
        redis.close()


@dataclass
class Shared:
    """The entries and locks of other workers: ``claims`` are given one after the other."""

    entries: dict[Key, CacheEntry] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    claimed: list[list[Key]] = field(default_factory=list)
    stored: list[Key] = field(default_factory=list)
    released: list[Key] = field(default_factory=list)

    def tier(self, figures: Statistics) -> TolerantColdTier:
        shared = self

        class Tier(TolerantColdTier):
            def read(self, keys: Sequence[Key]) -> dict[Key, CacheEntry]:
                return {key: shared.entries[key] for key in keys if key in shared.entries}

            def claim(self, keys: Sequence[Key], now_ms: int, ahead: float = 0.0) -> Claim:
                shared.claimed.append(list(keys))
                return shared.claims.pop(0)

            def store(self, lease: Lease | None, values: Any) -> None:
                shared.stored += values if lease else []

            def release(self, lease: Lease | None, keys: Sequence[Key]) -> None:
                shared.released += keys

        return Tier(None, figures)


def test_cold_takes_fresh_entries_into_the_hot_tier_and_leaves_expired_ones_to_the_flight() -> None:
    figures, below, hot = statistics(), Below(), HotTier(10, 10**6)
    shared = Shared({"a": entry("a", name="shared"), "old": entry("old", NOW_MS)})
    flight = flown("a", "old", "b")
    ColdLayer(shared.tier(figures), GuardedHot(hot, Flights()), figures, below).answer(flight, flight.keys)
    assert flight.answers == {"a": rows("a", "shared"), "old": rows("old"), "b": rows("b")}
    assert flight.expired == {"old": entry("old", NOW_MS)}
    assert hot.kept(["a", "old"]) == {"a": entry("a", name="shared")}
    assert below.fetched == [["old", "b"]]
    assert (figures["cold"], figures["misses"]) == (1, 2)


def test_what_was_spoiled_is_answered_and_not_stored() -> None:
    hot = HotTier(10, 10**6)
    flight = flown("a", "b")
    flight.spoiled = {"a"}
    GuardedHot(hot, Flights()).take(flight, {key: entry(key) for key in ("a", "b")})
    assert list(flight.answers) == ["a", "b"]
    assert list(hot.kept(["a", "b"])) == ["b"]


def test_an_entry_is_held_shortly_while_no_invalidation_is_heard() -> None:
    hot = HotTier(10, 10**6)
    GuardedHot(hot, Flights(), is_heard=lambda: False).take(flown("a"), {"a": entry("a")})
    assert hot.kept(["a"])["a"].expires_ms == NOW_MS + UNHEARD_MS


# -- entries past their expiry


def test_kept_entries_join_those_of_redis() -> None:
    hot, below = HotTier(10, 10**6, keep_ms=1000), Below()
    hot.store({key: entry(key, NOW_MS - 1, "hot") for key in ("a", "b")})
    flight = flown("a", "b")
    flight.expired = {"b": entry("b", NOW_MS, "cold")}
    KeptLayer(hot, settings(stale_while_revalidate=1.0), below).answer(flight, ["a", "b"])
    assert flight.expired == {"a": entry("a", NOW_MS - 1, "hot"), "b": entry("b", NOW_MS, "cold")}
    untouched = flown("a")
    KeptLayer(hot, settings(), below).answer(untouched, ["a"])
    assert untouched.expired == {}


def test_stale_serves_within_its_bound_and_has_it_renewed() -> None:
    below, renewed, figures = Below(), Renewed(), statistics()
    flight = flown("a", "old", "b")
    flight.expired = {"a": entry("a", NOW_MS - 999, "stale"), "old": entry("old", NOW_MS - 1000)}
    StaleLayer(settings(stale_while_revalidate=1.0), figures, renewed, below).answer(flight, flight.keys)
    assert flight.answers["a"] == rows("a", "stale")
    assert (below.fetched, renewed.keys, figures["stale_served"]) == ([["old", "b"]], ["a"], 1)
    whole = flown("a")
    whole.expired = flight.expired
    StaleLayer(settings(stale_while_revalidate=1.0), figures, renewed, below).answer(whole, ["a"])
    StaleLayer(settings(), figures, renewed, below).answer(whole, ["a"])
    assert below.fetched == [["old", "b"], ["a"]]


# -- failures


@pytest.mark.parametrize(
    ("policy", "raised"), [("stop", ServiceUnavailable), ("stale", ServiceUnavailable), ("dead_letter", LookupRejected)]
)
def test_on_error_raises(policy: str, raised: type[DovetailError]) -> None:
    flight = flown("a", "b")
    flight.expired = {"a": entry("a", NOW_MS - 30_000)}
    with pytest.raises(raised):
        OnErrorLayer(settings(on_error=policy, max_stale=30.0), statistics(), Below(down=["a"])).answer(
            flight, ["a", "b"]
        )
    assert flight.answers == {"b": rows("b")}


def test_on_error_answers_instead() -> None:
    figures, below = statistics(), Below(down=["a"])
    absent, stale = flown("a", "b"), flown("a", "b")
    assert OnErrorLayer(settings(on_error="null"), figures, below).answer(absent, ["a", "b"]) is None
    assert absent.answers == {"a": (), "b": rows("b")}
    stale.expired = {"a": entry("a", NOW_MS - 29_999, "stale")}
    OnErrorLayer(settings(on_error="stale", max_stale=30.0), figures, below).answer(stale, ["a", "b"])
    assert stale.answers == {"a": rows("a", "stale"), "b": rows("b")}
    assert (figures["failed_keys"], figures["stale_served"]) == (1, 1)


# -- the source, asked by one worker

LEASE = Lease("token", "version", "sweep")


@dataclass
class World:
    """Key locks over a source that has a pen under each of its keys."""

    shared: Shared
    source: FakeSource = field(default_factory=FakeSource)
    figures: Statistics = field(default_factory=statistics)
    hot: HotTier = field(default_factory=lambda: HotTier(10, 10**6))
    elapsed_s: float = 0.0
    pauses: int = 0

    def __post_init__(self) -> None:
        self.source.put(a="pen", b="pen")
        made, policy = definition(), settings()
        fetcher = Fetcher(made, self.source, policy, self.figures, lambda: self.elapsed_s, self.pause)
        writer = EntryWriter(EntryCodec([column.type for column in made.columns]), policy, self.figures)
        cold = self.shared.tier(self.figures)
        self.claimed = ClaimedKeys(cold, GuardedHot(self.hot, Flights()), writer, SourceLayer(fetcher))
        self.layer = KeyLockLayer(self.claimed, policy, self.figures, lambda: self.elapsed_s, self.pause)

    def pause(self, pause_s: float) -> None:
        self.elapsed_s += pause_s
        self.pauses += 1


def test_what_is_locked_here_is_asked_for_and_stored_in_both_tiers() -> None:
    world = World(Shared(claims=[Claim(LEASE, {"c": entry("c", name="shared")}, ["a", "x"])]))
    flight = flown("a", "c", "x")
    assert world.layer.answer(flight, ["a", "c", "x"]) is None
    assert flight.answers == {"a": rows("a"), "c": rows("c", "shared"), "x": ()}
    assert world.source.fetched == [["a", "x"]]
    assert world.shared.stored == ["a", "x"]
    assert sorted(world.hot.kept(["a", "c", "x"])) == ["a", "c", "x"]


def test_what_others_have_locked_is_waited_for() -> None:
    waiting = Claim(LEASE, busy=["b"])
    world = World(Shared(claims=[waiting, waiting, Claim(LEASE, {"b": entry("b", name="theirs")})]))
    flight = flown("b")
    assert world.layer.answer(flight, ["b"]) is None
    assert flight.answers == {"b": rows("b", "theirs")}
    assert (world.source.fetched, world.pauses, world.figures["coalesced"]) == ([], 2, 1)
    assert world.shared.claimed == [["b"]] * 3


def test_who_does_not_answer_in_time_is_waited_for_no_longer() -> None:
    world = World(Shared(claims=[Claim(LEASE, busy=["b"]) for _ in range(100)]))
    flight = flown("b")
    assert world.layer.answer(flight, ["b"]) is None
    assert flight.answers == {"b": rows("b")}
    assert world.source.fetched == [["b"]]
    assert world.elapsed_s > settings().timeout_ms / 1000
    assert world.shared.stored == []


def test_what_the_source_did_not_answer_is_unlocked() -> None:
    world = World(Shared(claims=[Claim(LEASE, mine=["a", "b"])]))
    world.source.is_down = True
    unanswered = world.layer.answer(flown("a", "b"), ["a", "b"])
    assert unanswered is not None
    assert list(unanswered.keys) == world.shared.released == ["a", "b"]


def test_a_renewal_waits_for_nobody() -> None:
    world = World(Shared(claims=[Claim(LEASE, mine=["a"], busy=["b"])]))
    flight = flown("a", "b")
    assert RenewalLayer(world.claimed, world.figures).answer(flight, ["a", "b"]) is None
    assert flight.answers == {"a": rows("a")}
    assert (world.pauses, world.figures["refreshed"]) == (0, 1)


def test_the_source_tells_of_a_statement_before_the_flight_has_it() -> None:
    source, flight, kept = FakeSource({"a": rows("a")}), flown("a", "x"), []

    def keep(keys: Sequence[Key], found: dict[Key, Rows]) -> None:
        kept.append((list(keys), found, dict(flight.answers)))

    SourceLayer(Fetcher(definition(), source, settings(), statistics()), keep).answer(flight, ["a", "x"])
    assert kept == [(["a", "x"], {"a": rows("a")}, {})]
    assert flight.answers == {"a": rows("a"), "x": ()}
