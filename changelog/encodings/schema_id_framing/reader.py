"""A reader of values that name their schema: one reader for each schema that has been met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dovetail.changelog.encodings.interface import Reads, SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.encodings.schema_id_framing.subjects import expected
from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.formats.json_batch import NeedsRowDecoding, Positions


class SchemaMisfit(Exception):
    """No record of a schema can be read for the columns that are asked for; the message says why."""


class PayloadReader(Protocol):
    """Reads what one schema describes, behind the head; as ``MemberReader`` otherwise."""

    def read(self, payloads: pa.Array) -> pa.Table: ...

    def may_contain(self, payloads: pa.Array, name: str) -> pa.Array: ...

    def parsed(self, payload: bytes) -> dict[str, Any]: ...

    def values(self, record: dict[str, Any]) -> list[Any]: ...


class _Record(dict[str, Any]):
    """The members of a value, and who has read them."""

    reader: PayloadReader


def together(parts: list[tuple[Positions, pa.Table]], declined: list[Positions], reads: Reads) -> pa.Table:
    """Rows read in parts, in the order of their positions. Raises NeedsRowDecoding if any is ``declined``."""
    if any(len(some) for some in declined):
        raise NeedsRowDecoding(np.sort(np.concatenate(declined)))
    if len(parts) == 1:
        return parts[0][1]
    if not parts:
        return pa.table({one.name: pa.array([], one.type) for one in reads.members})
    order = np.argsort(np.concatenate([positions for positions, _ in parts]))
    return pa.concat_tables([rows for _, rows in parts]).take(pa.array(order)).combine_chunks()


class SchemaIdReader:
    """``made`` gives the reader of a schema; it raises SchemaMisfit. Raises what the source of schemas raises."""

    def __init__(self, reads: Reads, made: Callable[[SchemaDefinition, Reads], PayloadReader]) -> None:
        self._reads = reads
        self._schemas = expected(reads.schemas)
        self._made = made
        self._known: dict[int, PayloadReader | str] = {}

    def read(self, values: pa.Array) -> pa.Table:
        ids = wire.schema_ids(values)
        parts: list[tuple[Positions, pa.Table]] = []
        declined: list[Positions] = []
        for schema_id in np.unique(ids).tolist():
            positions = np.flatnonzero(ids == schema_id)
            try:
                parts.append((positions, self._part(schema_id, values, positions)))
            except NeedsRowDecoding as some:
                declined.append(positions if some.positions is None else positions[some.positions])
        return together(parts, declined, self._reads)

    def may_contain(self, values: pa.Array, name: str) -> pa.Array:
        ids = wire.schema_ids(values)
        may = np.ones(len(ids), dtype=np.bool_)
        for schema_id in np.unique(ids).tolist():
            found, positions = self._reader(schema_id), np.flatnonzero(ids == schema_id)
            if not isinstance(found, str):
                some = wire.payloads(values.take(pa.array(positions)))
                may[positions] = found.may_contain(some, name).to_numpy(zero_copy_only=False)
        return pa.array(may)

    def parsed(self, value: bytes) -> dict[str, Any]:
        schema_id, payload = wire.parted(value, self._reads.place)
        found = self._reader(schema_id)
        if isinstance(found, str):
            raise RecordRejected(found)
        record = _Record(found.parsed(payload))
        record.reader = found
        return record

    def values(self, record: dict[str, Any]) -> list[Any]:
        # A tombstone has been read by nobody: it has no member but what stands for it, and that is plain.
        if not isinstance(record, _Record):
            return [record.get(member.name, member.default) for member in self._reads.members]
        return record.reader.values(record)

    def _part(self, schema_id: int, values: pa.Array, positions: Positions) -> pa.Table:
        found = self._reader(schema_id)
        if isinstance(found, str):
            raise NeedsRowDecoding
        some = values if len(positions) == len(values) else values.take(pa.array(positions))
        return found.read(wire.payloads(some))

    def _reader(self, schema_id: int) -> PayloadReader | str:
        """The reader of a schema; or why there is none, which is for good: what an id means never changes."""
        known = self._known.get(schema_id)
        if known is None:
            known = self._known[schema_id] = self._looked_up(schema_id)
        return known

    def _looked_up(self, schema_id: int) -> PayloadReader | str:
        if schema_id == wire.NO_HEAD:
            return "no schema"
        definition = self._schemas.definition(schema_id)
        if definition is None:
            return f"the schema registry has no schema {schema_id}"
        try:
            return self._made(definition, self._reads)
        except SchemaMisfit as misfit:
            return f"schema {schema_id}: {misfit}"
