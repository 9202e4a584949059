"""The hour of a query: rates, latency and what is forgotten."""

from __future__ import annotations

import math
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import StackError
from dovetail.runtime.clock import now_ms
from dovetail.services.serve.fragments_graph import fragments_of
from dovetail.services.serve.routes.graph import graph_of
from dovetail.services.serve.watch.metrics_window import MetricsWindow, QuerySamples
from dovetail.services.serve.watch.query_sample import QuerySample
from dovetail.services.serve.watch.watcher import Watcher
from dovetail.services.session import Session
from dovetail.services.session.context import silent, unasked
from dovetail.sql.catalog import Actual, Catalog, Desired, Leadership, Query
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream
from tests.services.serve.world import World, error_of

FIGURES = st.one_of(st.floats(0, 1e12), st.just(math.nan))
READINGS = st.lists(
    st.builds(QuerySample, at_ms=st.just(0.0), rows_in=FIGURES, rows_out=FIGURES, ended=FIGURES, read=FIGURES),
    max_size=40,
)


def hour_of(samples: list[QuerySample], most: int = 720) -> QuerySamples:
    hour = MetricsWindow(most)
    for sample in samples:
        hour.add(sample)
    return hour.samples()


def test_rates_are_per_second_and_a_count_that_falls_begins_anew() -> None:
    rates = hour_of([QuerySample(0, rows_out=0), QuerySample(2000, rows_out=10), QuerySample(4000, rows_out=4)]).rates(
        "rows_out"
    )
    assert rates[0] == 5
    assert math.isnan(rates[1])


def test_latency_is_how_long_the_first_record_has_waited_and_a_batch() -> None:
    """Record 11 is seen at 1 s; the query is at 10 until 3 s, and has read all at 4 s. Before, nothing had waited."""
    places = [(0, 10, 10), (1000, 11, 10), (2000, 15, 10), (3000, 15, 10), (4000, 15, 15)]
    hour = hour_of([QuerySample(at, ended=ended, read=read, batch_ms=100) for at, ended, read in places])
    assert math.isnan(hour.latencies()[0])
    assert hour.latencies().tolist()[1:] == [100, 1100, 2100, 100]
    assert hour.now()["lag"] == 0


def test_a_query_without_input_is_idle_and_has_no_latency() -> None:
    """It read record 11 at 2 s, and waits from then on; at 20 s there is another one."""
    places = [(0, 10, 10), (1000, 11, 10), (2000, 11, 11), (11_000, 11, 11), (12_000, 11, 11), (20_000, 12, 11)]
    hour = hour_of([QuerySample(at, ended=ended, read=read, batch_ms=8900) for at, ended, read in places])
    assert hour.idle().tolist() == [True, False, False, False, True, False]
    assert np.isnan(hour.latencies()).tolist() == hour.idle().tolist()
    assert hour.series()["idle"] == hour.idle().tolist()


def test_a_rate_of_late_is_over_some_reports() -> None:
    """Of 20 rows a second, reported every two seconds, looked at every second."""
    hour = hour_of([QuerySample(1000.0 * second, rows_out=40.0 * (second // 2)) for second in range(41)])
    assert hour.rate_of_late("rows_out") == 20
    assert hour_of([QuerySample(0, rows_out=0), QuerySample(60_000, rows_out=60)]).rate_of_late("rows_out") == 1
    assert math.isnan(hour_of([QuerySample(0, rows_out=0)]).rate_of_late("rows_out"))


def test_where_it_is_not_known_what_is_left_a_query_is_not_idle() -> None:
    assert not hour_of([QuerySample(0), QuerySample(20_000, read=3)]).idle().any()
    assert hour_of([]).idle().tolist() == []


@given(READINGS, st.integers(2, 20), st.integers(1, 10))
def test_what_is_kept_is_bounded_and_the_last(samples: list[QuerySample], most: int, points: int) -> None:
    """Whatever is not known: nothing fails, figures are as long as what is kept, and none is below 0."""
    samples = [replace(one, at_ms=float(place)) for place, one in enumerate(samples, start=1)]
    hour = hour_of(samples, most)
    kept = samples[-most:]
    series = hour.series() if samples else {}
    assert all(len(values) == len(kept) for values in series.values())
    assert series.get("at_ms", []) == [one.at_ms for one in kept]
    rates = hour.rates("rows_out", points)
    assert len(rates) <= min(points, max(len(kept) - 1, 0))
    assert not (rates < 0).any()
    assert not (hour.latencies() < 0).any()


def test_readings_that_come_while_one_asks_are_not_among_them() -> None:
    """A look of a thread and the answer to a request may meet: the figures of one answer are equally long."""
    hours = [MetricsWindow(720) for _ in range(20)]
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for hour in hours:
                hour.add(QuerySample(1.0, rows_in=2.0))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    looking = threading.Thread(target=look)
    hours[0].add(QuerySample(1.0, rows_in=2.0))
    looking.start()
    try:
        for _ in range(300):
            series = hours[0].samples().series()
            assert len({len(values) for values in series.values()}) == 1
    finally:
        over.set()
        looking.join()
        sys.setswitchinterval(before)


def test_a_select_that_somebody_reads_is_not_watched(tmp_path: Path) -> None:
    world = World(tmp_path)
    catalog = Catalog.open(world.catalog_url)
    catalog.add_query(Query("select-1", "", "", "", topic="select-1", view="select-1", lease_ms=10), now_ms=1)
    watcher = Watcher(lambda: world.open_session(silent, unasked), every_s=1)
    with world.open_session(silent, unasked) as session:
        watcher.look(session)
    assert watcher.document()["queries"] == []
    catalog.close()


def test_what_keeps_it_from_looking_is_told(tmp_path: Path) -> None:
    """And the last look stands."""

    def refused() -> Session:
        raise StackError("the catalog is away", where="here", fix="wait")

    watcher = Watcher(refused, every_s=0.01)
    watcher.start()
    while not watcher.document()["trouble"]:
        time.sleep(0.01)
    watcher.close()
    assert "the catalog is away" in watcher.document()["trouble"]


def test_what_was_not_seen_is_not_there(tmp_path: Path) -> None:
    def ask(path: str) -> httpx.Response:
        response = World(tmp_path).with_client(lambda client: client.get(path))
        assert isinstance(response, httpx.Response)
        return response

    assert ask("/v1/history").json()["queries"] == []
    assert ask("/v1/user").json() == {"name": "everybody", "role": "admin", "open": True}
    refused = ask("/v1/history/%3Cb%3E")
    assert refused.status_code == 404
    assert error_of(refused)["what"] == 'no query "<b>" has been seen'
    assert "<b>" not in refused.text


def test_a_query_that_is_made_anew_begins_anew_and_its_error_is_remembered(tmp_path: Path) -> None:
    world = World(tmp_path)
    catalog = Catalog.open(world.catalog_url)
    first = catalog.add_query(Query("v", "", "", "", topic="v"), now_ms=1)
    watcher = Watcher(lambda: world.open_session(silent, unasked), every_s=1)
    with world.open_session(silent, unasked) as session:
        catalog.report(first.id, now_ms=2, actual=Actual.FAILED, error="it broke\n  fix:   mend it")
        watcher.look(session)
        catalog.report(first.id, now_ms=3, actual=Actual.PAUSED, error="")
        watcher.look(session)
        [query] = watcher.document()["queries"]
        assert (query["error"], query["failing"]) == ("it broke\n  fix:   mend it", False)
        assert query["error_ms"] > 3
        catalog.want("v", Desired.DROPPED, now_ms=4)
        watcher.look(session)
        assert watcher.document()["queries"] == []
        assert watcher.series("v") is None
        catalog.forget_query(first.id)
        catalog.add_query(Query("v", "", "", "", topic="v"), now_ms=5)
        watcher.look(session)
        [query] = watcher.document()["queries"]
        assert query["error"] == "no Spark runner has given a sign of life for 10 s"
        assert query["failing"]
        series = watcher.series("v")
        assert series is not None
        assert len(series["series"]["at_ms"]) == 1
    catalog.close()


def test_what_makes_its_own_rows_says_how_fast(tmp_path: Path) -> None:
    """As it is declared; in the graph too, where it is no view."""
    world = World(tmp_path)
    catalog = Catalog.open(world.catalog_url)
    text = (
        "CREATE TABLE made (a int) WITH (connector = 'datagen', datagen.rows.per.second = 50, 'number-of-rows' = 900)"
    )
    definition = parse_one(text)
    assert isinstance(definition, CreateStream)
    catalog.create(definition, now_ms=1, query=Query("made", text, "", "", "made", engine=Engine.DATAGEN))
    catalog.add_query(Query("v", "", "", "", topic="v"), now_ms=1)
    watcher = Watcher(lambda: world.open_session(silent, unasked), every_s=1)
    with world.open_session(silent, unasked) as session:
        watcher.look(session)
        [node] = fragments_of(session)["nodes"]
        [relation] = graph_of(session)["nodes"]
    made, view = watcher.document()["queries"]
    told = {"generates": True, "rate_per_s": 50.0, "rows_at_most": 900}
    for one in (made, node, relation):
        assert told.items() <= one.items()
    assert "view" not in node
    assert (view["generates"], view["idle"], made["idle"]) == (False, False, False)
    catalog.close()


def test_that_a_query_goes_into_a_pack_is_no_error(tmp_path: Path) -> None:
    world = World(tmp_path)
    catalog = Catalog.open(world.catalog_url)
    query = catalog.add_query(Query("v", "", "", "", topic="v"), now_ms=1)
    until_ms = now_ms() + 10_000
    held = catalog.take_leadership(Leadership(Engine.SPARK, "host:1", until_ms), now_ms=0)
    catalog.renew_leadership(held, until_ms)
    watcher = Watcher(lambda: world.open_session(silent, unasked), every_s=1)
    with world.open_session(silent, unasked) as session:
        catalog.report(query.id, now_ms=2, actual=Actual.PACKING, error="with 6 others")
        watcher.look(session)
    [shown] = watcher.document()["queries"]
    assert (shown["state"], shown["error"], shown["failing"]) == ("packing", "", False)
    catalog.close()
