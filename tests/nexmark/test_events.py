"""The events are made of their number alone, in the proportions, with the references and the skew of Nexmark."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.nexmark import Nexmark, side_input

STREAMS = {
    "plain": Nexmark(),
    "slow": Nexmark(rate=7, base_ms=0),
    "out of order": Nexmark(rate=100, out_of_order=100),
    "spoiled": Nexmark(rate=100, late_share=0.1, null_share=0.1),
    "other proportions": Nexmark(persons=2, auctions=5, bids=13),
}


@pytest.mark.parametrize("name", STREAMS)
def test_an_event_is_the_same_however_the_stream_is_cut(name: str) -> None:
    stream = STREAMS[name]
    whole = stream.events(0, 3_000)
    cuts = [0, 1, 50, 51, 730, 2_999, 3_000]
    pieces = [stream.events(first, last) for first, last in itertools.pairwise(cuts)]
    for table, rows in whole.items():
        assert pa.concat_tables([piece[table] for piece in pieces]).equals(rows)


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    for first in (0, 50, 12_300):
        assert {name: rows.num_rows for name, rows in Nexmark().events(first, first + 50).items()} == {
            "person": 1,
            "auction": 3,
            "bid": 46,
        }


def test_ids_count_up_from_a_thousand() -> None:
    events = Nexmark().events(0, 5_000)
    assert events["person"]["id"].to_pylist() == list(range(1_000, 1_100))
    assert events["auction"]["id"].to_pylist() == list(range(1_000, 1_300))


@pytest.mark.parametrize(
    ("table", "column", "there", "active"),
    [("auction", "seller", 1, 1_000), ("bid", "bidder", 1, 1_000), ("bid", "auction", 3, 100)],
)
def test_references_are_to_the_newest_and_up_to_ten_ahead(table: str, column: str, there: int, active: int) -> None:
    stream = Nexmark()
    for first in range(100_000, 102_500, 50):
        ids = stream.events(first, first + 50)[table][column]
        newest = 1_000 + first // 50 * there + there - 1
        assert pc.max(ids).as_py() <= newest + 10
        # The hot one is the first of its hundred, and may be that much older.
        assert pc.min(ids).as_py() >= newest - active - 100


def test_some_bids_come_before_their_auction() -> None:
    events = Nexmark().events(0, 20_000)
    [(early,)] = rows_of(
        "SELECT count(*) FROM bid JOIN auction ON bid.auction = auction.id WHERE bid.date_time < auction.date_time",
        events,
    )
    assert early > 0


@pytest.mark.parametrize(
    ("column", "table", "kept", "hot"),
    [("seller", "auction", 0, 0.75), ("bidder", "bid", 1, 0.75), ("auction", "bid", 0, 0.5)],
)
def test_hot_ids_take_their_share(column: str, table: str, kept: int, hot: float) -> None:
    rows = Nexmark().events(1_000_000, 1_050_000)
    [(share,)] = rows_of(f"SELECT avg(({column} % 100 = {kept})::INT) FROM {table}", rows)
    assert share == pytest.approx(hot, abs=0.03)


def test_prices_are_even_over_the_powers_of_ten() -> None:
    counted = rows_of(
        "SELECT floor(log10(price))::INT AS power, count(*) / sum(count(*)) OVER () FROM bid GROUP BY power",
        Nexmark().events(0, 50_000),
    )
    assert {power for power, _ in counted} == {2, 3, 4, 5, 6, 7}
    assert all(share == pytest.approx(1 / 6, abs=0.01) for _, share in counted)


def test_records_are_as_large_as_wanted() -> None:
    events = Nexmark().events(0, 50_000)
    [(person,)] = rows_of(
        "SELECT avg(16 + length(name) + length(email_address) + length(credit_card) + length(city) + length(state)"
        " + length(extra)) FROM person",
        events,
    )
    [(auction,)] = rows_of(
        "SELECT avg(56 + length(item_name) + length(description) + length(extra)) FROM auction", events
    )
    [(bid,)] = rows_of("SELECT avg(32 + length(extra)) FROM bid", events)
    assert [person, auction, bid] == pytest.approx([200, 500, 100], rel=0.05)


def test_events_change_places_within_their_group_only() -> None:
    stream = Nexmark(rate=1_000, base_ms=0, out_of_order=10)
    times = [
        [moment.microsecond // 1_000 for moment in rows["date_time"].to_pylist()]
        for rows in (stream.events(place, place + 1)["bid"] for place in range(10, 20))
        if rows.num_rows
    ]
    assert sorted(times) == [[ms] for ms in range(10, 20)]
    assert times != sorted(times)


def test_an_auction_lasts_as_long_as_two_hundred_others_take_to_come() -> None:
    for rate in (100, 10_000):
        [(least, most)] = rows_of(
            "SELECT min(epoch_ms(expires - date_time)), max(epoch_ms(expires - date_time)) FROM auction",
            {name: rows for name, rows in Nexmark(rate=rate).events(0, 20_000).items() if name == "auction"},
        )
        assert 1 <= least < most <= 2 * 1_666_000 // rate + 1


def test_rows_are_spoiled_in_their_share() -> None:
    events = Nexmark(rate=100, late_share=0.1, null_share=0.2).events(0, 20_000)
    [(late,)] = rows_of(
        "SELECT avg((newest - date_time > INTERVAL '4' SECOND)::INT) FROM (SELECT date_time, max(date_time) OVER"
        " (ROWS UNBOUNDED PRECEDING) AS newest FROM bid)",
        events,
    )
    [(missing,)] = rows_of("SELECT avg((auction IS NULL)::INT) FROM bid", events)
    assert [late, missing] == pytest.approx([0.1, 0.2], abs=0.02)


def test_persons_move_and_leave() -> None:
    stream = Nexmark(rate=100, moved_share=0.5, left_share=0.2)
    events = stream.events(0, 20_000) | {"moved": stream.moved(0, 20_000), "departed": stream.departed(0, 20_000)}
    assert events["moved"].num_rows == pytest.approx(200, abs=30)
    assert events["departed"].num_rows == pytest.approx(80, abs=25)
    assert rows_of(
        "SELECT count(*) FROM moved JOIN person USING (id)"
        " WHERE moved.name <> person.name OR moved.date_time <= person.date_time",
        events,
    ) == [(0,)]
    assert rows_of("SELECT count(*) FROM departed ANTI JOIN person USING (id)", events) == [(0,)]


def test_the_closing_rows_come_after_all_others() -> None:
    stream = Nexmark(rate=100)
    closing, events = stream.closing(1_000), stream.events(0, 1_000)
    for name, rows in closing.items():
        assert rows.schema == events[name].schema
        [moment] = rows["date_time"].to_pylist()
        assert (moment - pc.max(events["bid"]["date_time"]).as_py()).total_seconds() >= 60


def test_keys_of_the_side_table_may_be_missing() -> None:
    assert side_input(10_000).num_rows == 10_000
    assert side_input(10_000, absent_share=0.01).num_rows == pytest.approx(9_900, abs=40)


def rows_of(query: str, tables: dict[str, pa.Table]) -> list[tuple[float, ...]]:
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register(name, rows)
        return connection.execute(query).fetchall()
