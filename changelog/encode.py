"""From changed rows to Kafka records: what ``decode`` reads, so that an output can be the input of another query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.encodings import registry
from dovetail.changelog.encodings.interface import SchemaSource, Writes
from dovetail.changelog.errors import InternalError
from dovetail.changelog.formats.panics import panics_as_errors
from dovetail.changelog.row_reader import WIRE_DELTA_TYPE
from dovetail.changelog.schema import JSON, WIRE_DELTA, Kind, RecordFormat, StreamSchema

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Encoded:
    """Record n has the key ``keys[n]`` and the value ``values[n]``; None is Kafka's null.

    They are columns, large binaries, which become objects only for who asks for these.

    key_column   None: no record has a key
    """

    key_column: pa.Array | None
    value_column: pa.Array

    @staticmethod
    def of(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> Encoded:
        return Encoded(pa.array(keys, pa.large_binary()), pa.array(values, pa.large_binary()))

    def __len__(self) -> int:
        return len(self.value_column)

    @cached_property
    def keys(self) -> list[bytes | None]:
        return [None] * len(self) if self.key_column is None else _listed(self.key_column)

    @cached_property
    def values(self) -> list[bytes | None]:
        return _listed(self.value_column)

    def sizes(self) -> Positions:
        """The ``message_size`` of each record."""
        columns = [self.value_column] if self.key_column is None else [self.value_column, self.key_column]
        lengths = [pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False) for column in columns]
        sizes: Positions = np.sum(lengths, axis=0, dtype=np.int64)
        return sizes

    def slice(self, start: int, count: int) -> Encoded:
        return self._each(lambda column: column.slice(start, count))

    def take(self, places: Positions) -> Encoded:
        return self._each(lambda column: column.take(pa.array(places)))

    def _each(self, change: Callable[[pa.Array], pa.Array]) -> Encoded:
        return Encoded(None if self.key_column is None else change(self.key_column), change(self.value_column))


def _listed(column: pa.Array) -> list[bytes | None]:
    # Arrow's own to_pylist makes an object for each value on the way, and takes ten times as long.
    listed: list[bytes | None] = pl.Series(column).to_list()
    return listed


@dataclass(frozen=True, slots=True)
class Forms:
    """The formats of values and of keys; ``schemas`` for those that have their schemas by id."""

    value: RecordFormat = JSON
    key: RecordFormat = JSON
    schemas: SchemaSource | None = None

    def values(self, rows: pa.Table) -> list[bytes | None]:
        return _listed(self.value_column(rows))

    def keys(self, rows: pa.Table) -> list[bytes | None]:
        return _listed(self.key_column(rows))

    def value_column(self, rows: pa.Table) -> pa.Array:
        """A large binary for each row."""
        return self._written(Writes(self.value, schemas=self.schemas), rows)

    def key_column(self, rows: pa.Table) -> pa.Array:
        """A large binary for each row."""
        return self._written(Writes(self.key, of_key=True, schemas=self.schemas), rows)

    def _written(self, writes: Writes, rows: pa.Table) -> pa.Array:
        with panics_as_errors():
            return registry.writer(writes).write(rows).cast(pa.large_binary())


def encode(
    rows: pa.Table,
    columns: tuple[str, ...],
    key: tuple[tuple[str, str], ...],
    updating: bool,
    format: str = "changelog",  # noqa: A002
    forms: Forms | None = None,
) -> Encoded:
    """The records of ``rows``, whose column ``delta`` counts each row.

    columns   the members of a value, in order; ``_tp_delta`` comes last if ``updating``
    key       (column of ``rows``, member of the key), in order; none: records have no key
    format    'changelog': a record per row and count; the rows of a key are adjacent, retractions first.
              'upsert': a record per key, its last inserted row, or a tombstone if rows were only retracted; ``rows``
              are all changes of their keys in this step, and the key is that of a row.
              'debezium': an envelope per row that came (c), went (d), or went as another one of its key came (u)
    forms     the formats of values and keys; None: JSON
    """
    forms = forms or Forms()
    if format == "changelog":
        return _changelog(rows, columns, key, updating, forms)
    if format == "upsert":
        return _upsert(rows, columns, key, forms)
    if format == "debezium":
        return _debezium(rows, columns, key, forms)
    raise InternalError(f"unknown output format {format!r}")


def _changelog(
    rows: pa.Table, columns: tuple[str, ...], key: tuple[tuple[str, str], ...], updating: bool, forms: Forms
) -> Encoded:
    deltas = Changes(rows).deltas
    if not Changes(rows).only_insertions:
        order = np.lexsort((deltas > 0, _key_groups(rows, key)))
        rows, deltas = rows.take(pa.array(order)), deltas[order]
    if len(deltas) and np.abs(deltas).max() > 1:
        times = np.repeat(np.arange(len(deltas)), np.abs(deltas))
        rows, deltas = rows.take(pa.array(times)), deltas[times]
    values = rows.select(columns)
    if updating:
        values = values.append_column(WIRE_DELTA, pa.array(np.sign(deltas), WIRE_DELTA_TYPE))
    return Encoded(_keys(rows, key, forms), forms.value_column(values))


def _upsert(rows: pa.Table, columns: tuple[str, ...], key: tuple[tuple[str, str], ...], forms: Forms) -> Encoded:
    written = dict.fromkeys((*columns, *(column for column, _ in key)))
    changes = Changes(rows.select([*written, DELTA])).consolidated()
    deltas, groups = changes.deltas, _key_groups(changes.table, key)
    order = np.lexsort((np.arange(len(deltas)), deltas > 0, groups))
    last = np.append(groups[order][1:] != groups[order][:-1], True) if len(order) else np.array([], dtype=np.bool_)
    net = changes.table.take(pa.array(order[last]))
    values = forms.value_column(net.select(columns))
    return Encoded(_keys(net, key, forms), pc.if_else(pa.array(Changes(net).deltas > 0), values, None))


def _debezium(rows: pa.Table, columns: tuple[str, ...], key: tuple[tuple[str, str], ...], forms: Forms) -> Encoded:
    written = dict.fromkeys((*columns, *(column for column, _ in key)))
    changes = Changes(rows.select([*written, DELTA]))
    if not changes.only_insertions:
        changes = changes.consolidated()
    places = np.repeat(np.arange(len(changes)), np.abs(changes.deltas))
    positions = pl.DataFrame({"place": places, "group": _key_groups(changes.table, key)[places]})
    positions = positions.with_columns(pl.Series("came", changes.deltas[places] > 0))
    if not key:
        # Without one nothing says that a row has become another one.
        positions = positions.with_columns(pl.int_range(pl.len()).alias("group"))
    ranked = positions.with_columns(pl.int_range(pl.len()).over("group", "came").alias("rank"))
    olds, news = ranked.filter(~pl.col("came")), ranked.filter(pl.col("came"))
    pairs = olds.join(news, on=["group", "rank"], how="full", coalesce=True).sort("group", "rank")
    before, after = (pairs[name].to_arrow().cast(pa.int64()) for name in ("place", "place_right"))
    op = pc.if_else(before.is_null(), "c", pc.if_else(after.is_null(), "d", "u"))
    parts = [_rows_at(changes.table.select(columns), places) for places in (before, after)]
    keyed = changes.table.take(pc.coalesce(after, before))
    envelopes = pa.table([*parts, op], names=["before", "after", "op"])
    return Encoded(_keys(keyed, key, forms), forms.value_column(envelopes))


def _rows_at(rows: pa.Table, places: pa.Array) -> pa.Array:
    """The rows at ``places`` as structs; NULL where a place is."""
    columns = [column.combine_chunks() for column in rows.take(places).columns]
    return pa.StructArray.from_arrays(columns, fields=list(rows.schema), mask=places.is_null())


def _key_groups(rows: pa.Table, key: tuple[tuple[str, str], ...]) -> Positions:
    """For each row the position of the first row with its key."""
    if not key:
        return np.zeros(rows.num_rows, dtype=np.int64)
    frame = pl.DataFrame([pl.Series(str(place), rows.column(column)) for place, (column, _) in enumerate(key)])
    first = pl.col("position").min().over(frame.columns)
    return frame.with_row_index("position").select(first).to_series().to_numpy().astype(np.int64)


def _keys(rows: pa.Table, key: tuple[tuple[str, str], ...], forms: Forms) -> pa.Array | None:
    if not key:
        return None
    columns, names = zip(*key, strict=True)
    return forms.key_column(rows.select(columns).rename_columns(names))


def records_of(schema: StreamSchema, rows: pa.Table, schemas: SchemaSource | None = None) -> Encoded:
    """The records of ``rows`` (columns of the stream, ``delta`` last) in the wire format of the stream's kind.

    UPSERT: insertions one by one, in order; with retractions among them, a record per primary key, its last inserted
    row or a tombstone. The others: a record per row and count; the rows of a CHANGELOG, which has no primary key, are
    keyed by the whole row, so that a retraction follows its insertion into its partition.
    """
    columns = _value_columns(schema, rows)
    forms = Forms(schema.value, schema.key, schemas)
    if schema.value.envelope:
        return encode(rows, columns, _same(schema.primary_key or columns), True, "debezium", forms)
    if schema.kind is Kind.UPSERT:
        if Changes(rows).only_insertions:
            return encode(rows, columns, _same(schema.primary_key), updating=False, forms=forms)
        return encode(rows, columns, _same(schema.primary_key), updating=True, format="upsert", forms=forms)
    if schema.kind is Kind.CHANGELOG_KV:
        return encode(rows, columns, _same(schema.primary_key), updating=True, forms=forms)
    if schema.kind is Kind.CHANGELOG:
        return encode(rows, columns, _same(columns), updating=True, forms=forms)
    return encode(rows, columns, (), updating=False, forms=forms)


def _same(columns: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in columns)


def _value_columns(schema: StreamSchema, rows: pa.Table) -> tuple[str, ...]:
    """Those that a value holds. Where it is one column, those of the primary key are in the key alone."""
    in_key = schema.primary_key if registry.format_kind(schema.value.kind).single else ()
    return tuple(name for name in rows.column_names if name != DELTA and name not in in_key)
