"""A join whose state is several times the memory it may have, beside the same in memory: ``make bench-state``.

    python -m benchmarks.state [--rows 2000000] [--keys 800000] [--batch 400000] [--times 5]

One bucket of an inner join of two append streams, without Kafka and Spark, each contender in a process of its own:
in memory  the state stays in the process from batch to batch
mapped     in one portion, which each batch attaches by its local copy and puts back, as inside Spark
hybrid     the same, with a ``times``-th part of the state for its memory

Entries are written to files in place of Spark's state store, by the last two. Memory is the peak over that before the
first batch: resident, and of that what no file backs, which the kernel cannot take back.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from dovetail.changelog.changes import DELTA
from dovetail.joins.dataflow.graph import Dataflow, Edge, OperatorNode, Outlet, Sink
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.joins.host.bucket import BucketTask
from dovetail.joins.host.level import Arrival
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.state.portion import WHOLE, Portion, PortionStore, portion_of
from dovetail.joins.state.store import RunEntry, RunStore
from dovetail.spark_jobs.exchange.arrow_ipc import pack, unpack
from dovetail.spark_jobs.state.bucket_portion_store import BucketPortionStore
from dovetail.spark_jobs.state.bucket_version import BucketVersion
from dovetail.spark_jobs.state.durable_state import DurableState

LEFT, RIGHT = (
    pa.schema([(f"{side}.k", pa.int64()), (f"{side}.name", pa.string()), (f"{side}.v", pa.float64())]) for side in "lr"
)
CONTENDERS = ("in memory", "mapped", "hybrid")


@dataclass(frozen=True)
class Outcome:
    """seconds    and those of the processor
    state      bytes of the rows held, as Arrow tables
    resident, unbacked   peaks in bytes over those before the first batch
    """

    seconds: float
    busy_seconds: float
    rows_out: int
    state: int
    portions: int
    resident: int
    unbacked: int


def main() -> None:
    options = arguments()
    if options.contender:
        print(json.dumps(asdict(measured(options))))
        return
    outcomes: dict[str, Outcome] = {}
    for name in CONTENDERS:
        memory = 0 if name != "hybrid" else outcomes["mapped"].state // options.times
        outcomes[name] = in_own_process(options, name, memory)
        write_report(name, outcomes[name], options, memory)
    for name in ("in memory", "mapped"):
        ratio = outcomes[name].seconds / outcomes["hybrid"].seconds
        busy = outcomes[name].busy_seconds / outcomes["hybrid"].busy_seconds
        print(f"hybrid has {ratio:.2f} times the rows per second of {name}, {busy:.2f} times by processor time")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of each side")
    parser.add_argument("--keys", type=int, default=800_000)
    parser.add_argument("--batch", type=int, default=400_000, help="rows of a batch, both sides together")
    parser.add_argument("--times", type=int, default=5, help="how many times its memory the hybrid state has")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--memory", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def in_own_process(options: argparse.Namespace, name: str, memory: int) -> Outcome:
    given = [f"--{option}={getattr(options, option)}" for option in ("rows", "keys", "batch", "times")]
    command = [sys.executable, "-m", "benchmarks.state", *given, f"--contender={name}", f"--memory={memory}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Outcome(**json.loads(done.stdout))


def write_report(name: str, outcome: Outcome, options: argparse.Namespace, memory: int) -> None:
    rate = 2 * options.rows / outcome.seconds
    allowed = f", of which {memory / 1e6:.0f} may be in memory" if memory else ""
    print(
        f"{name}: {rate:,.0f} rows in per second, {outcome.rows_out:,} out; state {outcome.state / 1e6:.0f} MB"
        f"{allowed}, in {outcome.portions} portions; memory at its peak {outcome.resident / 1e6:.0f} MB resident,"
        f" {outcome.unbacked / 1e6:.0f} MB of it backed by no file"
    )


def measured(options: argparse.Namespace) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder:
        flow = dataflow(StateMemory(options.memory) if options.memory else None)
        portion_stores = of_memory() if options.contender == "in memory" else of_files(Path(folder))
        batches = [generated(options, seed) for seed in range(3)]  # the allocator has grown before it is watched
        del batches
        with Peak() as peak:
            seconds, busy, rows_out = run(flow, portion_stores, options)
        last = next(portion_stores)
        stores = [last.attach(portion) for portion in last.portions]
        size = sum(store.buffered_bytes for store in stores)
        return Outcome(seconds, busy, rows_out, size, len(stores), peak.resident, peak.unbacked)


def run(
    flow: Dataflow, portion_stores: Iterator[PortionStore], options: argparse.Namespace
) -> tuple[float, float, int]:
    """How long all batches took, and of the processor, the making of their rows left out; the rows that left."""
    seconds, busy, rows_out = 0.0, 0.0, 0
    for number in range(2 * options.rows // options.batch):
        arrivals = generated(options, number)
        begun, busy_before = time.perf_counter(), time.process_time()
        portion_store = next(portion_stores)
        output = BucketTask(flow, 1, 0, 1, portion_store, {}).on_batch(arrivals)
        if isinstance(portion_store, BucketPortionStore):
            portion_store.commit()
        seconds, busy = seconds + time.perf_counter() - begun, busy + time.process_time() - busy_before
        rows_out += sum(departure.rows.num_rows for departure in output.departures)
    return seconds, busy, rows_out


def generated(options: argparse.Namespace, seed: int) -> list[Arrival]:
    random = np.random.default_rng(seed)
    arrivals = []
    for edge, schema in enumerate((LEFT, RIGHT)):
        count = options.batch // 2
        names = pa.array([f"name {number}" for number in random.integers(0, 10**9, count)])
        columns = [pa.array(random.integers(0, options.keys, count)), names, pa.array(random.random(count))]
        rows = pa.Table.from_arrays(columns, schema=schema)
        arrivals.append(Arrival(edge, rows.append_column(DELTA, pa.array(np.ones(count, dtype=np.int64)))))
    return arrivals


def dataflow(memory: StateMemory | None) -> Dataflow:
    spec = BidirectionalSpec(JoinKind.INNER, Port(LEFT, ("l.k",), Ingest.APPEND), Port(RIGHT, ("r.k",), Ingest.APPEND))
    return Dataflow(
        scans=(),
        nodes=(OperatorNode(1, spec, (0, 1), (Outlet(2),), memory=memory),),
        edges=(Edge(0, 1, ("l.k",)), Edge(1, 1, ("r.k",)), Edge(2, 2, ("l.k",))),
        sink=Sink(2, (*LEFT.names, *RIGHT.names), ("l.k",), ("k",), False, False),
    )


# -- where the state lies


class Held(PortionStore):
    """In the process; what would be made durable is thrown away."""

    def __init__(self) -> None:
        self._store = RunStore()

    @property
    def portions(self) -> Sequence[Portion]:
        return [WHOLE]

    def attach(self, portion: Portion) -> RunStore:
        return self._store

    def put(self, portion: Portion, store: RunStore) -> None:
        store.flush()


def of_memory() -> Iterator[PortionStore]:
    """The same for each batch."""
    portion_store = Held()
    while True:
        yield portion_store


def of_files(folder: Path) -> Iterator[PortionStore]:
    """One for each batch, as inside Spark."""
    state = StateInFiles(folder)
    while True:
        yield BucketPortionStore(state, folder / "copies" / "1-0", 64 << 30, RunStore)


class StateInFiles(DurableState):
    """The variables of Spark's state as files, an entry each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "entries"
        self._folder.mkdir()
        self._current: BucketVersion | None = None

    def version(self) -> BucketVersion | None:
        return self._current

    def put_version(self, version: BucketVersion) -> None:
        self._current = version

    def reader(self, portions: int) -> Callable[[Portion], Iterator[tuple[int, RunEntry]]]:
        return lambda portion: ((number, self._entry(number)) for number in self._numbers(portion))

    def _numbers(self, portion: Portion) -> list[int]:
        return [number for path in self._folder.iterdir() if portion_of(number := int(path.name)) == portion.number]

    def _entry(self, number: int) -> RunEntry:
        arrangement, _, rows = (self._folder / str(number)).read_bytes().partition(b" ")
        return RunEntry(arrangement.decode(), unpack(rows))

    def write(self, store: RunStore) -> dict[str, int]:
        journal = store.flush()
        for entry_id in journal.dropped:
            (self._folder / str(entry_id)).unlink()
        for entry_id, entry in journal.written.items():
            (self._folder / str(entry_id)).write_bytes(entry.arrangement.encode() + b" " + pack(entry.table))
        return dict(journal.scalars)


# -- how much memory


class Peak:
    """The most memory that this process has within the block, over what it had before."""

    def __enter__(self) -> Peak:
        self._process, self._over = psutil.Process(), threading.Event()
        self._before, self._most = self._now(), self._now()
        self._watch = threading.Thread(target=self._watched, daemon=True)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()
        self.resident, self.unbacked = (most - before for most, before in zip(self._most, self._before, strict=True))

    def _now(self) -> tuple[int, int]:
        memory = self._process.memory_info()
        return memory.rss, memory.rss - memory.shared

    def _watched(self) -> None:
        while not self._over.wait(0.005):
            now = self._now()
            self._most = max(self._most[0], now[0]), max(self._most[1], now[1])


if __name__ == "__main__":
    main()
