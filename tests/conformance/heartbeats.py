"""``wait: watermark``: how far the inputs of a dataflow have to be pushed, and the heartbeats that do so."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from dovetail.changelog.decode import Decoder
from dovetail.changelog.event_times import greatest_ms
from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.sessions import SessionsSpec
from dovetail.joins.dataflow.graph import Dataflow, TopicScan
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.operators.one_shot import OneShotSpec
from dovetail.joins.operators.range import RangeSpec
from dovetail.sql.transforms.window_step import WindowStep
from tests.conformance.records import Record
from tests.conformance.topics import as_batch

Read = Callable[[str], Sequence[Record]]
Numbers = dict[bool, int]
"""A time in ms (False) and a whole number (True): one of each kind of event time that there is."""
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def greatest(dataflows: Iterable[Dataflow], read: Read) -> Numbers:
    """T: the greatest event time given so far on any input."""
    found: Numbers = {}
    for dataflow in dataflows:
        for scan in _timed(dataflow):
            shown = _shown(scan, read(scan.topic))
            if shown is not None:
                found[_whole(scan)] = max(found.get(_whole(scan), shown), shown)
    return found


def reach(dataflows: Iterable[Dataflow]) -> Numbers:
    """R, rather too much of it: all bounds and window sizes, and what rows wait for beside."""
    total: Numbers = {False: 0, True: 0}
    for dataflow in dataflows:
        for node in dataflow.nodes:
            for kind, distance in _distances(node.operator):
                total[_is_whole(kind)] += distance
        outlets = itertools.chain.from_iterable(node.outlets for node in dataflow.nodes)
        parts = [*(scan.transforms for scan in dataflow.scans), *(outlet.transforms for outlet in outlets)]
        steps = itertools.chain.from_iterable(parts)
        total[False] += sum(step.windows.size_ms for step in steps if isinstance(step, WindowStep))
    return total


def _distances(operator: OperatorSpec) -> Iterator[tuple[pa.DataType, int]]:
    """By the type of the event time, in the unit of watermarks."""
    match operator:
        case RangeSpec():
            band = operator.band
            kind = operator.left.schema.field(band.left).type
            yield from ((kind, _units(abs(bound), kind)) for bound in (band.lower, band.upper) if bound is not None)
            yield from ((kind, abs(shift)) for shift in (band.left_shift, band.right_shift) if shift is not None)
        case OneShotSpec() if operator.alignment is not None:
            yield operator.left.schema.field(operator.alignment.left_time).type, operator.alignment.lag_ms
        case AggregateSpec() if operator.closing is not None:
            yield operator.port.schema.field(operator.closing.column).type, abs(operator.closing.shift)
        case SessionsSpec() if operator.closing is not None:
            kind = operator.port.schema.field(operator.time).type
            yield kind, _units(operator.gap, kind)


def heartbeats(dataflow: Dataflow, until: Numbers) -> dict[str, int]:
    """Topic → timestamp of the record that moves each watermark over it to ``until``; those of views move alone."""
    wanted: dict[str, int] = defaultdict(int)
    for scan in _timed(dataflow):
        if _whole(scan) in until and scan.watermark is not None and not scan.watermark.from_heartbeats:
            wanted[scan.topic] = max(wanted[scan.topic], until[_whole(scan)] + scan.watermark.delay_ms)
    return dict(wanted)


def _timed(dataflow: Dataflow) -> list[TopicScan]:
    return [scan for scan in dataflow.scans if scan.watermark is not None]


def _whole(scan: TopicScan) -> bool:
    assert scan.watermark is not None
    return _is_whole(scan.stream.types[scan.watermark.column])


def _is_whole(kind: pa.DataType) -> bool:
    whole: bool = pa.types.is_integer(kind)
    return whole


def _shown(scan: TopicScan, records: Sequence[Record]) -> int | None:
    assert scan.watermark is not None
    column = scan.watermark.column
    return greatest_ms(Decoder(scan.stream, (column,)).decode(as_batch(records)).rows.column(column))


def _units(distance: int, kind: pa.DataType) -> int:
    """A distance of two values of a column in the unit of watermarks, rounded up."""
    return -(-distance * 1_000 // _PER_SECOND[kind.unit]) if pa.types.is_timestamp(kind) else distance
