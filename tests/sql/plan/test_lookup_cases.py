"""Every conformance case of a lookup plans, or is refused as it should be; so do the statements of the two dialects."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.parse import parse, parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateDictionary, CreateIndex, CreateStream, Explain, Select
from dovetail.sql.syntax.types import display
from tests.conformance.case import Case, Mode
from tests.conformance.load import load
from tests.paths import CASES
from tests.sql.planner import Planner

FEATURES = (
    *("direct-dictionary", "direct-mutable", "dictionary-cache", "dictionary-mutable-cache", "dict-get"),
    *("lookup", "temporal-append", "temporal-retract", "error-temporal"),
)
AGGREGATE = "fl-lookup-agg-then-left"
"""Its left side is aggregated by Spark, so there is a fragment before that of the lookup."""


def as_external(text: str, name: str) -> str:
    """CREATE TABLE as the table of another database."""
    made = parse_one(text)
    assert isinstance(made, CreateStream)
    columns = ", ".join(f"{column.name} {display(column.type, Rules.TIMEPLUS)}" for column in made.columns)
    key = f"PRIMARY KEY ({', '.join(made.primary_key)})"
    return f"CREATE EXTERNAL TABLE {name} ({columns}) {key} SETTINGS type = 'mysql', address = 'db:3306'"


def planner_of(case: Case) -> Planner:
    external = {f"CREATE TABLE {name} ": name for name in case.lookup_tables}
    texts = [
        next((as_external(text, name) for start, name in external.items() if text.startswith(start)), text)
        for text in case.ddl
    ]
    return Planner.of(*texts)


LOOKUPS = [pytest.param(case, id=case.id) for case in load(CASES).cases if case.feature in FEATURES]


@pytest.mark.parametrize("case", LOOKUPS)
def test_a_case_plans(case: Case) -> None:
    planner = planner_of(case)
    if case.expect.mode is Mode.ERROR:
        with pytest.raises(SqlError):
            planner.plan(case.query, **case.settings)
        return
    plan = planner.plan(case.query, **case.settings)
    assert plan.columns == case.expect.columns
    assert plan.updating == (case.expect.mode is Mode.CHANGELOG or "retract" in case.feature or case.id == AGGREGATE)
    assert len(plan.fragments) == 1 + (case.id == AGGREGATE)
    assert plan.fragments[-1].lookup_flow.stages


TIMEPLUS = """
CREATE STREAM orders(id string, product_id string, quantity uint32);
CREATE DICTIONARY mysql_dict(id string, name string)
PRIMARY KEY id
SOURCE(MYSQL(DB 'testdb' TABLE 'products' HOST 'mysql' PORT 3306 USER 'root' PASSWORD 'rootpassword' BG_RECONNECT true))
LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'test_dict_cache' max_hot_key_count 1000));
SELECT * except (_tp_time) FROM orders JOIN mysql_dict AS products
ON orders.product_id = products.id
SETTINGS join_algorithm = 'direct';
CREATE MUTABLE STREAM tp_mutable_cache(id string, name string) PRIMARY KEY id;
CREATE DICTIONARY tp_products_dict_mutable(id string, name string)
PRIMARY KEY id
SOURCE(CLICKHOUSE(HOST 'localhost' PORT 9000 USER 'default' PASSWORD '' DB 'test_db' TABLE 'test_table'))
LAYOUT(MUTABLE_CACHE(DB 'default' STREAM 'tp_mutable_cache' UPDATE_FROM_SOURCE true));
SELECT * except (_tp_time) FROM orders JOIN tp_products_dict_mutable AS products ON orders.product_id = products.id
SETTINGS join_algorithm = 'direct';
CREATE STREAM test_left(k1 uint32, k2 string, v uint32);
CREATE MUTABLE STREAM test_right
(
k1 uint32,
k2 string,
v1 uint32,
v2 string,
v3 string,
index idx1 (v2),
index idx2 (v1, v2) storing (v3)
)
PRIMARY KEY (k1, k2);
-- join by primary key
SELECT * FROM test_left LEFT JOIN test_right ON test_left.k1 = test_right.k1 AND test_left.k2 = test_right.k2
SETTINGS join_algorithm = 'direct';
-- join by primary key range
SELECT * FROM test_left LEFT JOIN test_right ON test_left.k1 = test_right.k1
SETTINGS join_algorithm = 'direct';
-- join by second index
SELECT * FROM test_left LEFT JOIN test_right ON test_left.v = test_right.v1
SETTINGS join_algorithm = 'direct';
"""
RISINGWAVE = """
CREATE SOURCE sales (transaction_id INT, product_id INT, quantity INT, sale_date DATE, process_time TIMESTAMP);
CREATE TABLE products (id INT PRIMARY KEY, product_name VARCHAR, price INT);
CREATE SOURCE stream (id1 INT, a1 INT);
CREATE TABLE version (id2 INT PRIMARY KEY, a2 INT);
SELECT transaction_id, product_id, quantity, sale_date, product_name, price
FROM sales
JOIN products FOR SYSTEM_TIME AS OF PROCTIME()
ON product_id = id;
EXPLAIN CREATE MATERIALIZED VIEW mv1 AS
select id1, a1, id2, a2 from stream, version FOR SYSTEM_TIME AS OF PROCTIME() where id1 = id2 AND a2 < 10;
"""


@pytest.mark.parametrize(
    ("script", "served"),
    [
        (TIMEPLUS, ["primary key", "primary key", "primary key", "primary key prefix", "idx2"]),
        (RISINGWAVE, ["primary key", "primary key"]),
    ],
)
def test_the_statements_of_a_dialect(script: str, served: list[str]) -> None:
    planner = Planner()
    found = []
    for statement in parse(script):
        if isinstance(statement, CreateStream | CreateIndex | CreateDictionary):
            planner.create(statement.text)
            continue
        assert isinstance(statement, Select | Explain)
        query = statement.statement.text if isinstance(statement, Explain) else statement.text
        (stage,) = planner.only(query).lookup_flow.stages
        found.append(stage.join.access.index)
    assert found == served
