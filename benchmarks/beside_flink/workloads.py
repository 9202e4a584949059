"""The joins: their inputs, the query in each engine's SQL, and the answer in DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import duckdb
import numpy as np
import pyarrow as pa

PIECE = 50_000
_NAMES = 1_000
_FIRST_MS = 1_700_000_000_000
_DELETED = 0.02
"""Of the records of an updating input."""
_COLUMNS = "k int64, name string, price float64, qty int32"
_PAIR = "l.k AS k, l.name AS name, l.price AS price, r.name AS name2, r.price AS price2"
_UNBOUNDED = "SETTINGS seek_to = 'earliest', join_max_buffered_bytes = 10000000000"


@dataclass(frozen=True)
class Input:
    """``rows`` records in a topic of its own, over ``keys`` values of ``k``; upserts, where there are ``ids``."""

    name: str
    rows: int
    keys: int
    seed: int
    ids: int = 0

    def pieces(self) -> Iterator[tuple[pa.Table, pa.Array, pa.Array]]:
        """Rows in the order of writing; their keys, or nulls; and which of them say that their id is gone."""
        random = np.random.default_rng(self.seed)
        for start in range(0, self.rows, PIECE):
            count = min(PIECE, self.rows - start)
            columns = {
                "k": random.integers(0, self.keys, count),
                "name": np.char.add("name-", random.integers(0, _NAMES, count).astype(str)).astype(object),
                "price": np.round(random.random(count) * 100, 4),
                "qty": random.integers(0, 100, count).astype(np.int32),
                "ts": _FIRST_MS + np.arange(start, start + count),
            }
            ids, gone = pa.nulls(count, pa.string()), np.zeros(count, np.bool_)
            if self.ids:
                ids = pa.array(random.integers(0, self.ids, count).astype(str).astype(object), pa.string())
                gone = random.random(count) < _DELETED
            yield pa.table({"id": ids, **columns}), ids, pa.array(gone)

    def content(self) -> pa.Table:
        """The rows; of an updating input the last of each id that is not gone."""
        whole = pa.concat_tables(
            rows.append_column("gone", gone).append_column("place", pa.array(np.arange(rows.num_rows) + number * PIECE))
            for number, (rows, _, gone) in enumerate(self.pieces())
        )
        if not self.ids:
            return whole
        last = "SELECT * FROM whole QUALIFY row_number() OVER (PARTITION BY id ORDER BY place DESC) = 1"
        with duckdb.connect() as connection:
            connection.register("whole", whole)
            return connection.sql(f"SELECT * FROM ({last}) WHERE NOT gone").to_arrow_table()


class Sink(Enum):
    """How Flink writes the answer, by the name of its format."""

    APPENDED = "json"
    CHANGED = "debezium-json"
    UPSERTED = "upsert"


@dataclass(frozen=True)
class Workload:
    """columns   of the answer, with their types in Flink
    dovetail  the query of the view
    flink     the query of the INSERT
    answer    in DuckDB, over the contents of the inputs
    key       of an answer that is UPSERTED
    """

    name: str
    inputs: tuple[Input, ...]
    columns: Mapping[str, str]
    dovetail: str
    flink: str
    answer: str
    sink: Sink = Sink.APPENDED
    key: str = ""
    timed: bool = False

    @property
    def records(self) -> int:
        return sum(one.rows for one in self.inputs)

    def streams(self) -> list[str]:
        """The inputs as Dovetail declares them."""
        return [self._stream(one) for one in self.inputs]

    def _stream(self, one: Input) -> str:
        if one.ids:
            return f"CREATE MUTABLE STREAM {one.name} (id string, {_COLUMNS}, ts int64) PRIMARY KEY id"
        if self.timed:
            return f"CREATE STREAM {one.name} ({_COLUMNS}, ts datetime64(3)) SETTINGS event_time_column = 'ts'"
        return f"CREATE STREAM {one.name} ({_COLUMNS}, ts int64)"

    def found(self) -> pa.Table:
        """The answer."""
        with duckdb.connect() as connection:
            for one in self.inputs:
                connection.register(one.name, one.content())
            return connection.sql(self.answer).to_arrow_table()


def _alike(
    name: str,
    inputs: tuple[Input, ...],
    columns: Mapping[str, str],
    query: str,
    sink: Sink,
    key: str = "",
    settings: str = "",
) -> Workload:
    """One whose query is the same text in all three."""
    select = f"SELECT {query}"
    return Workload(name, inputs, columns, f"{select} {settings}", select, select, sink, key)


def workloads(rows: int) -> list[Workload]:
    """``rows`` of the largest input; keys grow with it, so that an input row has as many partners at any size."""
    keys, half = max(rows * 2 // 5, 1), max(rows // 2, 1)
    pair = {"k": "bigint", "name": "string", "price": "double", "name2": "string", "price2": "double"}
    lefts, rights = Input("lefts", rows, keys, 1), Input("rights", rows, keys, 2)
    upserts = rows * 3 // 4
    ulefts, urights = (
        Input(name, upserts, upserts * 2 // 5, seed, upserts // 2) for name, seed in (("ulefts", 3), ("urights", 4))
    )
    near = [Input(name, half, half // 10 or 1, seed) for name, seed in (("bids", 5), ("asks", 6))]
    thirds = [Input(f"third{number}", half, half * 4 // 5 or 1, 6 + number) for number in (1, 2, 3)]
    updating = f"l.id AS lid, r.id AS rid, {_PAIR} FROM ulefts AS l {{}}JOIN urights AS r ON l.k = r.k"
    inner = f"{_PAIR} FROM lefts AS l JOIN rights AS r ON l.k = r.k"
    apart = "l.ts BETWEEN r.ts - 10000 AND r.ts + 10000"
    of_flink = "l.event_time BETWEEN r.event_time - INTERVAL '10' SECOND AND r.event_time + INTERVAL '10' SECOND"
    ranged = f"{_PAIR} FROM bids AS l JOIN asks AS r ON l.k = r.k AND "
    summed = (
        "l.name AS name, count(*) AS n, sum(r.price) AS s FROM lefts AS l JOIN rights AS r ON l.k = r.k GROUP BY l.name"
    )
    three = (
        "l.k AS k, l.price AS p1, r.price AS p2, x.price AS p3 FROM third1 AS l JOIN third2 AS r ON l.k = r.k"
        " JOIN third3 AS x ON r.k = x.k"
    )
    ids = {"lid": "string", "rid": "string", **pair}

    return [
        _alike("inner", (lefts, rights), pair, inner, Sink.APPENDED, settings=_UNBOUNDED),
        _alike("updating", (ulefts, urights), ids, updating.format(""), Sink.CHANGED),
        _alike("left", (ulefts, urights), ids, updating.format("LEFT "), Sink.CHANGED),
        Workload(
            "range",
            (near[0], near[1]),
            pair,
            f"SELECT {ranged}date_diff_within(10s, l.ts, r.ts) SETTINGS seek_to = 'earliest'",
            f"SELECT {ranged}{of_flink}",
            f"SELECT {ranged}{apart}",
            timed=True,
        ),
        _alike(
            "aggregate",
            (lefts, rights),
            {"name": "string", "n": "bigint", "s": "double"},
            summed,
            Sink.UPSERTED,
            key="name",
            settings=_UNBOUNDED,
        ),
        _alike(
            "three",
            (thirds[0], thirds[1], thirds[2]),
            {"k": "bigint", "p1": "double", "p2": "double", "p3": "double"},
            three,
            Sink.APPENDED,
            settings=_UNBOUNDED,
        ),
    ]
