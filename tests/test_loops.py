"""Every thread of the product goes on after a defect, and says so: none is started but by ``supervised_thread``.

A timer is none of them: it runs once.
"""

from __future__ import annotations

import ast
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import redis
from prometheus_client import CollectorRegistry

from dovetail.broker.address import BrokerAddress
from dovetail.broker.following import TakenRecords, TopicFollower
from dovetail.broker.presence import BrokerWatch
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.dictionaries.cache.cold.invalidation_listener import Listener
from dovetail.dictionaries.cache.cold.key_locks import Lease, LeaseKeeper
from dovetail.dictionaries.cache.filling.renewal import BackgroundRenewal
from dovetail.dictionaries.layouts.reloader import Reloader
from dovetail.runtime.generated_streams import GeneratedStream
from dovetail.runtime.health_server import HealthServer, HealthStatus, own_requests_only
from dovetail.runtime.processes.listener import listening
from dovetail.runtime.sole_holder import SoleHolder
from dovetail.runtime.storage import watch as storage_watch
from dovetail.runtime.storage.storage import Storage
from dovetail.services.commands.command_codec import Command, Outcome
from dovetail.services.commands.command_reader import CommandReader
from dovetail.services.serve.watch.watcher import Watcher
from dovetail.services.session import queries
from dovetail.services.worker.query.pulse import Pulse
from dovetail.services.worker.query.worker_lease import WorkerLease
from dovetail.services.worker.supervisor.child_process import Child
from dovetail.spark_jobs.rescaling import rescale
from dovetail.spark_jobs.runner.executor_watch import ExecutorWatch
from dovetail.spark_jobs.runner.jvm_watch import JvmUse, JvmWatch
from dovetail.spark_jobs.source.ends_watch import EndsAnswer, EndsWatch, WatchedEnds
from dovetail.sql.catalog import Catalog, Query
from tests.dictionaries.cache_world import definition
from tests.paths import ROOT
from tests.services.serve.world import World
from tests.test_layers import PRESENT, sources

HOME = "changelog/work/supervised_thread.py"
OF_ONE_CALL = "broker/timed_call.py"
"""Its threads make one call, whose failure is told to who waits for it."""
NOBODY = BrokerAddress("127.0.0.1:1")
WAIT_S = 60.0
ENDS = {
    "services/serve/tails/followed.py": "an error is told to those who follow, who ask again where they were",
    "services/worker/lane/lane.py": "an error ends the query, which is started again",
}
"""Threads whose work raises nothing: what it meets, it tells."""


class Fault:
    """A defect of what it is put into, at the first call on another thread; after it all is as it was."""

    def __init__(self, patches: pytest.MonkeyPatch) -> None:
        self._patches = patches
        self._met = threading.Event()
        self.gone_on = threading.Event()

    def of(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def faulty(*given: Any, **named: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                if not self._met.is_set():
                    self._met.set()
                    raise ZeroDivisionError("a defect")
                self.gone_on.set()
            return call(*given, **named)

        return faulty

    def put_into(self, owner: object, name: str) -> None:
        self._patches.setattr(owner, name, self.of(getattr(owner, name)))


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Fault:
    return Fault(monkeypatch)


@contextmanager
def following(fault: Fault, _folder: Path) -> Iterator[None]:
    class Sink:
        def take(self, records: TakenRecords, ended: object) -> None: ...
        def missed(self) -> None: ...
        def after_poll(self) -> bool:
            return False

        def unavailable(self, why: str) -> ServiceUnavailable:
            return ServiceUnavailable(why)

    fault.put_into(TopicFollower, "_read")
    follower = TopicFollower(NOBODY, "t", Sink(), group="g", reset="earliest", batch=1)
    follower.start()
    with closing(follower):
        yield


@contextmanager
def broker_watch(fault: Fault, _folder: Path) -> Iterator[None]:
    fault.put_into(BrokerWatch, "_ask")
    watch = BrokerWatch(NOBODY)
    watch.start()
    yield
    watch.stop()


@contextmanager
def store_watch(fault: Fault, _folder: Path) -> Iterator[None]:
    fault.put_into(storage_watch, "expect_answer")
    watch = storage_watch.StorageWatch(cast(Storage, SimpleNamespace(folder=None, expect_bucket=lambda: None)))
    watch.start()
    yield
    watch.stop()


@contextmanager
def sole_holder(fault: Fault, folder: Path) -> Iterator[None]:
    fault.put_into(Catalog, "renew_leadership")
    with closing(Catalog.open(f"sqlite:///{folder / 'catalog.db'}")) as catalog:
        holder = SoleHolder(catalog, "spark", "running it", lost=lambda _: None)
        yield
        holder.release()


@contextmanager
def generated_stream(fault: Fault, _folder: Path) -> Iterator[None]:
    fault.put_into(GeneratedStream, "_write")
    query = Query("s", "CREATE TABLE s (a int) WITH (connector = 'datagen')", "", "", "s", "identity")
    made = GeneratedStream(query, NOBODY)
    yield
    made.close()


@contextmanager
def jvm_watch(fault: Fault, _folder: Path) -> Iterator[None]:
    watch = JvmWatch(lambda: JvmUse(0.1, 0.1))
    fault.put_into(watch, "_use")
    watch.start()
    yield
    watch.stop()


@contextmanager
def health_server(fault: Fault, _folder: Path) -> Iterator[None]:
    fault.put_into(HealthServer, "_serve")
    listener, checked = listening("127.0.0.1", 0, "-"), own_requests_only((), "-")
    said = partial(HealthStatus, True)
    with closing(HealthServer(said, said, CollectorRegistry(), listener, checked)):
        yield


@contextmanager
def renewed_select(fault: Fault, folder: Path) -> Iterator[None]:
    fault.put_into(Catalog, "renew")
    with closing(Catalog.open(f"sqlite:///{folder / 'catalog.db'}")) as catalog:
        context = cast(Any, SimpleNamespace(catalog=catalog))
        with queries._renewed(context, "q"):  # noqa: SLF001
            yield


@contextmanager
def watcher(fault: Fault, folder: Path) -> Iterator[None]:
    fault.put_into(Watcher, "look")
    world = World(folder)
    made = Watcher(lambda: world.open_session(lambda _: None, lambda _: False), every_s=0.01)
    made.start()
    with closing(made):
        yield


@contextmanager
def pulse(fault: Fault, _folder: Path) -> Iterator[None]:
    fault.put_into(Pulse, "_beat")
    Pulse(None)
    yield


@contextmanager
def worker_lease(fault: Fault, folder: Path) -> Iterator[None]:
    fault.put_into(WorkerLease, "_renew")
    with closing(WorkerLease(folder)):
        yield


@contextmanager
def log_of_child(fault: Fault, _folder: Path) -> Iterator[None]:
    """The line at which it fails is lost, the next ones are not."""
    read, write = os.pipe()
    lines, last = os.fdopen(read), deque[str]()
    kept = SimpleNamespace(append=fault.of(last.append))
    child = cast(Child, SimpleNamespace(_last=kept))
    with SupervisedThread("log", partial(Child._forward, child, lines)):  # noqa: SLF001
        os.write(write, b"lost\nkept\n")
        os.close(write)
        yield


@contextmanager
def reporting_size(fault: Fault, _folder: Path) -> Iterator[None]:
    with rescale.reporting_size(cast(Any, SimpleNamespace(bytes=1)), fault.of(lambda size: None)):
        yield


@contextmanager
def executor_watch(fault: Fault, _folder: Path) -> Iterator[None]:
    watch = ExecutorWatch("spark://one:7077", "1g", fault.of(lambda: 1), lambda: True)
    watch.start()
    yield
    watch.stop()


@contextmanager
def ends_watch(fault: Fault, _folder: Path) -> Iterator[None]:
    """The source that waits meanwhile is answered."""
    ends_and_ids = {"t": {0: 5}}, {"t": "id"}
    fault._patches.setattr(EndsWatch, "_ends_and_ids", lambda self, names: ends_and_ids)  # noqa: SLF001
    fault.put_into(EndsWatch, "_look")
    with closing(EndsWatch(NOBODY)) as watch, closing(WatchedEnds(watch.address, "q", ["t"])) as source:
        assert source.ask() == EndsAnswer({"t": {"0": 5}}, {"t": "id"}, 0.0)
        yield


@contextmanager
def reloader(fault: Fault, _folder: Path) -> Iterator[None]:
    made = Reloader(definition("hashed", lifetime_s=(0, 1)), fault.of(lambda: None), lambda failure: None)
    made.start()
    with closing(made):
        yield


@contextmanager
def renewal(fault: Fault, _folder: Path) -> Iterator[None]:
    """The keys at which it fails are asked for again by whoever misses them."""
    failed = threading.Event()
    made = BackgroundRenewal("d", fault.of(lambda keys: None), lambda failure: failed.set())
    with closing(made):
        made.ask(["a"])
        failed.wait(WAIT_S)
        made.ask(["a"])
        yield


@contextmanager
def lease_keeper(fault: Fault, _folder: Path) -> Iterator[None]:
    made = LeaseKeeper(fault.of(lambda lease, keys: None), lambda failure: None)
    with closing(made), made.keeping(Lease("t", "v", "s"), ["a"]):
        yield


@contextmanager
def invalidation_listener(fault: Fault, _folder: Path) -> Iterator[None]:
    fault.put_into(Listener, "_listen")
    made = Listener(redis.Redis(port=1), "c", lambda message: None, lambda: None, lambda failure: None)
    with closing(made):
        yield


LOOPS = {
    "broker/following.py": following,
    "broker/presence.py": broker_watch,
    "dictionaries/cache/cold/invalidation_listener.py": invalidation_listener,
    "dictionaries/cache/cold/key_locks.py": lease_keeper,
    "dictionaries/cache/filling/renewal.py": renewal,
    "dictionaries/layouts/reloader.py": reloader,
    "runtime/generated_streams.py": generated_stream,
    "runtime/health_server.py": health_server,
    "runtime/sole_holder.py": sole_holder,
    "runtime/storage/watch.py": store_watch,
    "services/serve/watch/watcher.py": watcher,
    "services/session/queries.py": renewed_select,
    "services/worker/query/pulse.py": pulse,
    "services/worker/query/worker_lease.py": worker_lease,
    "services/worker/supervisor/child_process.py": log_of_child,
    "spark_jobs/rescaling/rescale.py": reporting_size,
    "spark_jobs/runner/jvm_watch.py": jvm_watch,
    "spark_jobs/runner/executor_watch.py": executor_watch,
    "spark_jobs/source/ends_watch.py": ends_watch,
}
"""By the file that starts it."""
AT_A_BROKER = "services/commands/command_reader.py"


def assert_goes_on(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    assert fault.gone_on.wait(WAIT_S)
    said = [record for record in caplog.records if record.name == "dovetail.threads"]
    assert ["ZeroDivisionError: a defect" in record.getMessage() for record in said] == [True]


@pytest.mark.parametrize("file", LOOPS)
def test_a_loop_goes_on_after_a_defect_and_says_so(
    file: str, fault: Fault, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "dovetail.threads"), LOOPS[file](fault, tmp_path):
        assert_goes_on(fault, caplog)


@pytest.mark.services
def test_the_reader_of_commands_goes_on_after_a_defect_and_says_so(
    broker: str, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    class Nothing:
        def execute(self, command: Command) -> Outcome:
            raise NotImplementedError

    fault.put_into(CommandReader, "_read")
    with closing(CommandReader(BrokerAddress(broker), 30.0, "w", Nothing())):
        assert_goes_on(fault, caplog)


def made_in(path: Path, *names: str) -> bool:
    """Whether a file makes, or extends, one of these."""
    called = [
        part
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call | ast.ClassDef)
        for part in (node.bases if isinstance(node, ast.ClassDef) else [node.func])
    ]
    return any(ast.unparse(part).rpartition(".")[2] in names for part in called)


def files_with(*names: str) -> set[str]:
    paths = [path for layer in PRESENT for path in sources(layer)]
    return {str(path.relative_to(ROOT)) for path in paths if made_in(path, *names)}


def test_no_other_file_makes_a_thread() -> None:
    assert files_with("Thread") == {HOME, OF_ONE_CALL}


def test_every_file_that_starts_one_is_tested() -> None:
    assert files_with("SupervisedThread", "PeriodicThread") - {HOME} == {*LOOPS, *ENDS, AT_A_BROKER}
