"""Parts of the record as columns of a plan: only what a query reads of them costs something."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import StreamSchema
from dovetail.services.session.contents import columns_read
from dovetail.sql.planner import stream_of
from tests.sql.planner import Planner

DDL = (
    "CREATE STREAM s (n int, _tp_message_key string, _tp_message_headers map(string, string), _tp_shard int32)",
    "CREATE STREAM plain (n int)",
    "CREATE MUTABLE STREAM m (k int, v int, _tp_append_time datetime64(3)) PRIMARY KEY k",
    "CREATE TABLE t (n int, PRIMARY KEY (n)) INCLUDE header 'trace' AS trace INCLUDE offset AS o",
    "CREATE STREAM target (n int, _tp_shard int32)",
)


def planner() -> Planner:
    return Planner.of(*DDL)


def test_only_what_is_read_is_decoded() -> None:
    flow = planner().only("SELECT n FROM s WHERE _tp_shard = 1").dataflow
    assert [scan.columns for scan in flow.scans] == [("n", "_tp_shard")]
    assert flow.headed == frozenset()
    assert planner().only("SELECT _tp_message_headers['a'] AS a FROM s").dataflow.headed == {"s"}
    assert planner().only("SELECT trace FROM t").dataflow.headed == {"t"}
    assert planner().only("SELECT o FROM t").dataflow.headed == frozenset()


def test_a_lookup_reads_headers_only_where_they_are_needed() -> None:
    direct = "FROM s JOIN m ON s.n = m.k SETTINGS join_algorithm = 'direct'"
    assert not planner().only(f"SELECT n, _tp_message_key, v, _tp_append_time {direct}").lookup_flow.scan.headed
    assert planner().only(f"SELECT n, _tp_message_headers, v {direct}").lookup_flow.scan.headed


def test_a_query_that_reads_none_has_the_plan_of_a_stream_without() -> None:
    query = "SELECT n, count() AS c FROM s GROUP BY n"
    narrow = Planner.of("CREATE STREAM s (n int)").plan(query)
    assert planner().plan(query).fingerprint == narrow.fingerprint


def test_the_part_counts_and_not_the_name_alone() -> None:
    def fingerprint(included: str) -> object:
        return Planner.of(f"CREATE TABLE t (n int) {included}").plan("SELECT n, x FROM t").fingerprint

    forms = {
        fingerprint(one)
        for one in (
            "INCLUDE offset AS x",
            "INCLUDE partition AS x",
            "INCLUDE key AS x",
            "INCLUDE header AS x",
            "INCLUDE header 'a' AS x",
            "INCLUDE header 'b' AS x",
        )
    }
    assert len(forms) == 6


def test_star_has_them_as_they_are_declared() -> None:
    assert planner().plan("SELECT * FROM t").columns == ("n", "trace", "o")
    assert planner().plan("SELECT * FROM table(t)").columns == ("n", "trace", "o")
    assert planner().plan("SELECT * EXCEPT (_tp_time) FROM target").columns == ("n", "_tp_shard")


def test_a_view_does_not_write_them() -> None:
    with pytest.raises(SqlError, match="the partition of the record, which is read and not written"):
        planner().plan("CREATE MATERIALIZED VIEW v INTO target AS SELECT n, _tp_shard FROM s")
    planner().plan("CREATE MATERIALIZED VIEW v INTO target AS SELECT n FROM s")


def test_a_name_that_is_not_declared_is_refused_with_its_declaration() -> None:
    with pytest.raises(SqlError) as refused:
        planner().plan("SELECT n, _tp_message_headers FROM plain")
    assert "ALTER STREAM .. ADD COLUMN _tp_message_headers map(string, string)" in str(refused.value)


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("SELECT n, _tp_message_key FROM table(s)", False),
        ("SELECT * EXCEPT (_tp_message_headers) FROM table(s)", False),
        ("SELECT count() FROM table(s)", False),
        ("SELECT * FROM table(s)", True),
        ("SELECT n FROM table(s) WHERE _tp_message_headers['a'] = 'x'", True),
        ("SELECT n FROM (SELECT * FROM table(s)) AS x", True),
    ],
)
def test_a_bounded_query_reads_headers_only_where_it_names_them(query: str, read: bool) -> None:
    plan = planner().plan(query)
    assert plan.snapshot is not None
    schema = plan_schema()
    columns = columns_read(schema, plan.snapshot.mentions)
    assert ("_tp_message_headers" in columns) == read == schema.headed(columns)
    typed = pa.schema([(name, schema.types[name]) for name in columns])
    assert plan.snapshot.run({"s": typed.empty_table()}).num_rows in (0, 1)


def plan_schema() -> StreamSchema:
    return stream_of(planner().catalog, "s").schema
