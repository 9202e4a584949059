"""Debezium: a value is an envelope with the row before a change and the row after it, in any format with names.

    op          what it says                        keyed stream      changelog
    c, r        a row came, or was there            after             +1 after
    u           a row is another one                after             -1 before, +1 after
    d           a row went                          before, deleted   -1 before
    no value    the key has gone, after its ``d``   deleted           nothing

The envelope may stand in a member ``payload``, beside its ``schema``; so may a key. A truncation (``t``) names no row
and is rejected, as is a changelog's change without the old row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.encodings import registry
from dovetail.changelog.encodings.interface import Reads
from dovetail.changelog.encodings.schema_id_framing.subjects import SCHEMA_ID_FRAMED
from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.formats.json_batch import NeedsRowDecoding, Positions, decline_where
from dovetail.changelog.formats.json_types import described
from dovetail.changelog.formats.members import Member
from dovetail.changelog.schema import WIRE_DELTA, Kind

PAYLOAD = "payload"
_CAME, _CHANGED, _GONE = ("c", "r"), "u", "d"
_DELTAS = pa.int32()


class EnvelopeReader:
    """Reads the members of rows out of envelopes; a record of a changelog may be two rows, or none."""

    def __init__(self, reads: Reads) -> None:
        self._members = tuple(member for member in reads.members if member.name != WIRE_DELTA)
        row = pa.struct([(member.name, member.type) for member in self._members])
        parts = (("op", pa.string()), ("before", row), ("after", row))
        envelope = tuple(Member(name, kind) for name, kind in parts)
        wrapped = Member(PAYLOAD, pa.struct(parts))
        self._names = [member.name for member in self._members]
        self._keyed = reads.stream.kind is Kind.UPSERT
        self._described = reads.format.kind in SCHEMA_ID_FRAMED
        self._reader = registry.reader(replace(reads, members=(*envelope, wrapped)))

    def read(self, values: pa.Array) -> tuple[pa.Table, Positions | None]:
        """The members and ``_tp_delta`` of the rows, and of each its value's place; None: a row per value, in order.
        Raises NeedsRowDecoding.
        """
        parts = self._unwrapped(self._reader.read(values))
        op = parts["op"]
        came, changed, gone = (pc.is_in(op, pa.array(of)) for of in (_CAME, (_CHANGED,), (_GONE,)))
        decline_where(pc.invert(pc.or_(pc.or_(came, changed), gone)))
        decline_where(pc.and_(pc.invert(gone), parts["after"].is_null()))
        before, after = (dict(zip(self._names, parts[name].flatten(), strict=True)) for name in ("before", "after"))
        if self._keyed:
            rows = pa.table({name: pc.if_else(gone, before[name], after[name]) for name in self._names})
            deltas = pc.if_else(gone, -1, 1).cast(_DELTAS)
            return self._with_defaults(rows, values).append_column(WIRE_DELTA, deltas), None
        decline_where(pc.and_(pc.invert(came), parts["before"].is_null()))
        return self._both(values, before, after, *(_flags(which) for which in (changed, gone)))

    def may_contain(self, values: pa.Array, name: str) -> pa.Array:
        return self._reader.may_contain(values, name)

    def parsed(self, value: bytes) -> list[dict[str, Any]]:
        """The rows of one value, each as the members that it holds. Raises RecordRejected."""
        envelope = self._reader.parsed(value)
        if self._described:
            envelope = self._typed(envelope)
        if envelope.get("op") is None and isinstance(envelope.get(PAYLOAD), dict):
            envelope = envelope[PAYLOAD]
        op = envelope.get("op")
        if op == "t":
            raise RecordRejected('op "t" is a truncation: it names no row')
        if not isinstance(op, str) or op not in (*_CAME, _CHANGED, _GONE):
            found = described(op) if "op" in envelope else "missing"
            raise RecordRejected(f"op is {found}; an envelope of Debezium has c, r, u or d")
        if op == _GONE and self._keyed and envelope.get("before") is None:
            return [{WIRE_DELTA: -1}]
        rows = []
        if op == _GONE or (op == _CHANGED and not self._keyed):
            rows.append({**_part(envelope, op, "before"), WIRE_DELTA: -1})
        if op != _GONE:
            rows.append({**_part(envelope, op, "after"), WIRE_DELTA: 1})
        return rows

    def _typed(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """The parts of an envelope that a schema describes, as values of columns: what bytes mean, they do not say."""
        read = dict(zip(("op", "before", "after"), self._reader.values(envelope)[:3], strict=True))
        for name in ("before", "after"):
            if isinstance(read[name], dict):
                read[name] = {one: value for one, value in read[name].items() if one in envelope[name]}
        return read

    def _unwrapped(self, read: pa.Table) -> dict[str, pa.Array]:
        parts = {name: read.column(name).combine_chunks() for name in ("op", "before", "after")}
        wrapped = read.column(PAYLOAD).combine_chunks()
        if wrapped.null_count == len(wrapped):
            return parts
        inner = dict(zip(("op", "before", "after"), wrapped.flatten(), strict=True))
        return {name: pc.if_else(parts["op"].is_valid(), parts[name], inner[name]) for name in parts}

    def _with_defaults(self, rows: pa.Table, values: pa.Array) -> pa.Table:
        """``rows``, one for each of ``values``, with the defaults of what they lack."""
        for place, member in enumerate(self._members):
            column = rows.column(place)
            if member.default is not None and column.null_count:
                decline_where(pc.and_(column.is_null(), self.may_contain(values, member.name)))
                rows = rows.set_column(place, member.name, column.fill_null(pa.scalar(member.default, member.type)))
        return rows

    def _both(
        self,
        values: pa.Array,
        before: dict[str, pa.Array],
        after: dict[str, pa.Array],
        changed: npt.NDArray[np.bool_],
        gone: npt.NDArray[np.bool_],
    ) -> tuple[pa.Table, Positions]:
        """The old and the new row of each value, as far as it has them, one after the other."""
        olds, news = np.flatnonzero(changed | gone), np.flatnonzero(~gone)
        places = np.concatenate([olds, news])
        order = np.argsort(places, kind="stable")
        taken = pa.array(np.concatenate([olds, len(values) + news])[order])
        rows = pa.table({name: pa.concat_arrays([before[name], after[name]]).take(taken) for name in self._names})
        try:
            rows = self._with_defaults(rows, values.take(pa.array(places[order])))
        except NeedsRowDecoding as declined:
            of_rows = declined.positions
            raise NeedsRowDecoding(None if of_rows is None else np.unique(places[order][of_rows])) from None
        deltas = np.concatenate([np.full(len(olds), -1), np.full(len(news), 1)])[order]
        return rows.append_column(WIRE_DELTA, pa.array(deltas, _DELTAS)), places[order]


def _flags(which: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = which.to_numpy(zero_copy_only=False)
    return found


def _part(envelope: dict[str, Any], op: str, name: str) -> dict[str, Any]:
    part = envelope.get(name)
    if part is None:
        hint = ": a changelog needs the whole old row (REPLICA IDENTITY FULL)" if name == "before" else ""
        raise RecordRejected(f'op "{op}" without {name}{hint}')
    if not isinstance(part, dict):
        raise RecordRejected(f"{name} is {described(part)}; a row is expected")
    return part


class EnvelopedKeys:
    """The keys of Debezium: as others are, or inside of ``payload``."""

    def __init__(self, reads: Reads) -> None:
        self._members = reads.members
        inner = pa.struct([(member.name, member.type) for member in reads.members])
        self._reader = registry.reader(replace(reads, members=(*reads.members, Member(PAYLOAD, inner))))
        self._plain = registry.reader(reads)

    def read(self, values: pa.Array) -> pa.Table:
        read = self._reader.read(values)
        inner = read.column(PAYLOAD).combine_chunks().flatten()
        return pa.table(
            {
                member.name: pc.coalesce(read.column(member.name), wrapped)
                for member, wrapped in zip(self._members, inner, strict=True)
            }
        )

    def may_contain(self, values: pa.Array, name: str) -> pa.Array:
        return self._plain.may_contain(values, name)

    def parsed(self, value: bytes) -> dict[str, Any]:
        found = self._plain.parsed(value)
        wrapped = found.get(PAYLOAD)
        return wrapped if isinstance(wrapped, dict) else found

    def values(self, record: dict[str, Any]) -> list[Any]:
        return self._plain.values(record)
