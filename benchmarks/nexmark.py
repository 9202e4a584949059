"""The events of Nexmark: persons, auctions and bids, in columns, each made of its number and nothing else.

Of 50 events the first is a person, the next three are auctions, the others bids. The same number is the same event
however the stream is cut, so a benchmark, its oracle and several producers agree without a word.

References go back to the newest of their kind, some to one that is hot, some up to ten ids ahead: a bid may come before
its auction, an auction before its seller. ``bidder`` is counted as ``person.id`` is, where the original adds the first
id twice.

Source: the generator of nexmark/nexmark.
"""

from __future__ import annotations

import datetime as dt
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]

HOT_EVERY = 100
"""Of the ids, one in so many is hot while it is the newest of these."""
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
WATERMARK_MS = 4_000
_LETTERS = np.random.default_rng(0).integers(97, 123, 1 << 16).astype(np.uint8)
_LONGEST = 1 << 10


@dataclass(frozen=True)
class Nexmark:
    """A stream; ``events`` gives its rows.

    rate              events of one second of event time
    base_ms           the event time of event 0
    persons .. bids   how many of each there are in a round
    hot_sellers ..    one reference in so many is not to the hot one
    out_of_order      events change places within so many; prime to 953
    person_bytes ..   size of a record on average; ``extra`` fills it up
    late_share        rows whose time lies behind the watermark of 4 s
    null_share        auctions without a seller, bids without an auction
    moved_share       persons after whom one of those before moves house, see ``moved``
    left_share        persons after whom one of those before leaves, see ``departed``
    """

    rate: int = 10_000
    base_ms: int = 1_436_918_400_000
    persons: int = 1
    auctions: int = 3
    bids: int = 46
    hot_sellers: int = 4
    hot_auctions: int = 2
    hot_bidders: int = 4
    open_auctions: int = 100
    active_persons: int = 1_000
    id_lead: int = 10
    first_person: int = 1_000
    first_auction: int = 1_000
    first_category: int = 10
    categories: int = 5
    out_of_order: int = 1
    person_bytes: int = 200
    auction_bytes: int = 500
    bid_bytes: int = 100
    late_share: float = 0.0
    null_share: float = 0.0
    moved_share: float = 0.0
    left_share: float = 0.0

    @property
    def round(self) -> int:
        return self.persons + self.auctions + self.bids

    def events(self, first: int, last: int) -> dict[str, pa.Table]:
        """The rows of the places from ``first`` up to ``last``, without it, in the order of the stream."""
        numbers = self._numbers(first, last)
        place = numbers % self.round
        auctions_end = self.persons + self.auctions
        return {
            "person": self._persons(numbers[place < self.persons]),
            "auction": self._auctions(numbers[(self.persons <= place) & (place < auctions_end)]),
            "bid": self._bids(numbers[place >= auctions_end]),
        }

    def moved(self, first: int, last: int) -> pa.Table:
        """Rows of ``person`` that replace earlier ones: another city and state, at a later time."""
        numbers, earlier = self._earlier(first, last, "moved", self.moved_share)
        rows = self._persons(earlier)
        for name in ("city", "state", "date_time"):
            rows = rows.set_column(rows.column_names.index(name), name, self._persons(numbers).column(name))
        return rows

    def departed(self, first: int, last: int) -> pa.Table:
        """The ids of persons that are deleted."""
        _, earlier = self._earlier(first, last, "left", self.left_share)
        return self._persons(earlier).select(["id"])

    def closing(self, last: int, after_ms: int = 60_000) -> dict[str, pa.Table]:
        """A row of each table, long after the events up to ``last``: with it their windows close."""
        at = dt.datetime.fromtimestamp((self.base_ms + last * 1_000 // self.rate + after_ms) / 1_000, dt.UTC)
        changed = dict.fromkeys(("id", "seller", "auction", "bidder"), -1) | dict.fromkeys(("date_time", "expires"), at)
        rows = {name: table.slice(0, 1) for name, table in self.events(0, self.round).items()}
        return {
            name: pa.Table.from_pylist(
                [{column: changed.get(column, value) for column, value in row.items()} for row in table.to_pylist()],
                schema=table.schema,
            )
            for name, table in rows.items()
        }

    # -- rows --

    def _persons(self, numbers: Numbers) -> pa.Table:
        first = _of(FIRST_NAMES, _below(numbers, "person.first", len(FIRST_NAMES)))
        last = _of(LAST_NAMES, _below(numbers, "person.last", len(LAST_NAMES)))
        name = pc.binary_join_element_wise(first, last, " ")
        email = pc.binary_join_element_wise(
            _letters(numbers, "person.mail", 7), "@", _letters(numbers, "person.host", 5), ".com", ""
        )
        card = _digits(_below(numbers, "person.card", 10**16), 16)
        city = _of(CITIES, _below(numbers, "person.city", len(CITIES)))
        state = _of(STATES, _below(numbers, "person.state", len(STATES)))
        size = 16 + _sizes(name, email, card, city, state)
        return pa.table(
            {
                "id": self.first_person + self._last_person(numbers),
                "name": name,
                "email_address": email,
                "credit_card": card,
                "city": city,
                "state": state,
                "date_time": _moments(self._times_ms(numbers)),
                "extra": self._extra(numbers, self.person_bytes - size),
            }
        )

    def _auctions(self, numbers: Numbers) -> pa.Table:
        times_ms = self._times_ms(numbers)
        initial = self._price(numbers, "auction.initial")
        item = _letters(numbers, "auction.item", 3 + _below(numbers, "auction.item size", 17))
        text = _letters(numbers, "auction.text", 3 + _below(numbers, "auction.text size", 97))
        horizon_ms = self.open_auctions * self.round // self.auctions * 1_000 // self.rate
        life_ms = 1 + _below(numbers, "auction.life", max(2 * horizon_ms, 1))
        return pa.table(
            {
                "id": self.first_auction + self._last_auction(numbers),
                "item_name": item,
                "description": text,
                "initial_bid": initial,
                "reserve": initial + self._price(numbers, "auction.reserve"),
                "date_time": _moments(times_ms),
                "expires": _moments(times_ms + life_ms),
                "seller": self._reference(numbers, "auction.seller", self._seller(numbers)),
                "category": self.first_category + _below(numbers, "auction.category", self.categories),
                "extra": self._extra(numbers, self.auction_bytes - 56 - _sizes(item, text)),
            }
        )

    def _bids(self, numbers: Numbers) -> pa.Table:
        hot = _below(numbers, "bid.channel", 2) == 0
        number = _below(numbers, "bid.channel number", CHANNELS)
        hottest = _of(HOT_CHANNELS, number % len(HOT_CHANNELS))
        other = pc.binary_join_element_wise("channel-", _digits(number), "")
        path = pc.binary_join_element_wise(
            "https://www.nexmark.com/", _letters(numbers, "bid.url", 5), "/item.htm?query=1", ""
        )
        with_channel = pc.binary_join_element_wise(path, "&channel_id=", _digits(number), "")
        tells = pa.array(~hot & (_share(numbers, "bid.channel told") < 0.9))
        return pa.table(
            {
                "auction": self._reference(numbers, "bid.auction", self._auction(numbers)),
                "bidder": self._bidder(numbers),
                "price": self._price(numbers, "bid.price"),
                "channel": pc.if_else(pa.array(hot), hottest, other),
                "url": pc.if_else(tells, with_channel, path),
                "date_time": _moments(self._times_ms(numbers)),
                "extra": self._extra(numbers, np.full(len(numbers), self.bid_bytes - 32)),
            }
        )

    # -- which event, and when --

    def _numbers(self, first: int, last: int) -> Numbers:
        place = np.arange(first, last, dtype=np.int64)
        return place // self.out_of_order * self.out_of_order + place * 953 % self.out_of_order

    def _times_ms(self, numbers: Numbers) -> Numbers:
        late = _share(numbers, "late") < self.late_share
        back_ms = WATERMARK_MS + 1_000 + _below(numbers, "late by", WATERMARK_MS)
        times_ms: Numbers = self.base_ms + numbers * 1_000 // self.rate - np.where(late, back_ms, 0)
        return times_ms

    # -- who refers to whom; ids from 0 on --

    def _last_person(self, numbers: Numbers) -> Numbers:
        """The newest person when an event happens; for a person, this one."""
        last: Numbers = numbers // self.round * self.persons + np.minimum(numbers % self.round, self.persons - 1)
        return last

    def _last_auction(self, numbers: Numbers) -> Numbers:
        place = np.clip(numbers % self.round - self.persons, -1, self.auctions - 1)
        last: Numbers = numbers // self.round * self.auctions + place
        return last

    def _active_person(self, numbers: Numbers, field: str) -> Numbers:
        there = self._last_person(numbers) + 1
        active = np.minimum(there, self.active_persons)
        return there - active + _below(numbers, field, active + self.id_lead)

    def _seller(self, numbers: Numbers) -> Numbers:
        hot = _below(numbers, "auction.hot", self.hot_sellers) > 0
        hottest = self._last_person(numbers) // HOT_EVERY * HOT_EVERY
        return self.first_person + np.where(hot, hottest, self._active_person(numbers, "auction.any"))

    def _bidder(self, numbers: Numbers) -> Numbers:
        hot = _below(numbers, "bid.hot bidder", self.hot_bidders) > 0
        hottest = self._last_person(numbers) // HOT_EVERY * HOT_EVERY + 1
        return self.first_person + np.where(hot, hottest, self._active_person(numbers, "bid.any bidder"))

    def _auction(self, numbers: Numbers) -> Numbers:
        hot = _below(numbers, "bid.hot", self.hot_auctions) > 0
        last = np.maximum(self._last_auction(numbers), 0)
        oldest = np.maximum(last - self.open_auctions, 0)
        some = oldest + _below(numbers, "bid.any", last - oldest + 1 + self.id_lead)
        return self.first_auction + np.where(hot, last // HOT_EVERY * HOT_EVERY, some)

    def _reference(self, numbers: Numbers, field: str, ids: Numbers) -> pa.Array:
        return pa.array(ids, mask=_share(numbers, f"{field} missing") < self.null_share)

    def _earlier(self, first: int, last: int, field: str, share: float) -> tuple[Numbers, Numbers]:
        """Persons of these places, and for each the event of one before them; of ``share`` of those that have one."""
        numbers = self._numbers(first, last)
        numbers = numbers[numbers % self.round < self.persons]
        before = self._last_person(numbers)
        taken = (before > 0) & (_share(numbers, field) < share)
        numbers, before = numbers[taken], before[taken]
        active = np.minimum(before, self.active_persons)
        ids = before - active + _below(numbers, f"{field} who", active)
        return numbers, ids // self.persons * self.round + ids % self.persons

    # -- values --

    def _price(self, numbers: Numbers, field: str) -> Numbers:
        """100 to 100,000,000; each power of ten as often as the others."""
        return np.rint(10 ** (6 * _share(numbers, field)) * 100).astype(np.int64)

    def _extra(self, numbers: Numbers, missing: Numbers) -> pa.Array:
        """Letters for what is missing to the size of a record, a fifth more or less."""
        wanted = np.maximum(missing, 0)
        sizes = wanted - wanted // 5 + _below(numbers, "extra size", 2 * (wanted // 5) + 1)
        return _letters(numbers, "extra", sizes)


def side_input(rows: int, absent_share: float = 0.0) -> pa.Table:
    """The table that q13 asks: keys from 0 on, of which a share is missing."""
    keys = np.arange(rows, dtype=np.int64)
    keys = keys[_share(keys, "side_input") >= absent_share]
    return pa.table({"key": keys, "value": _digits(keys)})


def _mixed(numbers: Numbers, field: str) -> npt.NDArray[np.uint64]:
    """64 bits of each number and field: the finalizer of SplitMix64."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(zlib.crc32(field.encode()) << 20)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _share(numbers: Numbers, field: str) -> Shares:
    """From 0 on, below 1."""
    return (_mixed(numbers, field) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _below(numbers: Numbers, field: str, limit: int | Numbers) -> Numbers:
    return (_share(numbers, field) * limit).astype(np.int64)


def _of(words: tuple[str, ...], places: Numbers) -> pa.Array:
    return pa.array(words).take(pa.array(places))


def _digits(numbers: Numbers, width: int = 0) -> pa.Array:
    return pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), width, padding="0")


def _sizes(*texts: pa.Array) -> Numbers:
    lengths: Numbers = np.sum([pc.binary_length(text).to_numpy() for text in texts], axis=0, dtype=np.int64)
    return lengths


def _moments(times_ms: Numbers) -> pa.Array:
    return pa.array(times_ms, pa.timestamp("ms"))


def _letters(numbers: Numbers, field: str, sizes: int | Numbers) -> pa.Array:
    """Texts of so many letters each, cut out of one long text."""
    lengths = np.minimum(np.broadcast_to(np.asarray(sizes, dtype=np.int64), numbers.shape), _LONGEST)
    ends = np.concatenate(([0], np.cumsum(lengths)))
    begins = _below(numbers, field, len(_LETTERS) - _LONGEST)
    places = np.repeat(begins - ends[:-1], lengths) + np.arange(ends[-1])
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(_LETTERS[places])]
    return pa.StringArray.from_buffers(len(numbers), *buffers[1:])
