"""ASOF, LATEST, SEMI, ANTI, FOR SYSTEM_TIME AS OF a time, lag_behind: how they are planned, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port, Watermark
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.operators.asof import AsofSpec
from dovetail.joins.operators.asof_once import AsofOnceSpec
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.temporal import TemporalSpec
from dovetail.sql.query_settings import Value
from tests.sql.planner import Planner

DDL = (
    "CREATE STREAM l (k int, v int, at datetime64(3), p decimal(10, 2), s string)",
    "CREATE STREAM r (k int, w int, at datetime64(3), p decimal(10, 2), s string)",
    "CREATE MUTABLE STREAM m (k int, g int, x int) PRIMARY KEY k",
    "CREATE MUTABLE STREAM versioned (k int, g int, rev int) PRIMARY KEY k SETTINGS version_column='rev'",
    "CREATE STREAM log (k int, x int) SETTINGS mode='changelog'",
    "CREATE TABLE t (k INT, g INT, y INT, PRIMARY KEY (k))",
    "CREATE TABLE u (k INT, z INT)",
    "CREATE TABLE bids (s INT, p INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 second') APPEND ONLY",
    "CREATE TABLE asks (s INT, p INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 seconds') APPEND ONLY",
    (
        "CREATE TABLE deals (id INT, cur VARCHAR, amt INT, at TIMESTAMP, other TIMESTAMP, "
        "WATERMARK FOR at AS at - INTERVAL '5 seconds', PRIMARY KEY (id))"
    ),
    (
        "CREATE TABLE rates (cur VARCHAR, per INT, rate INT, since TIMESTAMP, "
        "WATERMARK FOR since AS since - INTERVAL '10 seconds', PRIMARY KEY (cur, per))"
    ),
)


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner.of(*DDL)


def operators(planner: Planner, query: str, **settings: Value) -> list[OperatorSpec]:
    flow = planner.plan(query, **settings).dataflow
    assert pickle.loads(pickle.dumps(flow)).edges == flow.edges
    return [node.operator for node in flow.nodes]


@pytest.mark.parametrize(
    ("query", "kind", "updating"),
    [
        ("SELECT v, w FROM l ASOF JOIN r ON l.k = r.k AND l.at >= r.at", AsofOnceSpec, False),
        ("SELECT v, x FROM l ASOF JOIN m ON l.k = m.k AND l.v >= m.x", AsofOnceSpec, False),
        ("SELECT v, x FROM l ASOF JOIN log ON l.k = log.k AND l.v >= log.x", AsofOnceSpec, False),
        (
            "SELECT v, x FROM l ASOF JOIN (SELECT k, x FROM m WHERE x > 1) AS f ON l.k = f.k AND v >= x",
            AsofOnceSpec,
            False,
        ),
        ("SELECT v, w FROM l RIGHT ASOF JOIN r ON l.k = r.k AND l.at >= r.at", AsofOnceSpec, False),
        ("SELECT x, v FROM m ASOF JOIN l ON l.k = m.k AND m.x >= l.v", AsofSpec, True),
        ("SELECT y, z FROM t ASOF LEFT JOIN u ON t.k = u.k AND t.y > u.z", AsofSpec, True),
        ("SELECT v, y FROM l ASOF JOIN t ON t.k = l.k AND t.y > l.v", AsofSpec, True),
        ("SELECT b.p FROM bids AS b ASOF JOIN asks AS a ON a.s = b.s AND a.ts < b.ts", AsofSpec, True),
        ("SELECT v, w FROM l LATEST JOIN r USING (k)", LatestSpec, False),
        ("SELECT v, w FROM l RIGHT LATEST JOIN r USING (k)", LatestSpec, False),
        ("SELECT v, x FROM m FULL LATEST JOIN l USING (k)", LatestSpec, False),
        ("SELECT v, y FROM l ASOF LATEST JOIN t USING (k)", LatestSpec, False),
        ("SELECT v FROM l LEFT SEMI JOIN m USING (k)", EnrichmentSpec, False),
        ("SELECT v FROM l LEFT ANTI JOIN r USING (k)", EnrichmentSpec, False),
        ("SELECT w FROM l RIGHT ANTI JOIN r USING (k)", EnrichmentSpec, False),
        ("SELECT y FROM t LEFT SEMI JOIN u USING (k)", BidirectionalSpec, True),
        ("SELECT x FROM m LEFT ANTI JOIN l USING (k)", BidirectionalSpec, True),
        (
            (
                "SELECT b.p, r.rate FROM bids AS b JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r ON r.cur = 'EUR' "
                "AND cast(b.s AS varchar) = r.cur AND b.p = r.per"
            ),
            TemporalSpec,
            False,
        ),
    ],
)
def test_the_operator(planner: Planner, query: str, kind: type[OperatorSpec], updating: bool) -> None:
    plan = planner.plan(query)
    assert isinstance(operators(planner, query)[-1], kind)
    assert plan.updating == updating


def test_right_is_left_with_the_sides_turned(planner: Planner) -> None:
    (operator,) = operators(planner, "SELECT v, w FROM l RIGHT ASOF JOIN r ON l.k = r.k AND l.at >= r.at")
    assert isinstance(operator, AsofOnceSpec)
    assert (operator.kind, operator.left_time, operator.comparison, operator.right_time) == (
        JoinKind.LEFT,
        "r.at",
        "<=",
        "l.at",
    )


def test_a_keyed_right_side_of_a_one_shot_asof_join_gives_versions(planner: Planner) -> None:
    plan = planner.plan("SELECT v, x FROM l ASOF JOIN m ON l.k = m.k AND l.v >= m.x SETTINGS keep_versions = 7")
    (node,) = plan.dataflow.nodes
    assert isinstance(node.operator, AsofOnceSpec)
    assert (node.operator.keep_versions, node.operator.right.ingest) == (7, Ingest.APPEND)
    assert plan.dataflow.scans[1].stream.primary_key == ("k",)


def test_ties_of_the_updating_asof_join_go_by_the_key_of_the_right_side(planner: Planner) -> None:
    def ties(query: str) -> tuple[tuple[str, ...], bool]:
        operator = operators(planner, query)[-1]
        assert isinstance(operator, AsofSpec)
        return operator.tie_break, operator.right.tie_break_by_arrival

    assert ties("SELECT u.z FROM u ASOF JOIN t ON t.g = u.k AND t.y > u.z") == (("t.k",), False)
    assert ties("SELECT t.y FROM t ASOF JOIN u ON t.k = u.k AND t.y > u.z") == ((), True)
    assert ties("SELECT b.p FROM bids AS b ASOF JOIN asks AS a ON a.s = b.s AND a.ts < b.ts") == ((), True)


def test_the_left_key_is_the_key_of_the_answers(planner: Planner) -> None:
    made = planner.plan("SELECT t.k, z FROM t ASOF LEFT JOIN u ON t.g = u.k AND t.y > u.z").output
    assert made is not None
    assert (made.key, made.unique, made.exchanged) == (("k",), True, True)


@pytest.mark.parametrize(
    ("condition", "tolerance"),
    [
        ("b.ts >= a.ts", None),
        ("b.ts >= a.ts AND date_diff_within(10s, b.ts, a.ts)", 10_000_000),
        ("b.ts >= a.ts AND b.ts <= a.ts + INTERVAL '1 minute'", 60_000_000),
        ("b.ts >= a.ts AND b.ts < a.ts + INTERVAL '1 minute'", 59_999_999),
        ("b.ts < a.ts AND date_diff('second', b.ts, a.ts) >= -3", 3_000_000),
        ("b.ts >= a.ts + INTERVAL '5 seconds' AND date_diff_within(8s, b.ts, a.ts)", 3_000_000),
        ("b.p <= a.p AND a.p - b.p <= 4", 4),
        ("b.p > a.p AND b.p BETWEEN a.p - 1 AND a.p + 2", 2),
    ],
)
def test_a_range_beside_the_inequality_is_a_tolerance(planner: Planner, condition: str, tolerance: int | None) -> None:
    query = f"SELECT b.p FROM bids AS b ASOF JOIN asks AS a ON a.s = b.s AND {condition}"
    operator = operators(planner, query)[-1]
    assert isinstance(operator, AsofSpec)
    assert operator.tolerance == tolerance


def test_watermarks_reach_the_ports_of_append_only_tables(planner: Planner) -> None:
    (operator,) = operators(planner, "SELECT b.p FROM bids AS b ASOF JOIN asks AS a ON a.s = b.s AND a.ts < b.ts")
    assert isinstance(operator, AsofSpec)
    assert (_delay(operator.left), _delay(operator.right)) == (1_000, 2_000)


def _delay(port: Port) -> int | None:
    return None if port.watermark is None else port.watermark.delay_ms


def test_a_temporal_join_waits_for_the_watermarks_of_both_sides(planner: Planner) -> None:
    query = (
        "SELECT d.id, r.rate FROM deals AS d LEFT JOIN rates FOR SYSTEM_TIME AS OF d.at AS r "
        "ON d.cur = r.cur AND d.amt = r.per AND d.id = r.rate WHERE d.amt > 1"
    )
    flow = planner.plan(query).dataflow
    keyed, temporal = (node.operator for node in flow.nodes)
    assert isinstance(keyed, KeyedSpec)
    assert isinstance(temporal, TemporalSpec)
    assert keyed.port.watermark == Watermark("d.at", 5_000)
    assert temporal.left.watermark == Watermark("d.at", 5_000, drops_late=False)
    assert temporal.right.watermark == Watermark("r.since", 10_000)
    assert (temporal.left_time, temporal.right_time, temporal.deleted) == ("d.at", "r.since", "r.#deleted")
    assert temporal.right.ingest == Ingest.APPEND
    # The key is the primary key: a version ends with the next one of its key, whatever else ON compares.
    assert (temporal.left.keys, temporal.right.keys) == (("d.cur", "d.amt"), ("r.cur", "r.per"))
    assert temporal.condition is not None
    made = planner.plan(query).output
    assert made is not None
    assert (made.key, made.updating) == (("id",), True)


def test_lag_behind_gives_the_right_side_a_watermark_that_drops_nothing(planner: Planner) -> None:
    query = "SELECT v, x FROM l LEFT JOIN m ON l.k = m.g AND lag_behind(20ms, l.at, m._tp_time)"
    keyed, enrichment = operators(planner, query)
    assert isinstance(keyed, KeyedSpec)
    assert isinstance(enrichment, EnrichmentSpec)
    assert enrichment.alignment is not None
    assert (enrichment.alignment.left_time, enrichment.alignment.lag_ms) == ("l.at", 20)
    assert enrichment.left.watermark is None
    assert enrichment.right.watermark == keyed.port.watermark == Watermark("m._tp_time", 0, drops_late=False)


def test_a_silent_right_side_stands_where_the_left_one_does(planner: Planner) -> None:
    query = "SELECT v, w FROM l LATEST JOIN r ON l.k = r.k AND lag_behind(2s, r.at, l.at)"
    (operator,) = operators(planner, query, join_quiesce_threshold_ms=500)
    assert isinstance(operator, AsofOnceSpec)
    assert (operator.left_time, operator.comparison, operator.right_time) == ("l.at", ">=", "r.at")
    assert operator.left.watermark == Watermark("l.at", -2_000, drops_late=False)
    assert operator.right.watermark == Watermark("r.at", 0, 500, drops_late=False)


def test_changes_of_a_keyed_level_tell_latest_when_they_came(planner: Planner) -> None:
    keyed, latest = operators(planner, "SELECT v, x FROM l LATEST JOIN m ON l.k = m.g")
    assert isinstance(keyed, KeyedSpec)
    assert keyed.port.tie_break_by_arrival
    assert isinstance(latest, LatestSpec)
    assert latest.right.ingest == Ingest.CHANGES


def test_a_version_column_decides_before_any_condition(planner: Planner) -> None:
    (keyed,) = operators(planner, "SELECT g FROM versioned WHERE g > 1")
    assert isinstance(keyed, KeyedSpec)
    assert (keyed.port.version, keyed.port.first_stays) == ("versioned.rev", False)
    (fused,) = operators(planner, "SELECT v, g FROM l JOIN versioned AS s ON l.k = s.k")
    assert isinstance(fused, EnrichmentSpec)
    assert (fused.right.ingest, fused.right.version) == (Ingest.UPSERT, "s.rev")
    (looked_up,) = operators(planner, "SELECT v, g FROM l JOIN versioned AS s ON l.k = s.k "
                                      "SETTINGS join_algorithm = 'direct, hash'")  # fmt: skip
    assert isinstance(looked_up, EnrichmentSpec)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT * FROM l LEFT ANTI JOIN m ON l.k = m.k", ["k", "v", "at", "p", "s", "_tp_time"]),
        ("SELECT * FROM l LEFT SEMI JOIN m USING (k)", ["k", "v", "at", "p", "s", "_tp_time"]),
        ("SELECT * FROM m RIGHT SEMI JOIN r ON r.k = m.k AND m.x > 3", ["k", "w", "at", "p", "s", "_tp_time"]),
        ("SELECT k, x FROM l LEFT SEMI JOIN r USING (k) JOIN m USING (k)", ["k", "x"]),
        ("SELECT v, j.x FROM l LATEST JOIN (SELECT k, x FROM m) AS j USING (k)", ["v", "x"]),
    ],
)
def test_output_columns(planner: Planner, query: str, columns: list[str]) -> None:
    assert list(planner.plan(query).columns) == columns


LAG = "lag_behind(20ms, l.at, r.at)"
REFUSED = [
    ("SELECT v FROM l ASOF JOIN r ON l.k = r.k", "here are none", "l.time >= r.time"),
    ("SELECT v FROM l ASOF JOIN r ON l.at > r.at", "at least one equality", "add it"),
    ("SELECT v FROM l ASOF JOIN r ON l.k = r.k AND l.at > r.at AND l.v > r.w", "here are 2", "a range"),
    ("SELECT y FROM t ASOF JOIN u ON t.k = u.k AND t.y > u.z AND t.g < u.z", "here are 2", "a range"),
    ("SELECT v FROM l ASOF JOIN r ON l.k = r.k AND l.s >= r.s", "not by string", "time columns"),
    ("SELECT y FROM t ASOF JOIN u ON t.k = u.k AND t.y > u.z AND t.y > 3", "on one side only", "WHERE"),
    ("SELECT y FROM t ASOF JOIN u ON t.k = u.k AND t.y > u.z AND t.g <> u.z", "of its own", "subquery"),
    ("SELECT y FROM t ASOF JOIN u ON t.k = u.k AND t.y > u.z AND t.y > u.z + 3", "no least distance", "date_diff"),
    ("SELECT y FROM t ASOF JOIN u ON t.k = u.k AND t.y > u.z AND t.y + 3 < u.z", "nothing is so near", "date_diff"),
    ("SELECT v FROM l FULL ASOF JOIN r ON l.k = r.k AND l.at > r.at", "FULL ASOF", "LEFT ASOF"),
    ("SELECT v FROM l ASOF JOIN r ON l.k IS NOT DISTINCT FROM r.k AND l.at > r.at", "IS NOT DISTINCT", "coalesce"),
    ("SELECT v FROM l ASOF JOIN table(r) AS r ON l.k = r.k AND l.at > r.at", "ASOF JOIN needs a stream", "itself"),
    ("SELECT v FROM l FULL LATEST JOIN table(r) AS r ON l.k = r.k", "FULL LATEST JOIN needs a stream", "itself"),
    ("SELECT v FROM l LATEST JOIN r ON l.k = r.k AND l.v > r.w", "no condition beside", "ASOF JOIN"),
    ("SELECT v FROM l LATEST JOIN r ON l.k = r.k AND r.w > 1", "no condition beside", "subquery"),
    ("SELECT v FROM l LATEST JOIN r ON l.v > r.w", "a LATEST join needs at least one equality", "add it"),
    ("SELECT y FROM t LATEST JOIN u USING (k)", "TABLE or SOURCE", "CREATE STREAM"),
    ("SELECT v FROM l FULL LATEST JOIN u USING (k)", "TABLE or SOURCE", "CREATE STREAM"),
    ("SELECT x FROM m LATEST JOIN l USING (k)", "can be taken back", "append stream on the left"),
    ("SELECT v, m.x FROM l LEFT ANTI JOIN m ON l.k = m.k", 'column of "m"', "JOIN for the columns of both"),
    ("SELECT v, x FROM l LEFT ANTI JOIN m ON l.k = m.k", 'column of "m"', "JOIN for the columns of both"),
    ("SELECT v FROM l LEFT SEMI JOIN m ON l.k = m.k WHERE m.x > 1", 'column of "m"', "JOIN for the columns"),
    ("SELECT m.x FROM table(m) AS m LEFT ANTI JOIN l ON l.k = m.k", "keeps the rows of the stream", "LEFT ANTI JOIN"),
    ("SELECT v FROM l ASOF ANTI JOIN m ON l.k = m.k", "do not go together", "LEFT ANTI JOIN"),
    ("SELECT id FROM deals AS d JOIN rates FOR SYSTEM_TIME AS OF d.at AS r ON d.cur = r.cur", "r.per is not there",
     "l.key = r.per"),
    ("SELECT id FROM deals AS d FULL JOIN rates FOR SYSTEM_TIME AS OF d.at AS r ON d.cur = r.cur", "never become known",
     "LEFT JOIN"),
    ("SELECT id FROM deals AS d JOIN rates FOR SYSTEM_TIME AS OF d.other AS r ON d.cur = r.cur", "WATERMARK over at",
     "WATERMARK FOR other"),
    ("SELECT id FROM deals AS d JOIN rates FOR SYSTEM_TIME AS OF date_trunc('hour', d.at) AS r ON d.cur = r.cur",
     "takes a column", "AS OF l.time"),
    ("SELECT id FROM deals AS d JOIN t FOR SYSTEM_TIME AS OF d.at ON d.id = t.k", "from when on", "WATERMARK FOR"),
    ("SELECT id FROM deals AS d JOIN bids FOR SYSTEM_TIME AS OF d.at ON d.id = bids.s", "no primary key",
     "PRIMARY KEY"),
    ("SELECT y FROM t JOIN rates FOR SYSTEM_TIME AS OF t.y AS r ON t.k = r.per", "has no WATERMARK", "WATERMARK FOR y"),
    ("WITH c AS (SELECT * FROM rates) SELECT id FROM deals AS d JOIN c FOR SYSTEM_TIME AS OF d.at ON d.cur = c.cur",
     "keeps no versions", "the table itself"),
    ("SELECT id FROM deals AS d ASOF JOIN rates FOR SYSTEM_TIME AS OF d.at AS r ON d.cur = r.cur", "do not go together",
     "leave one of them out"),
    (f"SELECT v FROM l JOIN r ON l.k = r.k AND {LAG}", "answers again", "leave lag_behind out"),
    ("SELECT v FROM l LATEST JOIN r ON l.k = r.k AND lag_behind(20ms)", "by the clock", "lag_behind"),
    ("SELECT v FROM l LATEST JOIN r ON l.k = r.k AND lag_behind(0s, l.at, r.at)", "positive", "lag_behind"),
    (f"SELECT v FROM l LATEST JOIN r ON l.k = r.k AND {LAG} AND {LAG}", "once", "second"),
    (f"SELECT v FROM l LATEST JOIN r ON l.k = r.k AND NOT {LAG}", "no condition", "by itself"),
    ("SELECT v FROM l LATEST JOIN r ON l.k = r.k AND lag_behind(1s, l.at, l.at)", "each side", "lag_behind"),
    ("SELECT v FROM l LATEST JOIN r ON l.k = r.k AND lag_behind(1s, l.at, r.w)", "compares times", "lag_behind"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "what", "fix"), REFUSED)
def test_refused(planner: Planner, query: str, what: str, fix: str) -> None:
    with pytest.raises(SqlError) as refused:
        planner.plan(query)
    assert what in refused.value.what
    assert fix in refused.value.fix
    assert "line 1" in refused.value.where


EXPLAINED = {
    "asof_updating": "SELECT t.k, z FROM u ASOF LEFT JOIN t ON t.g = u.k AND u.z >= t.y "
    "AND u.z - t.y < 5 WHERE z > 0 AND t.y > 0",
    "asof_bounded": "SELECT b.p, a.p AS q FROM bids AS b ASOF JOIN asks AS a ON a.s = b.s AND b.ts >= a.ts "
    "AND date_diff_within(10s, b.ts, a.ts)",
    "asof_versions": "SELECT v, g FROM l ASOF JOIN versioned AS n ON l.k = n.k AND l.v >= n.rev AND n.g > 0",
    "latest": "SELECT v, x FROM l LEFT LATEST JOIN m ON l.k = m.g",
    "latest_full": "SELECT v, w FROM l FULL LATEST JOIN r USING (k)",
    "anti": "SELECT v FROM l LEFT ANTI JOIN versioned AS n ON l.k = n.k AND n.g > 0 AND l.v > 0",
    "temporal_event": "SELECT d.id, r.rate FROM deals AS d LEFT JOIN rates FOR SYSTEM_TIME AS OF d.at AS r "
    "ON d.cur = r.cur AND d.amt = r.per AND r.rate > 0",
    "aligned": "SELECT v, x FROM l JOIN m ON l.k = m.k AND lag_behind(20ms, l.at, m._tp_time) "
    "SETTINGS join_quiesce_threshold_ms = 1000",
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_plan_of(planner: Planner, name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"explain/{name}.txt", f"{EXPLAINED[name]}\n\n{planner.plan(EXPLAINED[name]).explain()}\n")


def test_at_least_one_version_is_kept(planner: Planner) -> None:
    with pytest.raises(SqlError, match="keep_versions cannot be 0"):
        planner.plan("SELECT v, w FROM l ASOF JOIN r ON l.k = r.k AND l.at >= r.at", keep_versions=0)


def test_a_version_column_needs_upserts_and_an_order() -> None:
    with pytest.raises(SqlError, match="keeps all"):
        Planner.of("CREATE STREAM s (k int, rev int) SETTINGS version_column='rev'")
    with pytest.raises(SqlError, match="no order"):
        Planner.of("CREATE MUTABLE STREAM s (k int, rev array(int)) PRIMARY KEY k SETTINGS version_column='rev'")
    with pytest.raises(SqlError, match='"rew"'):
        Planner.of("CREATE MUTABLE STREAM s (k int, rev int) PRIMARY KEY k SETTINGS version_column='rew'")
