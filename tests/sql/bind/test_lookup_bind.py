"""Right sides that are looked up: which key serves, what is left as a condition, what is refused."""

from __future__ import annotations

import pickle
import re
from decimal import Decimal

import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.joins.dataflow.lookup import LookupFlow, LookupStage, LookupTarget
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.sql.system_tables import DICTIONARIES
from tests.sql.lookup_world import DDL, TEMPORAL
from tests.sql.planner import Planner

DIRECT = "SETTINGS join_algorithm = 'direct'"


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner.of(*DDL)


def flow_of(planner: Planner, query: str) -> LookupFlow:
    return planner.only(query).lookup_flow


def stage_of(planner: Planner, query: str) -> LookupStage:
    (stage,) = flow_of(planner, query).stages
    return stage


@pytest.mark.parametrize(
    ("query", "target", "by", "index"),
    [
        ("SELECT price FROM orders JOIN goods ON orders.pid = goods.pid", "dictionary", ("pid",), "primary key"),
        ("SELECT price FROM orders JOIN goods USING (pid)", "dictionary", ("pid",), "primary key"),
        ("SELECT price FROM orders, goods WHERE orders.pid = goods.pid", "dictionary", ("pid",), "primary key"),
        ("SELECT lat FROM orders JOIN places ON pid = b AND oid = a", "dictionary", ("a", "b"), "primary key"),
        ("SELECT lat FROM orders JOIN places ON pid = b AND a = 3", "dictionary", ("a", "b"), "primary key"),
        ("SELECT n FROM orders JOIN stock ON oid = id", "external", ("id",), "primary key"),
        ("SELECT n FROM orders JOIN stock ON pid = code", "external", ("code",), "equality"),
        ("SELECT n FROM orders JOIN stock ON pid = code AND oid = id", "external", ("id", "code"), "equality"),
        (f"SELECT v FROM orders JOIN accounts ON oid = id {DIRECT}", "stream", ("id",), "primary key"),
        (f"SELECT v FROM orders AS o JOIN accounts AS a ON o.customer = a.customer {DIRECT}", "stream", ("customer",),
         "by_customer"),
        (f"SELECT v FROM orders AS o JOIN accounts AS a ON o.customer = a.customer AND qty = v {DIRECT}", "stream",
         ("customer", "v"), "by_customer"),
        (f"SELECT rate FROM orders JOIN rates ON pid = base {DIRECT}", "stream", ("base",), "primary key prefix"),
        (f"SELECT rate FROM orders JOIN rates ON pid = quote {DIRECT}", "stream", ("quote",), "by_quote"),
        (f"SELECT rate FROM orders JOIN rates ON pid = quote AND 'EUR' = base {DIRECT}", "stream", ("base", "quote"),
         "primary key"),
        (f"SELECT price FROM orders JOIN cheap ON oid = id {DIRECT}", "stream", ("id",), "primary key"),
        (f"SELECT price FROM clicks JOIN products {TEMPORAL} ON product_id = id", "stream", ("id",), "primary key"),
        (f"SELECT price FROM clicks AS c JOIN products {TEMPORAL} AS p ON c.code = p.code", "stream", ("code",),
         "products_by_code"),
        (f"SELECT price FROM clicks AS c JOIN products AS p {TEMPORAL} ON c.code = p.code", "stream", ("code",),
         "products_by_code"),
        (f"SELECT price FROM clicks AS c JOIN products_by_code {TEMPORAL} AS p ON c.code = p.code", "stream",
         ("code",), "products_by_code"),
        (f"SELECT price FROM clicks JOIN cheap {TEMPORAL} ON product_id = id", "stream", ("id",), "primary key"),
        (f"SELECT name FROM orders JOIN profiles {TEMPORAL} ON oid = id", "stream", ("id",), "primary key"),
        (f"SELECT price FROM clicks AS c JOIN goods {TEMPORAL} ON c.code = pid", "dictionary", ("pid",), "primary key"),
        (f"SELECT n FROM clicks AS c JOIN stock {TEMPORAL} AS s ON c.code = s.code", "external", ("code",), "equality"),
    ],
)  # fmt: skip
def test_what_serves(planner: Planner, query: str, target: str, by: tuple[str, ...], index: str) -> None:
    access = stage_of(planner, query).join.access
    assert (access.target, access.by, access.index) == (LookupTarget(target), by, index)


def test_a_row_of_an_access_holds_the_declared_columns_in_order(planner: Planner) -> None:
    access = stage_of(planner, "SELECT price FROM orders JOIN goods USING (pid)").join.access
    assert access.columns == ("pid", "title", "price")
    assert access.types == (pa.string(), pa.string(), pa.int32())
    access = stage_of(planner, f"SELECT v FROM orders JOIN accounts ON oid = id {DIRECT}").join.access
    assert access.columns == ("id", "customer", "v", "note")


def test_the_time_of_a_stream_is_its_last_column_where_it_is_read(planner: Planner) -> None:
    access = stage_of(planner, f"SELECT * FROM orders JOIN accounts ON oid = id {DIRECT}").join.access
    assert access.columns == ("id", "customer", "v", "note", "_tp_time")
    assert access.types[-1] == pa.timestamp("ms", tz="UTC")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (f"SELECT * FROM orders LEFT JOIN accounts ON oid = id {DIRECT}",
         ("oid", "pid", "customer", "qty", "_tp_time", "id", "accounts.customer", "v", "note", "accounts._tp_time")),
        ("SELECT * EXCEPT (_tp_time) FROM orders AS o JOIN goods AS g ON o.pid = g.pid",
         ("oid", "pid", "customer", "qty", "g.pid", "title", "price")),
        ("SELECT * EXCEPT (_tp_time) FROM orders JOIN goods USING (pid)",
         ("oid", "pid", "customer", "qty", "title", "price")),
        ("SELECT * EXCEPT (_tp_time) FROM orders NATURAL JOIN goods",
         ("oid", "pid", "customer", "qty", "title", "price")),
        (f"SELECT * FROM clicks JOIN products {TEMPORAL} ON product_id = id",
         ("product_id", "code", "id", "products.code", "price")),
    ],
)  # fmt: skip
def test_names(planner: Planner, query: str, columns: tuple[str, ...]) -> None:
    assert planner.plan(query).columns == columns


def test_what_is_no_key_is_a_condition(planner: Planner) -> None:
    line = planner.plan("SELECT price FROM orders AS o LEFT JOIN goods AS g ON o.pid = g.pid AND price > qty").explain()
    assert "and g.price > o.qty" in line
    query = "SELECT price FROM orders AS o, goods AS g WHERE o.pid = g.pid AND price > 3 AND qty > 1"
    text = planner.plan(query).explain()
    assert "and g.price > 3" in text
    assert "where o.qty > 1  from=latest" in text


def test_a_condition_on_what_a_left_join_pads_stays_above(planner: Planner) -> None:
    text = planner.plan("SELECT price FROM orders AS o LEFT JOIN goods AS g ON o.pid = g.pid WHERE price > 3").explain()
    assert "Map  where g.price > 3" in text


# -- keys of another type --


def keys_of(planner: Planner, query: str, **columns: pa.Array) -> list[object]:
    """What is asked for, for rows of ``orders`` with these columns."""
    flow = flow_of(planner, query)
    deltas = pa.array([1] * len(next(iter(columns.values()))), pa.int64())
    decoded = pa.table({**columns, DELTA: deltas})
    for step in flow.scan.transforms:
        decoded = step(decoded)
    (key,) = flow.stages[0].join.keys
    return list(decoded.column(key).to_pylist())


def test_a_value_that_the_key_cannot_hold_matches_nothing(planner: Planner) -> None:
    query = f"SELECT v FROM orders AS o JOIN accounts AS a ON o.customer = a.id {DIRECT}"
    assert keys_of(planner, query, customer=pa.array([7, 2**31, None], pa.int64())) == [7, None, None]
    query = f"SELECT a.v FROM payments JOIN accounts AS a ON amount = a.id {DIRECT}"
    assert keys_of(planner, query, amount=pa.array([2.0, 2.5, 1e300])) == [2, None, None]


def test_a_key_is_computed_in_the_type_of_the_column(planner: Planner) -> None:
    query = f"SELECT v FROM orders AS o JOIN accounts AS a ON o.qty + 1 = a.id {DIRECT}"
    assert keys_of(planner, query, qty=pa.array([1, 2], pa.int32())) == [2, 3]
    query = "SELECT price FROM orders AS o JOIN goods AS g ON upper(o.pid) = g.pid"
    assert keys_of(planner, query, pid=pa.array(["a"])) == ["A"]


# -- padding --


def test_padding(planner: Planner) -> None:
    query = "SELECT title, price FROM orders LEFT JOIN goods USING (pid)"
    join = stage_of(planner, query).join
    assert (join.kind, join.padding) == (JoinKind.LEFT, (None, None))
    assert stage_of(planner, query + " SETTINGS join_use_nulls = 0").join.padding == ("", 0)


# -- what is kept --


@pytest.mark.parametrize(
    ("query", "ingest", "identity"),
    [
        ("SELECT price FROM orders JOIN goods USING (pid)", Ingest.APPEND, ()),
        ("SELECT price FROM accounts AS a JOIN goods AS g ON a.note = g.pid", Ingest.UPSERT, ("a.id",)),
        ("SELECT price FROM accounts AS a JOIN goods AS g ON a.note = g.pid WHERE v > 3", Ingest.UPSERT, ("a.id",)),
        ("SELECT n FROM ledger AS l JOIN stock ON l.v = stock.id", Ingest.CHANGELOG_KV, ("l.id",)),
        (f"SELECT price FROM bag JOIN products {TEMPORAL} ON k = id", Ingest.CHANGELOG, ("bag.k",)),
        (f"SELECT a.price FROM cheap AS a JOIN products {TEMPORAL} AS p ON a.id = p.id", Ingest.CHANGES,
         ("a.id", "a.price")),
    ],
)  # fmt: skip
def test_how_the_left_is_read(planner: Planner, query: str, ingest: Ingest, identity: tuple[str, ...]) -> None:
    flow = flow_of(planner, query)
    assert (flow.ingest, flow.identity) == (ingest, identity)
    assert flow.sink.updating == (ingest is not Ingest.APPEND)
    assert not flow.sink.exchanged


@pytest.mark.parametrize(
    ("query", "key", "unique"),
    [
        (f"SELECT s.id, price FROM sales AS s JOIN products {TEMPORAL} AS p ON product_id = p.id", ("id",), True),
        (f"SELECT price FROM sales AS s JOIN products {TEMPORAL} AS p ON product_id = p.id", ("__key0",), False),
        (
            f"SELECT s.id, p.id AS pid FROM sales AS s JOIN products {TEMPORAL} AS p ON p.code = 'a'",
            ("id", "pid"),
            True,
        ),
        (f"SELECT v, price FROM bag JOIN products {TEMPORAL} ON k = id", ("v", "price"), False),
        ("SELECT price FROM orders JOIN goods USING (pid)", (), False),
    ],
)
def test_the_key_of_the_output(planner: Planner, query: str, key: tuple[str, ...], unique: bool) -> None:
    made = planner.only(query).output
    assert (made.key, made.unique) == (key, unique)


def test_a_flow_pickles(planner: Planner) -> None:
    flow = flow_of(planner, "SELECT dict_get('goods', 'price', pid) AS p, n FROM orders JOIN stock ON oid = id")
    assert pickle.loads(pickle.dumps(flow)) == flow
    assert len(dict.fromkeys(flow.accesses, 1)) == 2


def test_what_a_query_uses(planner: Planner) -> None:
    query = f"SELECT price FROM clicks AS c JOIN products {TEMPORAL} AS p ON c.code = p.code"
    assert planner.plan(query).reads == ("clicks", "products", "products_by_code")
    assert planner.plan("SELECT price FROM orders JOIN goods USING (pid)").reads == ("orders", "goods")


# -- refusals --


@pytest.mark.parametrize(
    ("query", "what", "fix"),
    [
        ("SELECT 1 FROM orders RIGHT JOIN goods USING (pid)", "RIGHT JOIN", "LEFT JOIN"),
        (f"SELECT 1 FROM clicks FULL JOIN products {TEMPORAL} ON product_id = id", "FULL JOIN", "LEFT JOIN"),
        (f"SELECT 1 FROM orders AS o RIGHT JOIN accounts AS a ON oid = id {DIRECT}", "RIGHT JOIN", "LEFT JOIN"),
        ("SELECT 1 FROM orders ASOF JOIN goods ON orders.pid = goods.pid AND qty > price", "ASOF", "leave ASOF"),
        ("SELECT 1 FROM orders JOIN goods ON orders.pid = goods.title", "asks by title", "join by goods.pid"),
        ("SELECT 1 FROM orders JOIN places ON pid = b", r"its primary key \(a, b\)", "places.a and places.b"),
        ("SELECT 1 FROM orders, goods", "no equality with a column", "join by goods.pid"),
        ("SELECT 1 FROM orders JOIN stock ON qty > n", "no equality", "add an equality"),
        (f"SELECT 1 FROM clicks JOIN products {TEMPORAL} ON product_id = price", r"primary key \(id\) or an index",
         r"CREATE INDEX products_by_price ON products \(price\), or join by products.id"),
        (f"SELECT 1 FROM orders JOIN rates {TEMPORAL} ON pid = base", r"primary key \(base, quote\)",
         r"ON rates \(base\)"),
        (f"SELECT 1 FROM orders JOIN rates ON qty = rate {DIRECT}", "a prefix of it", r"rates_by_rate ON rates"),
        (f"SELECT 1 FROM orders JOIN bag {TEMPORAL} ON oid = k", "it has none", r"CREATE INDEX bag_by_k"),
        (f"SELECT 1 FROM clicks JOIN products_by_code {TEMPORAL} ON product_id = id", "products_by_code", "INDEX"),
        ("SELECT 1 FROM orders JOIN goods ON oid = goods.pid", "cannot be compared with pid", r"to_string\(oid\)"),
        ("SELECT 1 FROM goods JOIN orders ON orders.pid = goods.pid", "left of a join", "FROM stream JOIN goods"),
        ("SELECT 1 FROM orders AS o JOIN payments AS p ON o.oid = p.oid " + DIRECT, "join_algorithm", "direct, hash"),
        ("SELECT 1 FROM orders AS o JOIN profiles AS p ON o.oid = p.id " + DIRECT, "join_algorithm", "direct, hash"),
        (f"SELECT 1 FROM orders AS o JOIN payments {TEMPORAL} AS p ON o.oid = p.oid", "append-only", "PRIMARY KEY"),
        (f"SELECT 1 FROM orders AS o JOIN clicks {TEMPORAL} AS p ON o.oid = product_id", "append-only", "TABLE"),
        (f"SELECT 1 FROM clicks JOIN named {TEMPORAL} ON product_id = id", "not materialized", "MATERIALIZED"),
        ("SELECT 1 FROM orders JOIN products FOR SYSTEM_TIME AS OF orders._tp_time ON oid = id", "has no WATERMARK",
         "WATERMARK FOR _tp_time"),
        ("SELECT 1 FROM orders JOIN goods FOR SYSTEM_TIME AS OF orders._tp_time USING (pid)", "before now", "PROCTIME"),
        ("SELECT 1 FROM orders LATEST JOIN goods USING (pid)", "LATEST", "leave LATEST out"),
        ("SELECT 1 FROM orders RIGHT ANTI JOIN goods USING (pid)", "RIGHT", "LEFT JOIN"),
        (f"SELECT 1 FROM products {TEMPORAL}", "right side of a join", "JOIN t FOR SYSTEM_TIME"),
        (f"SELECT 1 FROM orders JOIN table(products) {TEMPORAL} ON oid = id", "right side of a join", "PROCTIME"),
        ("SELECT 1 FROM changelog(products_by_code, code)", "is an index", "products, k"),
        ("SELECT 1 FROM orders JOIN table(goods) AS g ON orders.pid = g.pid", "as a whole", "JOIN goods itself"),
        ("SELECT 1 FROM orders JOIN (SELECT * FROM goods) AS g USING (pid)", "as a whole", "JOIN goods itself"),
        ("SELECT 1 FROM orders JOIN system.dictionaries AS d ON pid = d.name", "emits no rows", "of its own"),
    ],
)  # fmt: skip
def test_refused(planner: Planner, query: str, what: str, fix: str) -> None:
    with pytest.raises(SqlError, match=what) as refused:
        planner.plan(query)
    assert re.search(fix, refused.value.fix), refused.value.fix
    assert "line 1" in refused.value.where or "in FROM" in refused.value.where


def test_direct_where_it_can_be(planner: Planner) -> None:
    query = "SELECT v FROM orders AS o JOIN payments AS p ON o.oid = p.oid JOIN accounts AS a ON o.oid = a.id"
    plan = planner.plan(query + " SETTINGS join_algorithm = 'direct, hash'")
    assert [fragment.engine for fragment in plan.fragments] == ["spark", "faust"]
    assert [fragment.engine for fragment in planner.plan(query).fragments] == ["spark"]


# -- dict_get --


def test_dict_get_is_a_left_lookup_padded_with_the_defaults_of_the_attributes(planner: Planner) -> None:
    join = stage_of(planner, "SELECT oid, dict_get('goods', 'title', pid) AS t FROM orders").join
    assert (join.kind, join.padding) == (JoinKind.LEFT, ("none",))
    join = stage_of(planner, "SELECT dict_get('places', ('city', 'lat'), (oid, pid)) AS t FROM orders").join
    assert join.access.by == ("a", "b")
    assert join.padding == ("", 0.0)


def test_one_lookup_for_each_dictionary_and_key(planner: Planner) -> None:
    query = (
        "SELECT dict_get('goods', 'title', pid) AS t, dict_get('goods', 'price', pid) AS p, "
        "dict_has('goods', pid) AS h FROM orders WHERE dict_get('goods', 'price', pid) > 3"
    )
    flow = flow_of(planner, query)
    assert len(flow.stages) == 1
    assert flow.stages[0].join.columns == (("goods.pid", "pid"), ("goods.title", "title"), ("goods.price", "price"))
    query = "SELECT dict_get('goods', 'title', pid) AS t, dict_get('goods', 'title', upper(pid)) AS u FROM orders"
    assert len(flow_of(planner, query).stages) == 2


def test_the_names_and_types_of_dictionary_functions(planner: Planner) -> None:
    query = (
        "SELECT dict_get('goods', 'price', pid), dict_get('goods', ('title', 'price'), pid) AS both, "
        "dict_get_or_null('goods', 'price', pid) AS n, dict_get_or_default('goods', 'price', pid, -1) AS d, "
        "dictHas('goods', pid) AS has FROM orders"
    )
    plan = planner.plan(query)
    assert plan.columns == ("dict_get('goods', 'price', pid)", "both", "n", "d", "has")
    struct = pa.struct([("title", pa.string()), ("price", pa.int32())])
    assert plan.schema.types == [pa.int32(), struct, pa.int32(), pa.int32(), pa.uint8()]


def test_what_dictionary_functions_compute(planner: Planner) -> None:
    query = (
        "SELECT dict_get('goods', ('title', 'price'), pid) AS both, dict_get_or_null('goods', 'price', pid) AS n, "
        "dict_get_or_default('goods', ('title', 'price'), pid, ('x', -1)) AS d, "
        "dict_has('goods', pid) AS has FROM orders"
    )
    stage = stage_of(planner, query)
    joined = pa.table(
        {
            "goods.pid": ["a", None],
            "goods.title": ["pen", "none"],
            "goods.price": pa.array([5, 0], pa.int32()),
            DELTA: pa.array([1, 1], pa.int64()),
        }
    )
    assert tuple(name for name, _ in stage.join.columns) == ("goods.pid", "goods.title", "goods.price")
    for step in stage.transforms:
        joined = step(joined)
    pen, none, other = ({"title": t, "price": p} for t, p in (("pen", 5), ("none", 0), ("x", -1)))
    assert joined.drop_columns(DELTA).to_pylist() == [
        {"both": pen, "n": 5, "d": pen, "has": 1},
        {"both": none, "n": None, "d": other, "has": 0},
    ]


def test_dictionary_functions_within_one_another(planner: Planner) -> None:
    query = "SELECT dict_get('goods', 'price', dict_get('goods', 'title', pid)) AS p FROM orders"
    flow = flow_of(planner, query)
    assert [stage.join.keys for stage in flow.stages] == [("orders.pid",), ("goods.title",)]


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT dict_get('goods', 'titel', pid) AS t FROM orders", 'no attribute "titel"'),
        ("SELECT dict_get('goods', 'pid', pid) AS t FROM orders", 'no attribute "pid"'),
        ("SELECT dict_get('good', 'title', pid) AS t FROM orders", 'no .* "good"'),
        ("SELECT dict_get('accounts', 'v', oid) AS t FROM orders", "is no dictionary"),
        ("SELECT dict_get('places', 'city', oid) AS t FROM orders", r"\(a, b\), and dict_get is given 1"),
        ("SELECT dict_get('goods', 'title', oid) AS t FROM orders", "compares int32 with string"),
        ("SELECT dict_get('goods', pid) AS t FROM orders", "takes 3 arguments"),
        ("SELECT dict_get(pid, 'title', pid) AS t FROM orders", "as texts"),
        (
            "SELECT o.oid FROM orders AS o JOIN payments AS p ON o.oid = p.oid AND dict_has('goods', pid)",
            "SELECT and WHERE",
        ),
        ("SELECT dict_has('goods', pid) AS t FROM table(orders)", "for streaming queries"),
    ],
)
def test_dictionary_functions_refused(planner: Planner, query: str, what: str) -> None:
    with pytest.raises(SqlError, match=what):
        planner.plan(query)


# -- dictionaries alone --


def test_a_dictionary_alone_is_bounded(planner: Planner) -> None:
    plan = planner.plan("SELECT * FROM goods")
    assert plan.snapshot is not None
    assert (plan.columns, plan.reads, plan.fragments) == (("pid", "title", "price"), ("goods",), ())
    rows = pa.table({"pid": ["a"], "title": ["pen"], "price": pa.array([3], pa.int32())})
    assert plan.snapshot.run({"goods": rows}).to_pylist() == rows.to_pylist()
    assert planner.plan("SELECT count() FROM table(stock)").bounded
    assert planner.plan("SELECT title, v FROM table(accounts) AS a JOIN goods ON a.note = goods.pid").bounded


def test_system_dictionaries(planner: Planner) -> None:
    plan = planner.plan("SELECT name, hit_rate FROM system.dictionaries WHERE status = 'LOADED'")
    assert plan.snapshot is not None
    assert (plan.snapshot.relations, plan.reads) == (("system.dictionaries",), ())
    none = {"system.dictionaries": DICTIONARIES.empty_table()}
    assert plan.snapshot.run(none).column_names == ["name", "hit_rate"]
    with pytest.raises(UnknownName, match="dictionary"):
        planner.plan("SELECT * FROM system.dictionary")


def test_decimals_compare_by_value() -> None:
    planner = Planner.of(
        "CREATE STREAM orders (d decimal(10, 3))",
        "CREATE EXTERNAL TABLE t (k decimal(8, 2), v int) PRIMARY KEY k SETTINGS type = 'mysql', address = 'h:1'",
    )
    values = pa.array([Decimal("1.500"), Decimal("1.505")], pa.decimal128(10, 3))
    assert keys_of(planner, "SELECT v FROM orders JOIN t ON d = k", d=values) == [Decimal("1.50"), None]
