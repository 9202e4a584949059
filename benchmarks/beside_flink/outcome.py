"""What an output topic adds up to, beside the answer."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.json

from benchmarks.beside_flink.workloads import Sink, Workload
from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.reader import TopicReader

_DELTA = "_tp_delta"
_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
_UNEQUAL = """
SELECT count(*) FROM (
    SELECT {columns}, sum(delta) AS delta FROM (SELECT * FROM answer UNION ALL SELECT * FROM written)
    GROUP BY ALL HAVING sum(delta) <> 0
)
"""
_LAST = """
SELECT value FROM records QUALIFY row_number() OVER (PARTITION BY key ORDER BY "offset" DESC) = 1
"""


def wrong_rows(workload: Workload, answer: pa.Table, brokers: str, output: str, *, by_flink: bool) -> int:
    """In how many rows the topic and the answer differ: 0 where it is right."""
    written = _written(workload, brokers, output, by_flink=by_flink)
    types = pa.schema([(name, _TYPES[kind]) for name, kind in workload.columns.items()])
    expected = answer.select(types.names).cast(types)
    names = [f"round({name}, 4) AS {name}" if kind == "double" else name for name, kind in workload.columns.items()]
    with duckdb.connect() as connection:
        connection.register("answer_rows", expected)
        connection.register("written_rows", written)
        connection.sql(f"CREATE VIEW answer AS SELECT {', '.join(names)}, 1 AS delta FROM answer_rows")
        connection.sql(f"CREATE VIEW written AS SELECT {', '.join(names)}, -{_DELTA} AS delta FROM written_rows")
        [[found]] = connection.sql(_UNEQUAL.format(columns=", ".join(workload.columns))).fetchall()
    return int(found)


def _written(workload: Workload, brokers: str, output: str, *, by_flink: bool) -> pa.Table:
    """The rows of the topic, each with how often it was added (1) or taken back (-1)."""
    row = [(name, _TYPES[kind]) for name, kind in workload.columns.items()]
    if by_flink and workload.sink is Sink.UPSERTED:
        return _counted(_parsed(_last_of_each_key(brokers, output), pa.schema(row)), 1)
    if by_flink and workload.sink is Sink.CHANGED:
        image = pa.struct(row)
        changes = _parsed(_values(brokers, output), pa.schema([("before", image), ("after", image)]))
        images = ((changes.column("before"), -1), (changes.column("after"), 1))
        return pa.concat_tables(_counted(pa.Table.from_struct_array(one.drop_null()), delta) for one, delta in images)
    rows = _parsed(_values(brokers, output), pa.schema([*row, (_DELTA, pa.int64())]))
    return rows.set_column(len(row), _DELTA, rows.column(_DELTA).fill_null(1))


def _counted(rows: pa.Table, delta: int) -> pa.Table:
    return rows.append_column(_DELTA, pa.repeat(pa.scalar(delta, pa.int64()), rows.num_rows))


def _records(brokers: str, output: str) -> pa.Table:
    address = BrokerAddress(brokers)
    ends = topics.end_offsets(clients.admin(address), [output])[output]
    found = list(TopicReader(address, output).until(ends))
    return pa.concat_tables(found) if found else pa.table({"key": [], "value": []})


def _values(brokers: str, output: str) -> pa.ChunkedArray:
    return _records(brokers, output).column("value").drop_null()


def _last_of_each_key(brokers: str, output: str) -> pa.ChunkedArray:
    records = _records(brokers, output).select(["key", "value", "offset"])
    with duckdb.connect() as connection:
        connection.register("records", records)
        return connection.sql(_LAST).to_arrow_table().column("value").drop_null()


def _parsed(values: pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    if len(values) == 0:
        return schema.empty_table()
    lines = b"\n".join(values.to_pylist())
    reading = pyarrow.json.ReadOptions(block_size=len(lines) + 1)
    parsing = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return pyarrow.json.read_json(pa.py_buffer(lines), reading, parsing)
