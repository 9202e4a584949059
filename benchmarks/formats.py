"""Decoding and encoding of records, one format beside the others: the processor time of one thread.

The formats take turns, and of each the best of all turns counts, so that what else the machine does meets all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from dovetail.broker.registry.protobuf_text import compiled
from dovetail.changelog.changes import Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import Encoded, records_of
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.subjects import SUBJECT
from dovetail.changelog.encodings.schema_parsers import SCHEMA_PARSERS
from dovetail.changelog.schema import Column, Kind, RecordFormat, StreamSchema

ROWS, TURNS = 200_000, 7
COLUMNS = (
    Column("id", pa.int64()),
    Column("name", pa.string()),
    Column("price", pa.float64()),
    Column("at", pa.timestamp("ms", "UTC")),
)
NAMES = {"avro": "Avro", "json_schema": "JSON Schema", "protobuf": "Protobuf"}
LINE = (Column("line", pa.string()),)
STREAMS = {
    "JSON": StreamSchema("s", COLUMNS),
    "JSON in envelopes of Debezium": StreamSchema(
        "s", COLUMNS, Kind.UPSERT, ("id",), value=RecordFormat(envelope="debezium")
    ),
    "CSV": StreamSchema("s", COLUMNS, value=RecordFormat("csv")),
    "raw, one column": StreamSchema("s", LINE, value=RecordFormat("raw")),
    **{
        NAMES[kind]: StreamSchema("s", COLUMNS, value=RecordFormat(kind, ((SUBJECT, kind),))) for kind in SCHEMA_PARSERS
    },
}


class OwnSchemas:
    """A ``SchemaSource`` of the schemas of the columns, in each language."""

    def __init__(self) -> None:
        columns = pa.schema([(column.name, column.type) for column in COLUMNS])
        self._subjects = list(SCHEMA_PARSERS)
        own = [language.own(columns, "s") for language in SCHEMA_PARSERS.values()]
        self._known = [replace(one, compiled=compiled(one)) if one.kind == "PROTOBUF" else one for one in own]

    def definition(self, schema_id: int) -> SchemaDefinition | None:
        return self._known[schema_id]

    def newest(self, subject: str) -> int | None:
        return self._subjects.index(subject)

    def latest(self, subject: str) -> int | None:
        return self.newest(subject)


SCHEMAS = OwnSchemas()


def rows_of(schema: StreamSchema) -> pa.Table:
    numbers = np.arange(ROWS)
    columns = {
        "id": pa.array(numbers),
        "name": pa.array([f"name {number % 1000}" for number in numbers]),
        "price": pa.array(numbers / 7),
        "at": pa.array(1_700_000_000_000 + numbers).cast(pa.timestamp("ms", "UTC")),
        "line": pa.array([f"line {number}" for number in numbers]),
    }
    return Changes.of(pa.table({column.name: columns[column.name] for column in schema.columns})).table


def batch_of(records: Encoded) -> pa.Table:
    return pa.table(
        {
            "key": pa.array(records.keys, pa.binary()),
            "value": pa.array(records.values, pa.binary()),
            "timestamp": pa.array(np.full(ROWS, 1_700_000_000_000)).cast(pa.timestamp("ms", "UTC")),
            "partition": pa.array(np.zeros(ROWS, dtype=np.int32)),
            "offset": pa.array(np.arange(ROWS)),
        }
    )


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    rows = {name: rows_of(schema) for name, schema in STREAMS.items()}
    batches = {name: batch_of(records_of(schema, rows[name], SCHEMAS)) for name, schema in STREAMS.items()}
    decoders = {
        name: Decoder(schema, tuple(c.name for c in schema.columns), SCHEMAS) for name, schema in STREAMS.items()
    }
    read, written = ({name: float("inf") for name in STREAMS} for _ in range(2))
    for _ in range(TURNS):
        for name, schema in STREAMS.items():
            read[name] = min(read[name], seconds(partial(decoders[name].decode, batches[name])))
            written[name] = min(written[name], seconds(partial(records_of, schema, rows[name], SCHEMAS)))
    print(f"{'format':32}{'bytes':>8}{'read, rows/s':>14}{'to JSON':>9}{'written, rows/s':>17}{'to JSON':>9}")
    for name in STREAMS:
        size = batches[name].column("value").nbytes / ROWS
        of_read = f"{ROWS / read[name]:14,.0f}{read['JSON'] / read[name]:9.2f}"
        of_written = f"{ROWS / written[name]:17,.0f}{written['JSON'] / written[name]:9.2f}"
        print(f"{name:32}{size:8.0f}{of_read}{of_written}")


if __name__ == "__main__":
    main()
