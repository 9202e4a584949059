"""One hard stream for every kind of join: nulls, duplicates, equal timestamps, retractions, late rows.

Each kind states in its own file what leaves, batch by batch. A row is (key, id, time); a line of the output is written
as ``+ 1 a 10 | 1 r 10``: the sign of its count, the left columns, the right ones, ``-`` for NULL.
"""

from __future__ import annotations

from collections import Counter

from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.reference.rows import Record, Row
from tests.joins.harness import LEFT, RIGHT, port, watched
from tests.joins.hosted import Hosted

Batch = tuple[list[Record], list[Record]]

HARD: tuple[Batch, ...] = (
    # a meets r and s of one time; NULL is the key of n, and the time of b.
    (
        [((1, "a", 10), 1), ((None, "n", 10), 1), ((2, "b", None), 1)],
        [((1, "r", 10), 1), ((1, "s", 10), 1), ((2, "t", 5), 1)],
    ),
    # a once more; c is taken back before it was there, and s, the last of equal times; m has no key either.
    (
        [((1, "a", 10), 1), ((3, "c", 20), -1)],
        [((None, "m", 10), 1), ((1, "s", 10), -1)],
    ),
    # c comes, and one of the two a goes; e has something near, nothing near, according to how one looks.
    (
        [((3, "c", 20), 1), ((1, "a", 10), -1), ((1, "e", 30), 1)],
        [((3, "u", 18), 1), ((1, "w", 25), 1)],
    ),
    # Both are late where there is a watermark: it stands at 30 and at 25.
    (
        [((1, "d", 12), 1)],
        [((1, "x", 11), 1)],
    ),
    # The end: z and y move the watermarks beyond all that came before.
    (
        [((4, "z", 99), 1)],
        [((4, "y", 99), 1)],
    ),
)


def ports(left: Ingest, right: Ingest, *, timed: bool = False) -> tuple[Port, Port]:
    """Those that the stream enters by; ``timed``: with a watermark over the time."""
    both = port(LEFT, left), port(RIGHT, right)
    return (watched(both[0]), watched(both[1])) if timed else both


def answers(spec: JoinSpec) -> list[list[str]]:
    """What leaves the join, batch by batch. An input that is append-only is given no retractions."""
    hosted, (left, right) = Hosted(spec), spec.ports
    return [_lines(hosted.on_batch(_given(lefts, left), _given(rights, right))) for lefts, rights in HARD]


def _given(records: list[Record], one: Port) -> list[Record]:
    return [record for record in records if one.ingest is not Ingest.APPEND or record[1] > 0]


def _lines(output: Counter[Row]) -> list[str]:
    return sorted(line for row, count in output.items() for line in [_line(row, count)] * abs(count))


def _line(row: Row, count: int) -> str:
    width = len(LEFT)
    sides = [row[:width], row[width:]] if len(row) > width else [row]
    texts = [" ".join("-" if value is None else str(value) for value in part) for part in sides]
    return f"{'+' if count > 0 else '-'} {' | '.join(texts)}"
