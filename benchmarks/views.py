"""Many views on one machine: ``make bench-views``, VIEWS="5 20 50" for other than 5.

    python -m benchmarks.views [--views 5 20 50] [--buckets 2] [--rate 1000] [--seconds 30] [--warm-up 30]

All views join the same two streams, each with an output topic of its own, in a stack of this checkout; each number of
views has a stack of its own.

start    CREATE of all views, one after the other, until each is running
idle     processor time without a row to read, as a share of one core; memory
busy     ``rate`` rows a second read by all views together, each its share of them; latency from produce to a
         read_committed reader of the view's topic, in ms; batches of all views, one that views share for each of them;
         processor time, also for each batch; memory
packed   with DOVETAIL_PACK_AFTER_S, how long it takes until views share queries; before what comes next
dropped  memory 45 s after all views are gone, and 45 s later

Memory is PSS: what processes share is counted once. The broker is told apart from the processes of
Spark, which are told by their names. Processor time does not depend on what else the machine does; latency does.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from benchmarks.delays import received
from benchmarks.latency import send
from dovetail.services.session import Session
from dovetail.services.stack import temporary_stack
from dovetail.services.stack.files import StackFiles
from dovetail.services.stack.processes import marked_processes
from dovetail.services.stack.state import read_state
from dovetail.spark_jobs.packing.choice import FEWEST
from dovetail.sql.catalog import Actual

STREAMS = ("asked", "answered")
SETTLE_S = 10
DROPPED_S = 45
"""Spark ends workers that nobody has used for a minute."""
MIB = 1 << 20


@dataclass
class Usage:
    """Processor seconds so far and bytes now, by component and name of the process."""

    cpu_s: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    memory: Counter[tuple[str, str]] = field(default_factory=Counter)
    processes: Counter[tuple[str, str]] = field(default_factory=Counter)

    @staticmethod
    def of(run_id: str) -> Usage:
        found = Usage()
        for component in ("spark", "kafka"):
            for identity in marked_processes(run_id, component):
                with suppress(psutil.Error):
                    process = psutil.Process(identity.pid)
                    place = (component, _name(process))
                    times = process.cpu_times()
                    # Of ended children as well, so that what a process has used stays in the sum after its end.
                    found.cpu_s[place] += times.user + times.system + times.children_user + times.children_system
                    found.memory[place] += process.memory_full_info().pss
                    found.processes[place] += 1
        return found


def _name(process: psutil.Process) -> str:
    """Of an interpreter, the module that it runs; what is forked from it tells its own."""
    line = process.cmdline()
    known = process.name()
    if not known.startswith("python"):
        return known
    return line[line.index("-m") + 1].rpartition(".")[2] if "-m" in line else known


def main() -> None:
    options = arguments()
    for views in options.views:
        print(f"-- {views} views", flush=True)
        measure_stack(views, options)


def measure_stack(views: int, options: argparse.Namespace) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name,
        temporary_stack(Path(name), components=("kafka", "spark")) as stack,
        Session.open(stack.connected_settings()) as session,
    ):
        state = read_state(StackFiles(stack.settings).state)
        assert state is not None
        measure(session, state.run_id, [f"paired_{number}" for number in range(views)], options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, nargs="+", default=[5])
    parser.add_argument("--buckets", type=int, default=0, help="of each view; 0: the default of the machine")
    parser.add_argument("--rate", type=int, default=1000, help="rows a second that all views together read")
    parser.add_argument("--seconds", type=int, default=30, help="length of each span that is measured")
    parser.add_argument("--warm-up", type=int, default=30, help="seconds under load before it is measured")
    return parser.parse_args()


def measure(session: Session, run_id: str, views: list[str], options: argparse.Namespace) -> None:
    brokers = session.context.brokers.servers
    for stream in STREAMS:
        session.run(f"CREATE STREAM {stream} (k int64, sent float64)")
    tell("before", Usage.of(run_id))

    began_s = time.monotonic()
    for view in views:
        session.run(create(view, options.buckets))
    print(f"start    {time.monotonic() - began_s:.1f} s for {len(views)} views", flush=True)
    if session.context.settings.pack_after_s:
        await_packed(session, views)
    time.sleep(SETTLE_S)
    spent("idle", run_id, lambda: time.sleep(options.seconds))

    busy(session, run_id, brokers, views, options)
    time.sleep(SETTLE_S)
    spent("idle", run_id, lambda: time.sleep(options.seconds))

    for view in views:
        session.run(f"DROP VIEW {view} WITH DATA")
    for _ in range(2):
        time.sleep(DROPPED_S)
        tell("dropped", Usage.of(run_id))


def await_packed(session: Session, views: list[str]) -> None:
    """Those that are too few for a pack of their own stay alone."""
    began_s = time.monotonic()
    while len(views) - sum(is_packed(session, view) for view in views) >= FEWEST:
        time.sleep(1)
    alone = [view for view in views if not is_packed(session, view)]
    print(f"packed   {time.monotonic() - began_s:.1f} s, {len(alone)} views alone", flush=True)


def is_packed(session: Session, view: str) -> bool:
    query = session.context.catalog.query(view)
    return query.actual is Actual.RUNNING and bool(query.progress.get("packed_with"))


def create(view: str, buckets: int) -> str:
    settings = f" SETTINGS buckets = {buckets}" if buckets else ""
    return (
        f"CREATE MATERIALIZED VIEW {view} AS SELECT asked.k AS k, answered.sent AS sent FROM asked JOIN answered"
        f" ON asked.k = answered.k{settings}"
    )


def busy(session: Session, run_id: str, brokers: str, views: list[str], options: argparse.Namespace) -> None:
    stop = threading.Event()
    length = options.warm_up + options.seconds
    # Both streams are read by every view.
    rate = max(options.rate // len(views), 2)
    sender = threading.Thread(target=send, args=(brokers, length, stop, rate))
    delays: list[float] = []

    def read() -> None:
        delays.extend(received(brokers, views, "sent", options.warm_up, options.seconds))

    reader = threading.Thread(target=read)
    sender.start()
    reader.start()
    try:
        time.sleep(options.warm_up)
        before = batches(session)
        cpu_s = spent("busy", run_id, reader.join)
        count = batches(session) - before
        print(
            f"batches  {count}; processes of Spark: {1000 * cpu_s / max(count, 1):.0f} ms of a core for each",
            flush=True,
        )
    finally:
        stop.set()
        sender.join()
        reader.join()
    if not delays:
        print(f"latency  at {rate:,} rows a second and view: longer than the span, nothing has come", flush=True)
        return
    p50, p99, longest = np.percentile(delays, [50, 99, 100])
    expected = len(views) * rate // 2 * options.seconds
    print(
        f"latency  at {rate:,} rows a second and view: p50 {p50:.0f} ms, p99 {p99:.0f} ms, longest {longest:.0f} ms;"
        f" {len(delays) / expected:.0%} of the rows sent have come in that time",
        flush=True,
    )


def batches(session: Session) -> int:
    """Of all views since they began."""
    return sum(query.progress.get("batch", -1) + 1 for query in session.context.catalog.queries())


def spent(what: str, run_id: str, wait: Callable[[], None]) -> float:
    """Tell the processor time of a span, and the memory at its end; the seconds of the processes of Spark."""
    before, began_s = Usage.of(run_id), time.monotonic()
    wait()
    after, seconds = Usage.of(run_id), time.monotonic() - began_s
    spent_s = {place: total - before.cpu_s[place] for place, total in after.cpu_s.items()}
    tell(what, after, {place: one_s / seconds for place, one_s in spent_s.items()})
    return sum(one_s for (component, _), one_s in spent_s.items() if component == "spark")


def tell(what: str, usage: Usage, share: dict[tuple[str, str], float] | None = None) -> None:
    for component in ("spark", "kafka"):
        places = [place for place in usage.memory if place[0] == component]
        cores = f"{sum(share[place] for place in places):6.1%} of a core" if share else ""
        total = sum(usage.memory[place] for place in places) / MIB
        print(f"{what:8} {component:8} {total:7,.0f} MiB  {cores}", flush=True)
        for place in sorted(places, key=lambda place: -usage.memory[place]):
            cores = f"{share[place]:6.1%}" if share else ""
            size = usage.memory[place] / MIB
            print(f"             {place[1]:20} x {usage.processes[place]:3}  {size:7,.0f} MiB  {cores}", flush=True)


if __name__ == "__main__":
    main()
