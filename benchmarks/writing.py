"""Rows to the records of a topic, out of columns and as objects: the processor time of the whole process.

    python -m benchmarks.writing [--rows 1000000] [--turns 3] [--keyed]

Each way encodes the same rows as JSON of some 90 bytes and sends them in transactions of 500,000, the threads of the
client included, the broker not. They take turns; of each the best counts.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from benchmarks.load import PIECE, create_topics, side
from dovetail.broker.address import BrokerAddress
from dovetail.broker.producer_queue import Outgoing, OutgoingRecords
from dovetail.broker.transactional_writer import TransactionalWriter, WriteTarget, fence
from dovetail.changelog.changes import Changes
from dovetail.changelog.encode import encode
from dovetail.services.stack import temporary_stack

TRANSACTION_ROWS = 500_000
Way = Callable[[OutgoingRecords], Outgoing | OutgoingRecords]
WAYS: dict[str, Way] = {"columns": lambda records: records, "objects": lambda records: records.as_messages()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--keyed", action="store_true", help="records with a key")
    options = parser.parse_args()
    pieces = [Changes.of(piece).table for piece in side(options.rows, 800_000, 1, "price")]
    with (
        tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name,
        temporary_stack(Path(name), components=("kafka",)) as stack,
    ):
        brokers = stack.endpoint("kafka")
        create_topics(brokers, ["marks", *WAYS], 2)
        target = WriteTarget(BrokerAddress(brokers), "writing", "marks", 60.0, 30.0)
        fence(target, len(WAYS))  # waits for a broker that has just begun
        writers = {way: TransactionalWriter(target, place) for place, way in enumerate(WAYS)}
        best = dict.fromkeys(WAYS, float("inf"))
        for turn, way in itertools.product(range(options.turns), WAYS):
            seconds = spent(writers[way], turn, way, pieces, keyed=options.keyed)
            best[way] = min(best[way], seconds)
            print(f"{way}  {1e6 * seconds / options.rows:.2f} us of a core for each row", flush=True)
    print(f"objects: {best['objects'] / best['columns']:.2f} times the processor time of columns")


def spent(writer: TransactionalWriter, turn: int, way: str, pieces: list[pa.Table], *, keyed: bool) -> float:
    begun_s = time.process_time()
    count = TRANSACTION_ROWS // PIECE
    for number in range(0, len(pieces), count):
        writer.write(turn * len(pieces) + number, outgoing(way, pieces[number : number + count], keyed=keyed))
    return time.process_time() - begun_s


def outgoing(way: str, pieces: list[pa.Table], *, keyed: bool) -> Iterator[Outgoing | OutgoingRecords]:
    for piece in pieces:
        members = tuple(name for name in piece.column_names if name != "delta")
        records = encode(piece, members, (("k", "k"),) if keyed else (), updating=False)
        yield WAYS[way](OutgoingRecords(way, records))


if __name__ == "__main__":
    main()
