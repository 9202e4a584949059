"""GROUP BY over streams: the view against the batch query, its key, its plan, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from tests.sql.world import Row, World

DDL = (
    "CREATE MUTABLE STREAM orders (id int, customer int, city string, n int, kg float64, eur decimal) PRIMARY KEY id",
    "CREATE STREAM customers (id int, name string) PRIMARY KEY id SETTINGS mode='versioned_kv'",
    "CREATE STREAM visits (customer int, page string, at datetime64(3))",
    "CREATE STREAM moves (k int, v int) SETTINGS mode='changelog'",
    "CREATE TABLE bids (k INT, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) APPEND ONLY",
    "CREATE TABLE asks (k INT, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) APPEND ONLY",
    "CREATE TABLE parts (k INT NOT NULL, v INT)",
    "CREATE MATERIALIZED VIEW by_city AS SELECT city, count() AS orders, sum(n) AS total FROM orders GROUP BY city",
)
OF_ORDERS = {
    "linear": "SELECT customer, count(), count(n) AS c, sum(n) AS s, avg(n) AS a FROM orders GROUP BY customer",
    "extremes": "SELECT customer, min(n) AS l, max(n) AS g, min(city) AS c, max(kg) AS w FROM orders GROUP BY customer",
    "one group": "SELECT count(*), sum(kg) AS w, avg(kg) AS a, sum(eur) AS p, avg(eur) AS q FROM orders",
    "distinct": "SELECT city, count(DISTINCT customer) AS d, uniq(n) AS u, sum(DISTINCT n) AS s, "
    "count(DISTINCT customer, n) AS p FROM orders GROUP BY city",
    "filters": "SELECT city, count_if(n > 2) AS a, sum_if(n, kg > 1) AS b, max(n) FILTER (WHERE customer = 1) AS c, "
    "count(*) FILTER (WHERE city IS NULL) AS d FROM orders GROUP BY city",
    "spread": "SELECT city, stddev(n) AS a, var_pop(kg) AS b, corr(n, kg) AS c, covar_samp(n, id) AS d FROM orders "
    "GROUP BY city",
    "lines through pairs": "SELECT city, regr_count(n, kg) AS a, regr_slope(n, id) AS b, regr_intercept(n, id) AS c, "
    "regr_r2(kg, n) AS d, regr_avgx(n, kg) AS e, regr_avgy(n, kg) AS f, regr_slope_if(kg, n, id > 1) AS g, "
    "regr_slope(n, customer) FILTER (WHERE kg > 1) AS h, regr_count_if(n, kg, id > 2) AS i FROM orders GROUP BY city",
    "arrays": "SELECT city, group_array(n) AS a, group_uniq_array(customer) AS b, "
    "array_agg(n ORDER BY kg DESC, id) AS c, array_agg(DISTINCT customer ORDER BY customer DESC) AS d "
    "FROM orders GROUP BY city",
    "texts": "SELECT customer, string_agg(city, '/') AS a, group_concat(upper(city)) AS b, "
    "string_agg(city, '-' ORDER BY n DESC) AS c FROM orders GROUP BY customer",
    "quantiles": "SELECT city, median(n) AS m, quantile(0.9)(kg) AS q, quantiles(0.1, 0.5)(n) AS r, p95(n) AS p, "
    "quantile_exact(0.5)(n + 1) AS e, quantile(n, 0.25) AS f, mode(n) AS o FROM orders GROUP BY city",
    "of the greatest": "SELECT city, arg_max(id, n) AS a, arg_min(customer, kg) AS b, max_by(id, n + kg) AS c "
    "FROM orders GROUP BY city",
    "the most, the least, the first": "SELECT city, top_k(n, 2) AS a, top_k(1)(customer) AS b, min_k(n, 2) AS c, "
    "max_k(kg, 1) AS d, group_array(2)(n) AS e, group_uniq_array(n, 2) AS f, top_k_if(n, 1, kg > 1) AS g, "
    "group_array_if(1)(id, n > 2) AS h FROM orders GROUP BY city",
    "of no values": "SELECT city, group_array(n) AS a, group_uniq_array_if(n, n > 3) AS b, top_k(n, 3) AS c, "
    "group_array(n) FILTER (WHERE kg > 2) AS d, max_k_if(n, 2, false) AS e, array_agg_if(n, n > 3) AS f FROM orders "
    "GROUP BY city",
    "by event time": "SELECT city, latest(n) AS a, earliest(customer) AS b, any_last_if(id, n > 1) AS c, "
    "first(kg) AS d, last_value(n) FILTER (WHERE kg > 1) AS e, first_value(customer + n) AS f FROM orders "
    "GROUP BY city",
    "by event time above a join": "SELECT c.name, latest(o.n) AS l, earliest(c.id) AS e FROM orders AS o "
    "LEFT JOIN customers AS c ON o.customer = c.id GROUP BY c.name",
    "bits": "SELECT city, group_bit_and(n) AS a, group_bit_or(n) AS b, group_bit_xor(n) AS c, bit_or(customer) AS d, "
    "bit_and_if(n, kg > 1) AS e, bit_and(n, 3) AS f FROM orders GROUP BY city, bit_and(n, 3)",
    "names of estimates": "SELECT city, quantile_tdigest(0.9)(n) AS a, quantile_timing(n, 0.25) AS b, "
    "median_tdigest(n) AS c, approx_percentile(0.3) WITHIN GROUP (ORDER BY n) AS d, approx_percentile(n, 0.75) AS e, "
    "uniq_hll12(n) AS f, uniq_combined64(n) AS g, approx_quantile(n, 0.9) AS h, quantile_if(0.9)(n, kg > 1) AS i, "
    "quantile_if(n, 0.1, kg > 1) AS j FROM orders GROUP BY city",
    "combinators": "SELECT city, sum_distinct(n) AS a, avg_distinct(n) AS b, sum_distinct_if(n, kg > 1) AS c, "
    "sum_if_distinct(n, kg > 1) AS d, median_distinct(n) AS e, max_distinct(n) AS f, "
    "count_distinct_if(n, kg > 1) AS g, stddev_pop_if(n, kg > 1) AS h, "
    "corr_if(n, kg, id > 1) AS i, bool_and_if(n > 1, kg > 1) AS j FROM orders "
    "GROUP BY city",
    "gathered and folded": "SELECT median(n) AS m, count() AS c, median(n) FILTER (WHERE kg > 1) AS f, "
    "group_array_if(id, n > 2) AS i, max(n) - median(n) AS d FROM orders",
    "gathered by a key that it reads": "SELECT customer, group_array(customer) AS a FROM orders GROUP BY customer "
    "HAVING length(a) > 1",
    "of gathered": "SELECT m, count() AS c, group_array(city) AS w FROM (SELECT city, median(n) AS m FROM orders "
    "GROUP BY city) AS g GROUP BY m",
    "aliases": "SELECT upper(city) AS u, sum(n + 1) / count() AS m FROM orders WHERE n > 1 GROUP BY u HAVING m > 2",
    "positions": "SELECT n % 2 AS parity, any(city) AS c FROM orders GROUP BY 1 HAVING count() > 1 AND parity = 1",
    "by primary key": "SELECT id, count() AS c, max(n) AS m FROM orders WHERE n > 1 GROUP BY id",
    "distinct rows": "SELECT DISTINCT customer, city FROM orders",
    "by all": "SELECT customer, city FROM orders GROUP BY ALL",
    "of groups": "SELECT max(c) AS m, count() FROM (SELECT customer, count() AS c FROM orders GROUP BY customer) AS g",
    "of a view": "SELECT orders, count() AS c FROM by_city GROUP BY orders",
    "above a join": "SELECT c.name, count() AS c, sum(o.n) AS s FROM orders AS o LEFT JOIN customers AS c "
    "ON o.customer = c.id GROUP BY c.name",
    "below a join": "SELECT c.id, c.name, g.c FROM customers AS c LEFT JOIN (SELECT customer, count() AS c FROM orders "
    "GROUP BY customer) AS g ON c.id = g.customer",
    "both sides": "WITH g AS (SELECT customer, sum(n) AS s FROM orders GROUP BY customer) "
    "SELECT a.customer, a.s, b.customer AS other FROM g AS a JOIN g AS b ON a.s = b.s",
}


@pytest.mark.parametrize("call", ["regr_slope(DISTINCT n, id)", "regr_count(n, id) OVER (PARTITION BY city)"])
def test_a_line_is_of_the_pairs_of_a_group(call: str) -> None:
    with pytest.raises(Unsupported, match="takes neither DISTINCT nor OVER"):
        World.of(*DDL).plan(f"SELECT {call} FROM orders")


@pytest.mark.parametrize("name", OF_ORDERS)
def test_a_view_of_groups_holds_what_the_batch_query_gives(name: str) -> None:
    world, query = World.of(*DDL), OF_ORDERS[name]
    world.start(query)
    steps: list[tuple[str, dict[str, object]]] = [
        ("insert", order(1, 1, "Oslo", 3)),
        ("insert", order(2, 1, "Rome", 5)),
        ("insert", order(3, 2, None, 3)),
        ("insert", order(2, 2, "Oslo", 1)),
        ("insert", order(4, None, "Oslo", None)),
        ("delete", order(1, 1, "Oslo", 3)),
        ("insert", order(5, 1, "Bern", 5)),
        ("delete", order(4, None, "Oslo", None)),
        ("insert", order(3, 3, "Oslo", 9)),
    ]
    world.insert("customers", {"id": 1, "name": "ann"}, {"id": 2, "name": "bob"})
    for kind, row in steps:
        (world.insert if kind == "insert" else world.delete)("orders", row)
        world.drain()
        assert world.table() == world.recomputed(query), row
    for number in (2, 3, 5):
        world.delete("orders", {"id": number})
    world.drain()
    assert world.table() == world.recomputed(query)


def order(number: int, customer: int | None, city: str | None, n: int | None) -> dict[str, object]:
    kg, eur = (None, None) if n is None else (n / 2, f"{n}.25")
    return {"id": number, "customer": customer, "city": city, "n": n, "kg": kg, "eur": eur}


def test_an_update_is_a_retraction_and_then_an_insertion() -> None:
    world = World.of(*DDL)
    world.start("SELECT customer, count() AS n FROM visits GROUP BY customer")
    world.insert("visits", {"customer": 1})
    assert world.drain() == [({"customer": 1, "n": 1}, 1)]
    world.insert("visits", {"customer": 1}, {"customer": None})
    first, second = {"customer": 1, "n": 1}, {"customer": 1, "n": 2}
    changes = world.drain()
    assert changes.index((first, -1)) + 1 == changes.index((second, 1))
    assert ({"customer": None, "n": 1}, 1) in changes


@pytest.mark.parametrize(
    ("query", "appends"),
    [
        ("SELECT DISTINCT customer, page FROM visits", True),
        ("SELECT customer FROM visits GROUP BY customer HAVING customer > 0", True),
        ("SELECT DISTINCT v.customer FROM visits AS v JOIN visits AS w ON v.customer = w.customer", True),
        ("SELECT DISTINCT customer FROM (SELECT DISTINCT customer, page FROM visits) AS d", True),
        ("SELECT DISTINCT page FROM visits AS v JOIN customers AS c ON v.customer = c.id", True),
        ("SELECT DISTINCT city FROM orders", False),
        ("SELECT DISTINCT k FROM moves", False),
        ("SELECT DISTINCT v.customer FROM visits AS v LEFT JOIN visits AS w ON v.customer = w.customer", False),
        ("SELECT customer, count() FROM visits GROUP BY customer", False),
        ("SELECT max(customer) FROM visits", False),
    ],
)
def test_values_of_rows_that_stay_are_never_taken_back(query: str, appends: bool) -> None:
    kind = World.of(*DDL).explain(query).split(" ")[0]
    assert kind == ("Append" if appends else "Changelog")


def test_each_distinct_row_leaves_once() -> None:
    world = World.of(*DDL)
    world.start("SELECT DISTINCT customer FROM visits")
    for customers in ([1, 2, 1], [1, None], [None, 2, 3]):
        rows: list[Row] = [{"customer": customer, "page": "p", "at": None} for customer in customers]
        world.insert("visits", *rows)
        assert {delta for _, delta in world.drain()} == {1}
    assert world.table() == Counter({(1,): 1, (2,): 1, (3,): 1, (None,): 1})


def test_distinct_rows_are_joined_as_groups_are() -> None:
    """They have a key, by which the current rows are known: a keyed stream may stand on the other side."""
    of_visits = "(SELECT DISTINCT customer FROM visits) AS d"
    world = World.of(*DDL)
    assert "Bidirectional" in world.explain(f"SELECT c.id FROM customers AS c JOIN {of_visits} ON c.id = d.customer")
    assert "Enrichment" in world.explain(f"SELECT v.page FROM visits AS v JOIN {of_visits} ON v.customer = d.customer")


def test_all_rows_are_one_group_that_stays() -> None:
    """As in a batch query: it is there before any row, and after the last."""
    world = World.of(*DDL)
    world.start("SELECT count() AS c, sum(n) AS s FROM orders")
    assert world.drain() == [({"c": 0, "s": None}, 1)]
    world.insert("orders", order(1, 1, "Oslo", 3))
    world.drain()
    world.delete("orders", {"id": 1})
    assert world.drain() == [({"c": 1, "s": 3}, -1), ({"c": 0, "s": None}, 1)]


def test_an_dangling_retraction_counts_for_nothing() -> None:
    world = World.of(*DDL)
    world.start("SELECT k, count() AS n, sum(v) AS s FROM moves GROUP BY k")
    world.insert("moves", {"k": 1, "v": 5}, {"k": 1, "v": 7, "_tp_delta": -1})
    world.drain()
    assert world.table() == {(1, 1, 5): 1}


# -- windows


def second(number: int) -> str:
    return f"2024-01-01 00:00:{number:02}"


def test_state_goes_with_the_watermark_and_the_rows_stay() -> None:
    world = World.of(*DDL)
    world.start("SELECT window_start, count() AS n FROM TUMBLE(bids, ts, INTERVAL '10' SECOND) GROUP BY window_start")
    world.insert("bids", {"k": 1, "ts": second(3)}, {"k": 1, "ts": second(12)})
    world.insert("bids", {"k": 1, "ts": second(25)})
    world.drain()
    world.insert("bids", {"k": 1, "ts": second(4)}, {"k": 1, "ts": second(29)})
    world.drain()
    assert {str(row[0])[17:19]: row[1] for row in world.table()} == {"00": 1, "10": 1, "20": 2}


def test_closed_groups_leave_once() -> None:
    world = World.of(*DDL)
    world.start(
        "SELECT window_end, k, sum(v) AS s, max(v) AS m FROM HOP(bids, ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) "
        "GROUP BY window_end, k EMIT ON WINDOW CLOSE"
    )
    world.insert("bids", {"k": 1, "v": 2, "ts": second(1)}, {"k": 1, "v": 5, "ts": second(5)})
    assert world.drain() == []
    world.insert("bids", {"k": 2, "v": 1, "ts": second(11)})
    left = [(str(row["window_end"])[17:19], row["k"], row["s"], row["m"], delta) for row, delta in world.drain()]
    assert sorted(left) == [("05", 1, 2, 2, 1), ("10", 1, 7, 5, 1)]


def test_groups_of_closed_groups_close_too() -> None:
    world = World.of(*DDL)
    world.start(
        "SELECT ws, max(n) AS m FROM (SELECT window_start AS ws, k, count() AS n FROM TUMBLE(bids, ts, "
        "INTERVAL '10' SECOND) GROUP BY window_start, k) AS g GROUP BY ws EMIT ON WINDOW CLOSE"
    )
    early: list[dict[str, object]] = [{"k": k, "ts": second(3)} for k in (1, 2, 2, 3, 3, 3)]
    world.insert("bids", *early)
    assert world.drain() == []
    world.insert("bids", {"k": 9, "ts": second(11)})
    assert [(row["m"], delta) for row, delta in world.drain()] == [(3, 1)]


@pytest.mark.parametrize("batches", [1, 3])
def test_groups_above_a_range_join_close_when_both_sides_have_passed(batches: int) -> None:
    world = World.of(*DDL)
    world.start(
        "WITH p AS (SELECT a.ts AS at FROM bids AS b JOIN asks AS a ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '4' "
        "SECOND AND a.ts) SELECT window_start, count() AS n FROM TUMBLE(p, at, INTERVAL '10' SECOND) "
        "GROUP BY window_start EMIT ON WINDOW CLOSE"
    )
    world.insert("bids", {"k": 1, "ts": second(3)})
    world.insert("asks", {"k": 1, "ts": second(5)}, {"k": 1, "ts": second(6)}, {"k": 2, "ts": second(30)})
    assert world.drain() == []
    for number in range(batches):
        world.insert("bids", {"k": 3, "ts": second(12 + number)})
    changes = world.drain()
    assert [(row["n"], delta) for row, delta in changes] == [(2, 1)]


# -- keys


@pytest.mark.parametrize(
    ("query", "key", "unique", "exchanged"),
    [
        ("SELECT customer, count() FROM orders GROUP BY customer", ("customer",), True, False),
        ("SELECT count() FROM orders GROUP BY customer", ("__key0",), False, False),
        ("SELECT count() FROM orders", (), True, False),
        ("SELECT upper(city) AS u, count() FROM orders GROUP BY u, customer", ("u", "__key1"), False, False),
        ("SELECT DISTINCT city FROM orders", ("city",), True, False),
    ],
)
def test_the_key_of_groups(query: str, key: tuple[str, ...], unique: bool, exchanged: bool) -> None:
    made = World.of(*DDL).plan(query).output
    assert made is not None
    assert (set(made.key), made.unique, made.exchanged) == (set(key), unique, exchanged)


def test_upserts_of_groups_need_keys_that_are_never_null() -> None:
    world = World.of(*DDL)
    world.plan("SELECT k, count() FROM parts GROUP BY k SETTINGS output_format = 'upsert'")
    for query in ("SELECT v, count() FROM parts GROUP BY v", "SELECT count() FROM parts"):
        with pytest.raises(Unsupported, match="upserts need a key"):
            world.plan(f"{query} SETTINGS output_format = 'upsert'")


# -- what is refused

REFUSED = {
    "SELECT city, count() FROM orders": '"city" is neither in GROUP BY nor in an aggregate',
    "SELECT * FROM orders GROUP BY city": '"id" is neither in GROUP BY',
    "SELECT city FROM orders GROUP BY city HAVING n > 1": '"n" is neither in GROUP BY',
    "SELECT sum(city) FROM orders": "sum is not made for string",
    "SELECT avg(at) FROM visits": "avg is not made for datetime64",
    "SELECT count() FROM orders WHERE count() > 1": "is not allowed in WHERE",
    "SELECT o.id FROM orders AS o JOIN customers AS c ON o.id = count()": "is not allowed in JOIN .. ON",
    "SELECT city, count() FROM orders GROUP BY city, count()": "is not allowed in GROUP BY",
    "SELECT sum(count()) FROM orders": "stands within another aggregate",
    "SELECT median(max(n)) FROM orders": "stands within another aggregate",
    "SELECT first(n) FROM (SELECT n FROM orders) AS o": "the aggregate first over streams",
    "SELECT top_k(n) FROM orders": "takes a number that is written out",
    "SELECT max_k(n, id) FROM orders": "takes a number that is written out",
    "SELECT array_agg(DISTINCT n ORDER BY id) FROM orders": "DISTINCT values have no order but their own",
    "SELECT latest(c) FROM (SELECT count() AS c FROM orders GROUP BY city) AS g": "the aggregate latest over streams",
    "SELECT latest(o.n + c.id) FROM orders AS o JOIN customers AS c ON o.id = c.id": "the aggregate latest",
    "SELECT count(city, n) FROM orders": "takes 1 argument, not 2",
    "SELECT city FROM orders GROUP BY 3": "GROUP BY 3 is no position",
    "SELECT page, count() FROM session(visits, at, 0s) GROUP BY page, window_end": "length of whole milliseconds",
    "SELECT page, count() FROM session(visits, at) GROUP BY page, window_end": "SESSION takes other arguments",
    "SELECT page FROM session(visits, at, 5s)": "the rows of SESSION are read by groups",
    "SELECT count() FROM session(visits, at, 5s)": "groups of SESSION are by the session",
    "SELECT page, count() FROM session(visits, page, 5s) GROUP BY page, window_end": "windows are of time",
    "SELECT city, count() FROM orders GROUP BY city WITH TOTALS": "WITH TOTALS is not supported",
    "SELECT city FROM orders GROUP BY ROLLUP(city), n WITH CUBE": "are of keys, not of sets of them",
    "SELECT city FROM orders GROUP BY CUBE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)": "GROUP BY of 8192 sets",
    "SELECT city FROM orders GROUP BY city WITH ROLLUP WITH CUBE": "WITH ROLLUP and WITH CUBE do not go together",
    "SELECT city, grouping(city) FROM orders GROUP BY city": "takes one to 63 keys of ROLLUP",
    "SELECT city, grouping(n) FROM orders GROUP BY ROLLUP(city)": "takes one to 63 keys of ROLLUP",
    "SELECT grouping(city) FROM orders": "takes one to 63 keys of ROLLUP",
    "SELECT city FROM orders WHERE grouping(city) = 0": "is not allowed in WHERE",
    "SELECT n FROM orders GROUP BY ROLLUP(city)": '"n" is neither in GROUP BY',
    "SELECT sum(DISTINCT n) OVER () FROM orders": "DISTINCT in sum",
    "SELECT city, count() FROM orders GROUP BY city SETTINGS output = 'append'": "no append form",
    "SELECT id, n FROM orders EMIT PERIODIC 2s": "EMIT PERIODIC is for aggregates",
    "SELECT k, count() FROM bids GROUP BY k EMIT ON WINDOW CLOSE": "never close: no key follows a watermark",
    "SELECT n, count() FROM orders GROUP BY n EMIT ON WINDOW CLOSE": "never close: rows can be taken back",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_refused(query: str) -> None:
    with pytest.raises(SqlError, match=REFUSED[query].replace("(", r"\(")) as refusal:
        World.of(*DDL).plan(query)
    assert refusal.value.fix
    assert refusal.value.where


# -- EXPLAIN

EXPLAINED = {
    "sessions": "SELECT k, window_start, window_end, max(v) FROM SESSION(bids, ts, INTERVAL '10' SECOND) "
    "GROUP BY k, window_start, window_end",
    "closed_sessions": "SELECT window_end, count() FROM session(visits, at, 5s, 1m) GROUP BY window_end "
    "EMIT AFTER WINDOW CLOSE",
    "open_sessions": "SELECT city, window_start, count() FROM session(orders, 5s) GROUP BY city, window_start",
    "grouping_sets": "SELECT city, n, count() FROM orders GROUP BY ROLLUP (city, n)",
    "groups": "SELECT city, count(), sum(n + 1) AS s, min(kg) FROM orders WHERE n > 0 GROUP BY city HAVING s > 2",
    "one_group": "SELECT count(DISTINCT page), max(at) FROM visits",
    "over_a_join": "SELECT c.name, sum_if(o.n, o.city = 'Oslo') AS oslo FROM orders AS o JOIN customers AS c "
    "ON o.customer = c.id GROUP BY c.name EMIT CHANGELOG",
    "windows": "SELECT window_start, k, avg(v) FROM TUMBLE(bids, ts, INTERVAL '10' SECOND) GROUP BY window_start, k",
    "closed_windows": "SELECT a.window_start, a.n, b.n AS m FROM (SELECT window_start, count() AS n FROM TUMBLE(bids, "
    "ts, INTERVAL '10' SECOND) GROUP BY window_start) AS a LEFT JOIN (SELECT window_start, count() AS n FROM "
    "TUMBLE(asks, ts, INTERVAL '10' SECOND) GROUP BY window_start) AS b ON a.window_start = b.window_start "
    "SETTINGS output = 'append'",
    "stream_windows": "SELECT window_end, count() FROM hop(visits, at, 5s, 1m) GROUP BY window_end "
    "EMIT AFTER WINDOW CLOSE",
    "retractions": "SELECT k, max(v) FROM moves GROUP BY k",
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_plan_of(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"explain/aggregate_{name}.txt", f"{EXPLAINED[name]}\n\n{World.of(*DDL).explain(EXPLAINED[name])}\n")


def test_aggregates_that_differ_in_letter_case_alone_are_two() -> None:
    world = World.of("CREATE STREAM s (k int, v string)")
    world.start("SELECT k, count_if(v = 'x') + 10 * count_if(v = 'X') AS both FROM s GROUP BY k")
    world.insert("s", {"k": 1, "v": "x"}, {"k": 1, "v": "x"}, {"k": 1, "v": "X"})
    assert world.drain() == [({"k": 1, "both": 12}, 1)]


def test_the_latest_is_by_event_time_and_within_a_window_by_its_order() -> None:
    world = World.of("CREATE STREAM s (k int, v int)")
    for second, value in ((3, 1), (1, 2), (2, 3)):
        world.insert("s", {"k": 1, "v": value, "_tp_time": f"2026-01-01 00:00:0{second}"})
    assert world.recomputed("SELECT latest(v) AS l, earliest(v) AS e FROM table(s)") == Counter([(1, 2)])
    over = "OVER (ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    windows = f"SELECT last_value(v) {over} AS l, first_value(v) {over} AS f FROM table(s)"
    assert world.recomputed(windows) == Counter({(3, 1): 3})


def test_of_several_at_one_time_the_least_counts() -> None:
    world = World.of("CREATE STREAM s (k int, v int)")
    world.start("SELECT latest(v) AS l, earliest(v) AS e FROM s")
    for value in (5, 4, 6):
        world.insert("s", {"k": 1, "v": value, "_tp_time": "2026-01-01 00:00:00"})
        world.drain()
    assert world.table() == Counter([(4, 4)])


@pytest.mark.parametrize(
    ("emit", "period_ms"),
    [
        ("", 0),
        ("EMIT CHANGELOG", 0),
        ("EMIT ON UPDATE", 0),
        ("EMIT PERIODIC 2s", 2_000),
        ("EMIT CHANGELOG PERIODIC INTERVAL '1' MINUTE", 60_000),
        ("EMIT ON UPDATE WITH BATCH 500ms", 500),
        ("EMIT PERIODIC 1s ON UPDATE", 1_000),
    ],
)
def test_how_often_changes_of_groups_leave(emit: str, period_ms: int) -> None:
    plan = World.of(*DDL).plan(f"SELECT city, count() AS n FROM orders GROUP BY city {emit}")
    assert plan.dataflow.period_ms == period_ms
    assert ("every" in plan.explain().splitlines()[0]) == bool(period_ms)


def test_only_the_fragment_of_the_groups_waits() -> None:
    plan = World.of(
        *DDL,
        "CREATE DICTIONARY cities (city string, land string) PRIMARY KEY city SOURCE(MYSQL(HOST 'h' PORT 1 USER 'u' "
        "PASSWORD 'p' DB 'd' TABLE 't')) LAYOUT(HASHED()) LIFETIME(300)",
    ).plan(
        "SELECT g.city, g.n, c.land FROM (SELECT city, count() AS n FROM orders GROUP BY city) AS g "
        "JOIN cities AS c ON g.city = c.city EMIT PERIODIC 2s"
    )
    assert [fragment.output.period_ms for fragment in plan.fragments] == [2_000, 0]
