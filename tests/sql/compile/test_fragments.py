"""Where a query is cut, and what travels between its fragments."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import InternalError, Unsupported
from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import Ingest
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.fragments import Fragment
from dovetail.sql.plan.nodes import Scan
from dovetail.sql.plan.properties import walk
from tests.sql.lookup_world import DDL, TEMPORAL
from tests.sql.planner import Planner


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner.of(*DDL)


def scans(fragment: Fragment) -> list[Scan]:
    return [node for node in walk(fragment.output) if isinstance(node, Scan)]


@pytest.mark.parametrize(
    ("query", "engines"),
    [
        ("SELECT oid FROM orders", ["spark"]),
        ("SELECT v FROM accounts", ["spark"]),
        ("SELECT v FROM orders AS o JOIN accounts AS a ON o.oid = a.id", ["spark"]),
        ("SELECT price FROM orders JOIN goods USING (pid)", ["faust"]),
        ("SELECT n FROM orders JOIN goods USING (pid) LEFT JOIN stock ON title = code", ["faust"]),
        ("SELECT price FROM accounts JOIN goods ON note = pid", ["faust"]),
        ("SELECT v, dict_get('goods', 'price', note) AS p FROM accounts", ["faust"]),
        ("SELECT price FROM orders JOIN payments USING (oid) JOIN goods USING (pid)", ["spark", "faust"]),
        ("SELECT amount FROM orders JOIN goods USING (pid) JOIN payments USING (oid)", ["faust", "spark"]),
        ("SELECT amount FROM orders JOIN goods USING (pid) JOIN payments USING (oid) JOIN stock ON title = code",
         ["faust", "spark", "faust"]),
        ("""SELECT price, n FROM (SELECT oid, price FROM orders JOIN goods USING (pid)) AS a
            JOIN (SELECT oid, n FROM payments JOIN stock ON oid = id) AS b ON a.oid = b.oid""",
         ["faust", "faust", "spark"]),
        (f"SELECT price FROM (SELECT v FROM accounts) AS a JOIN products {TEMPORAL} ON v = id", ["spark", "faust"]),
        (f"SELECT price FROM (SELECT id, v FROM ledger WHERE v > 1) AS l JOIN products {TEMPORAL} AS p ON v = p.id",
         ["spark", "faust"]),
        ("SELECT name, price FROM orders JOIN table(profiles) AS p ON oid = id JOIN goods USING (pid)", ["faust"]),
    ],
)  # fmt: skip
def test_engines(planner: Planner, query: str, engines: list[str]) -> None:
    plan = planner.plan(query)
    assert [fragment.engine for fragment in plan.fragments] == engines
    names = [f"q.f{number}" for number in range(1, len(engines))]
    assert [fragment.name for fragment in plan.fragments] == [*names, "q"]
    assert plan.output == plan.fragments[-1].output
    for fragment in plan.fragments:
        assert fragment.output.topic == fragment.name
        assert plan.fragment(fragment.name) is fragment
        compiled = fragment.dataflow.scans if fragment.engine == "spark" else (fragment.lookup_flow.scan,)
        assert fragment.topics == tuple(sorted({scan.topic for scan in compiled}))


def test_an_append_query_is_cut_into_appends(planner: Planner) -> None:
    below, above = planner.plan(
        "SELECT price FROM orders JOIN payments USING (oid) JOIN goods USING (pid) WHERE amount > 3"
    ).fragments
    (scan,) = scans(above)
    assert (scan.stream.kind, scan.trusted, scan.latest) == (Kind.APPEND, True, False)
    assert {name for _, name in scan.columns} <= {name for name, _ in below.output.columns}
    assert "where payments.amount > 3" in below.explain()
    assert above.lookup_flow.ingest is Ingest.APPEND


def test_only_what_is_read_travels_between_fragments(planner: Planner) -> None:
    below, above = planner.plan(
        "SELECT o.id, c.note, title FROM accounts AS o JOIN accounts AS c ON o.customer = c.id "
        "LEFT JOIN goods ON c.note = pid"
    ).fragments
    assert [name for name, _ in below.output.columns] == ["o.id", "c.note"]
    assert (below.output.key, below.output.exchanged) == (("o.id",), True)
    assert (above.output.key, above.output.unique) == (("id",), True)
    assert above.lookup_flow.identity == ("o.id", "c.note")
    assert above.lookup_flow.ingest is Ingest.CHANGES


def test_what_a_lookup_writes_is_joined_as_changes(planner: Planner) -> None:
    below, above = planner.plan(
        "SELECT a.id, price, name FROM accounts AS a JOIN goods ON note = pid JOIN profiles AS p ON a.customer = p.id"
    ).fragments
    assert below.lookup_flow.ingest is Ingest.UPSERT
    left, _ = above.dataflow.nodes[-1].operator.ports
    assert left.ingest is Ingest.CHANGES
    assert scans(above)[0].stream.kind is Kind.CHANGELOG
    assert scans(above)[0].stream.primary_key == ("a.id",)


def test_a_view_over_a_mixed_query(planner: Planner) -> None:
    plan = planner.plan("SELECT a.id, price, a.v FROM accounts AS a JOIN goods ON note = pid JOIN ledger USING (id)")
    stream = plan.stream()
    assert (stream.topic, stream.schema.kind, stream.schema.primary_key) == ("q", Kind.CHANGELOG, ("id",))
    assert plan.reads == ("accounts", "goods", "ledger")


def test_entries_of_the_catalog(planner: Planner) -> None:
    text = "SELECT price FROM orders JOIN payments USING (oid) JOIN goods USING (pid)"
    plan = planner.plan(text)
    entries = queries_of(plan, text)
    assert [(entry.name, entry.view, entry.engine, entry.topic) for entry in entries] == [
        ("q.f1", "q", "spark", "q.f1"),
        ("q", "q", "faust", "q"),
    ]
    assert len({entry.fingerprint for entry in entries}) == 2
    assert {entry.plan for entry in entries} == {plan.explain()}


def test_a_fragment_has_one_physical_plan(planner: Planner) -> None:
    with pytest.raises(InternalError, match="faust"):
        _ = planner.plan("SELECT price FROM orders JOIN goods USING (pid)").dataflow
    with pytest.raises(InternalError, match="spark"):
        _ = planner.only("SELECT oid FROM orders").lookup_flow
    with pytest.raises(InternalError, match='no fragment "x"'):
        planner.plan("SELECT oid FROM orders").fragment("x")


def test_into_a_keyed_stream(planner: Planner) -> None:
    planner.create("CREATE MUTABLE STREAM priced (id int, price int) PRIMARY KEY id")
    planner.create("CREATE MUTABLE STREAM by_price (id int, price int) PRIMARY KEY price")
    select = "SELECT a.id, price FROM accounts AS a LEFT JOIN goods ON note = pid"
    made = planner.only(f"CREATE MATERIALIZED VIEW q INTO priced AS {select}").output
    assert (made.topic, made.key, made.exchanged) == ("priced", ("id",), False)
    with pytest.raises(Unsupported, match="overtake"):
        planner.plan(f"CREATE MATERIALIZED VIEW q INTO by_price AS {select}")
    appended = "SELECT oid AS id, price FROM orders LEFT JOIN goods USING (pid)"
    made = planner.only(f"CREATE MATERIALIZED VIEW q INTO by_price AS {appended}").output
    assert (made.key, made.exchanged) == (("price",), False)
    with pytest.raises(Unsupported, match="forever"):
        planner.plan(
            "CREATE MATERIALIZED VIEW q INTO priced AS SELECT oid AS id, qty AS price FROM orders "
            f"JOIN priced {TEMPORAL} ON oid = id"
        )
