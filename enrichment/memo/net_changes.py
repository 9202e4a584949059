"""The records of an updating output, made from records that are kept: exact to the byte whatever their types.

An ``Emitted`` is a record as it was written, its delta aside: the key, and the JSON of the value without ``_tp_delta``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from dovetail.changelog.encode import Encoded
from dovetail.changelog.schema import WIRE_DELTA

Emitted = tuple[bytes | None, bytes]


@dataclass
class NetChanges:
    """What a batch adds to and takes from the output; what comes and goes within it leaves no trace."""

    _counts: dict[Emitted, int] = field(default_factory=dict)
    _groups: dict[Emitted, bytes] = field(default_factory=dict)

    def add(self, identity: bytes, records: Iterable[Emitted], delta: int) -> None:
        """``records`` belong to the left row ``identity``: next to its others where they have no key."""
        for record in records:
            self._counts[record] = self._counts.get(record, 0) + delta
            key = record[0]
            self._groups.setdefault(record, identity if key is None else key)

    def records(self, output_format: str) -> Encoded:
        """The rows of a key are adjacent, keys in order of first appearance, retractions first."""
        groups: dict[bytes, tuple[list[Emitted], list[Emitted]]] = {}
        for record, count in self._counts.items():
            if count:
                gone, come = groups.setdefault(self._groups[record], ([], []))
                (come if count > 0 else gone).extend([record] * abs(count))
        write = {"upsert": _upserted, "debezium": _enveloped}.get(output_format, _marked)
        written = [write(*group) for group in groups.values()]
        pairs = [pair for group in written for pair in group]
        return Encoded.of([key for key, _ in pairs], [value for _, value in pairs])


def _marked(gone: list[Emitted], come: list[Emitted]) -> list[tuple[bytes | None, bytes | None]]:
    return [
        *((key, _with_delta(value, b"-1")) for key, value in gone),
        *((key, _with_delta(value, b"1")) for key, value in come),
    ]


def _upserted(gone: list[Emitted], come: list[Emitted]) -> list[tuple[bytes | None, bytes | None]]:
    """A record per key: its last inserted row, else a tombstone."""
    return [come[-1]] if come else [(gone[-1][0], None)]


def _enveloped(gone: list[Emitted], come: list[Emitted]) -> list[tuple[bytes | None, bytes | None]]:
    """A record per row that came, went, or went as another one of its key came."""
    pairs = itertools.zip_longest(gone, come)
    return [((new or old)[0], _envelope(old and old[1], new and new[1])) for old, new in pairs]


def _envelope(before: bytes | None, after: bytes | None) -> bytes:
    op = b"c" if before is None else b"d" if after is None else b"u"
    return b'{"before":%s,"after":%s,"op":"%s"}' % (before or b"null", after or b"null", op)


def _with_delta(value: bytes, delta: bytes) -> bytes:
    separator = b"," if len(value) > len(b"{}") else b""
    return b"".join((value[:-1], separator, b'"', WIRE_DELTA.encode(), b'":', delta, b"}"))
