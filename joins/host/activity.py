"""What the nodes of a query have done, and what they hold: measured by a host, batch by batch, and added up.

What a node does adds up over the buckets of a batch, and over batches; what a bucket holds takes the place of what it
held before. A **document** is the same as plain lists and dicts, for JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dovetail.joins.state.arrangement_stats import TOP, ArrangementStats, KeyRows

Document = Mapping[str, Any]


@dataclass(frozen=True)
class NodeWork:
    """rows_in   by port, the rows that the node took in; late ones are none
    changes   rows by which it changed its output
    rows_out  of these what left, after the steps that follow the node in the same stage; to all who read it, added up
    busy_ns   time that it and these steps took, in all buckets together
    batches   in which it was asked
    """

    rows_in: tuple[int, ...]
    changes: int
    rows_out: int
    busy_ns: int
    batches: int = 1

    def beside(self, other: NodeWork) -> NodeWork:
        """With that of another bucket in the same batch."""
        return self._with(other, max(self.batches, other.batches))

    def after(self, before: NodeWork) -> NodeWork:
        """With that of the batches before."""
        return self._with(before, self.batches + before.batches)

    def _with(self, other: NodeWork, batches: int) -> NodeWork:
        rows_in = tuple(ours + theirs for ours, theirs in zip(self.rows_in, other.rows_in, strict=True))
        changes, rows_out = self.changes + other.changes, self.rows_out + other.rows_out
        return NodeWork(rows_in, changes, rows_out, self.busy_ns + other.busy_ns, batches)

    @property
    def fan_out(self) -> float | None:
        """Changes for each row that came in; None before the first one."""
        came = sum(self.rows_in)
        return self.changes / came if came else None


@dataclass
class Activity:
    """scans   by number: rows_in are records, or rows of the topic; changes those that could be used
    nodes   by number in the dataflow
    held    arrangement → bucket → what it holds; ``<number of the node>.<part of its state>``
    """

    scans: dict[int, NodeWork] = field(default_factory=dict)
    nodes: dict[int, NodeWork] = field(default_factory=dict)
    held: dict[str, dict[int, ArrangementStats]] = field(default_factory=dict)

    @staticmethod
    def of_batch(parts: Iterable[Activity]) -> Activity:
        """Of one batch, from what each bucket and each task of the source says of it."""
        whole = Activity()
        for part in parts:
            for ours, theirs in ((whole.scans, part.scans), (whole.nodes, part.nodes)):
                for number, work in theirs.items():
                    ours[number] = work.beside(ours[number]) if number in ours else work
            whole._hold(part)
        return whole

    def add(self, later: Activity) -> None:
        """What came after it."""
        for ours, theirs in ((self.scans, later.scans), (self.nodes, later.nodes)):
            for number, work in theirs.items():
                ours[number] = work.after(ours[number]) if number in ours else work
        self._hold(later)

    def _hold(self, later: Activity) -> None:
        for arrangement, buckets in later.held.items():
            self.held.setdefault(arrangement, {}).update(buckets)

    def parts_of(self, number: int) -> dict[str, ArrangementStats]:
        """What a node holds in all buckets, by part of its state."""
        found = ((name.partition("."), held) for name, held in self.held.items())
        return {part: in_all(held.values()) for (node, _, part), held in found if node == str(number)}

    def document(self) -> dict[str, Any]:
        """Of the heaviest keys only those that are so in all buckets together."""
        return {
            "scans": {str(number): _listed(work) for number, work in self.scans.items()},
            "nodes": {str(number): _listed(work) for number, work in self.nodes.items()},
            "held": {name: _held(buckets) for name, buckets in self.held.items()},
        }

    @staticmethod
    def read(document: Document) -> Activity:
        """That of ``document()``; nothing where nothing was told yet."""
        return Activity(
            {int(number): _work(listed) for number, listed in document.get("scans", {}).items()},
            {int(number): _work(listed) for number, listed in document.get("nodes", {}).items()},
            {
                name: {int(bucket): _holding(listed) for bucket, listed in buckets.items()}
                for name, buckets in document.get("held", {}).items()
            },
        )


def in_all(buckets: Iterable[ArrangementStats]) -> ArrangementStats:
    """Of several buckets together; no two of them have a key in common."""
    held = list(buckets)
    top = sorted((key for one in held for key in one.top), key=_heavier_first)
    return ArrangementStats(
        rows=sum(one.rows for one in held),
        bytes=sum(one.bytes for one in held),
        keys=(sum(one.keys[0] for one in held), sum(one.keys[1] for one in held)),
        fan_out=max((one.fan_out for one in held), default=0),
        top=tuple(top[:TOP]),
    )


def _heavier_first(key: KeyRows) -> tuple[int, str]:
    return -key.rows, key.key


def _listed(work: NodeWork) -> list[Any]:
    return [list(work.rows_in), work.changes, work.rows_out, work.busy_ns, work.batches]


def _work(listed: list[Any]) -> NodeWork:
    rows_in, *others = listed
    return NodeWork(tuple(rows_in), *others)


def _held(buckets: Mapping[int, ArrangementStats]) -> dict[str, list[Any]]:
    named: dict[int, list[list[Any]]] = defaultdict(list)
    of_all = [(key, bucket) for bucket, one in buckets.items() for key in one.top]
    heaviest = sorted(of_all, key=lambda of: _heavier_first(of[0]))
    for key, bucket in heaviest[:TOP]:
        named[bucket].append([key.key, key.rows])
    return {
        str(bucket): [one.rows, one.bytes, *one.keys, one.fan_out, named[bucket]] for bucket, one in buckets.items()
    }


def _holding(listed: list[Any]) -> ArrangementStats:
    rows, size, least, most, fan_out, top = listed
    return ArrangementStats(rows, size, (least, most), fan_out, tuple(KeyRows(key, count) for key, count in top))
