"""The packs of a runner: which of its views share a streaming query, from when on, and until when.

What makes a pack, changes it or starts it does so one after the other. Which checkpoint counts is what the catalog
says; it changes for all who are concerned in one transaction, so whoever is killed before that has changed nothing.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from broker.query_origin import QueryOrigin
from broker.topics import Offsets
from changelog.errors import DovetailError, EnvironmentFault, ServiceUnavailable
from joins.dataflow.graph import Dataflow
from runtime.clock import now_ms
from runtime.storage.backup_note import has_backup
from runtime.storage.storage import Storage
from spark_jobs.account.progress import Progress
from spark_jobs.packing.checkpoints import Alone, PackMember, pack_up, taken_out
from spark_jobs.packing.choice import Candidate, PackLimits, Quiet, packs
from spark_jobs.rescaling.generations import PACK, pack_of
from spark_jobs.rescaling.rescale import retire_leftovers
from spark_jobs.runner.failure import of_driver
from spark_jobs.runner.launch import Launcher, megabytes, stopping
from spark_jobs.runner.query import RunningQuery, fenced
from spark_jobs.runner.spark_session import bucket_keys
from spark_jobs.state.checkpoint import Checkpoint
from spark_jobs.state.removal import discard
from sql.catalog import Actual, Desired, Query
from sql.fragments import Engine
from sql.syntax.redact import redacted

_LOG = logging.getLogger("dovetail.runner")
_ATTEMPTS = 3
"""Of a pack whose environment ends it again and again: one of its views may be what does."""
_AFTER_TROUBLE_S = 3600.0
_ASK_AGAIN_S = 60.0
_LOOK_S = 0.15
"""For so long what Spark has said of a pack is good for the other members."""
_AWAITED_TIMES = 10
"""For so many times the time that it takes to be packed, views wait for others that are not quiet for so long yet."""


class PackAtWork:
    """A pack in Spark, which is asked once for all members that are looked at together: each answer costs processor
    time.
    """

    def __init__(self, running: RunningQuery) -> None:
        self._running = running
        self._asking = threading.Lock()
        self._asked_s = -_LOOK_S
        self._error: DovetailError | None = None
        self._at_work = False

    def error(self) -> DovetailError | None:
        self._look()
        return self._error

    @property
    def at_work(self) -> bool:
        self._look()
        return self._at_work

    def progress(self, member: int) -> Progress:
        self._look()
        return self._running.noted(member)

    def first_offsets(self, member: int) -> Offsets:
        return self._running.first_offsets_of(member)

    def stop(self) -> None:
        self._running.stop()
        self._running.progress()

    def _look(self) -> None:
        with self._asking:
            if time.monotonic() - self._asked_s >= _LOOK_S:
                self._error = self._running.error()
                self._at_work = self._error is None and self._running.at_work
                self._asked_s = time.monotonic()


@dataclass(frozen=True)
class PackedQuery:
    """A view at work in a pack, as a ``RunningQuery`` would be for it alone.

    beside   the names of the others
    buckets  that it has when it is alone
    """

    running: PackAtWork
    number: int
    pack: Storage
    beside: tuple[str, ...]
    buckets: int

    @property
    def first_offsets(self) -> Offsets:
        return self.running.first_offsets(self.number)

    def progress(self) -> Progress:
        return self.running.progress(self.number)

    def error(self) -> DovetailError | None:
        return self.running.error()

    @property
    def at_work(self) -> bool:
        return self.running.at_work


@dataclass(frozen=True)
class _Pack:
    """One at work; ``members`` by id."""

    running: PackAtWork
    members: dict[int, PackedQuery]


class Packs:
    """running   what the runner has at work, by id; what is moved is taken out of it
    noted     reports what a query has come to
    trouble   why no query can get on now; '' where nothing is known of it
    """

    def __init__(
        self,
        launcher: Launcher,
        running: MutableMapping[int, RunningQuery | PackedQuery],
        tasks: Executor,
        noted: Callable[[Query, RunningQuery | PackedQuery], None],
        trouble: Callable[[], str],
    ) -> None:
        self._launcher = launcher
        self._running = running
        self._tasks = tasks
        self._noted = noted
        self._trouble = trouble
        self._limits: PackLimits = launcher.settings.packs
        self._quiet = Quiet(self._limits)
        self._lock = threading.RLock()
        self._moving: Counter[int] = Counter()
        self._at_work: dict[str, _Pack] = {}
        self._apart: dict[str, str] = {}
        """Packs that are to be taken apart: why."""
        self._attempts: Counter[str] = Counter()
        self._alone_until_s: dict[int, float] = {}

    # -- asked by the runner

    def moves(self, query: Query) -> bool:
        """Whether it is on its way into a pack, or out of one: it is nobody else's meanwhile."""
        return self._moving[query.id] > 0

    def pack_of(self, query: Query) -> Storage | None:
        return pack_of(self._launcher.checkpoint(query))

    def started(self, query: Query) -> PackedQuery | None:
        """A query whose checkpoint is in a pack, at work there with the others; None where it is alone by now.

        Raises EnvironmentFault where the pack cannot start, and is taken apart at the next try.
        """
        with self._lock:
            query = self._launcher.as_it_is(query)
            pack = self.pack_of(query)
            if pack is None:
                return None
            try:
                at_work = self._at_work.get(pack.location) or self._start(pack)
            except Exception as failure:
                error = of_driver(failure, query.name)
                self._count(pack, error)
                if error.retry or pack.location not in self._apart:
                    raise
                raise EnvironmentFault(
                    f"its pack cannot start, and is taken apart: {error.what}", where=error.where, fix=error.fix
                ) from failure
            return at_work.members.get(query.id) if at_work is not None else None

    def failed(self, query: Query, packed: PackedQuery, error: DovetailError) -> None:
        """The pack has ended: it is started again, or taken apart where that would not help."""
        with self._lock:
            if self.has_stopped(packed):
                return
            self._stop(packed.pack)
            self._count(packed.pack, error)
            if packed.pack.location in self._apart:
                _LOG.warning('the pack of "%s" has failed: its views run alone\n%s', query.name, error)

    def has_stopped(self, packed: PackedQuery) -> bool:
        """Whether its pack was, by the runner."""
        at_work = self._at_work.get(packed.pack.location)
        return at_work is None or at_work.running is not packed.running

    def well(self, packed: PackedQuery) -> None:
        self._attempts.pop(packed.pack.location, None)

    def put_out(self, query: Query, why: str) -> None:
        """Have a query alone, its state in a checkpoint of its own; the others start again without it."""
        with self._lock:
            query = self._launcher.as_it_is(query)
            if (pack := self.pack_of(query)) is not None:
                self._leave(pack, [query], why)

    def _put_out_loud(self, why: str, queries: Sequence[Query]) -> None:
        for query in queries:
            self.put_out(query, why)

    def stop_all(self) -> None:
        with self._lock:
            for location in list(self._at_work):
                self._stop_at(location)

    def tidy(self) -> None:
        """Remove packs that no query is in: those that a runner was making when it ended, or removing."""
        checkpoints = self._launcher.settings.checkpoints
        with suppress(DovetailError, OSError):
            there = [name for name in checkpoints.names() if name.startswith(PACK)]
            named = {pack.location for query in self._queries() if (pack := self.pack_of(query)) is not None}
            for name in there:
                place = checkpoints.inside(name)
                # Another catalog may have its packs there as well.
                if place.location not in named and name.startswith(self._prefix):
                    self._discard(place)

    @property
    def wanted(self) -> bool:
        """Whether views are packed at all."""
        return self._limits.after_s > 0

    def look(self, queries: Sequence[Query], busy: frozenset[int]) -> None:
        """Begin what is to be moved now. ``busy``: those that somebody is seeing to."""
        now_s = time.monotonic()
        for query in queries:
            self._listen(query, now_s)
        if self._moving.total():
            return
        for query in queries:
            if (why := self._quiet.loud(query.id)) and query.id not in busy and self.pack_of(query) is not None:
                self._begin([query], partial(self._put_out_loud, why))
                return
        alone = {query.id: query for query in queries if self._may_be_packed(query, now_s)}
        quiet = [view for view in alone if self._quiet.long_enough(view, now_s)]
        # Views that are made one after the other join one pack, and not the first of them one of their own.
        awaited = [query for query in queries if self._is_on_its_way(query, alone, quiet)]
        if awaited and not any(self._quiet.long_enough(view, now_s, _AWAITED_TIMES) for view in quiet):
            return
        known = [one for view in quiet if (one := self._candidate(alone[view], now_s)) is not None]
        for views in packs(known)[:1]:
            # Those that somebody is seeing to are let be: that takes no longer than until the next look.
            if busy.isdisjoint(views):
                self._begin([alone[view] for view in views], self._form)

    # -- which

    def _listen(self, query: Query, now_s: float) -> None:
        if query.id not in self._running or query.actual is not Actual.RUNNING:
            self._quiet.forget(query.id)
            return
        rows = query.progress.get("counts", {}).get("rows_in", 0)
        size = sum(size for _, size in query.progress.get("state", {}).values())
        self._quiet.note(query.id, rows, size, now_s)

    def _may_be_packed(self, query: Query, now_s: float) -> bool:
        return (
            query.engine == Engine.SPARK
            and query.desired is Desired.RUNNING
            and query.lease_ms == 0
            and isinstance(self._running.get(query.id), RunningQuery)
            and now_s >= self._alone_until_s.get(query.id, now_s)
        )

    def _is_on_its_way(self, query: Query, alone: Collection[int], quiet: Collection[int]) -> bool:
        """Whether it may be quiet for long enough before long."""
        if query.engine == Engine.SPARK and query.desired is Desired.RUNNING and query.actual is Actual.PENDING:
            return query.lease_ms == 0
        return query.id in alone and query.id not in quiet and not self._quiet.loud(query.id)

    def _candidate(self, query: Query, now_s: float) -> Candidate | None:
        """None where something stands against it, which is not asked again for a while."""
        origin = None
        with suppress(DovetailError, OSError):
            origin = self._packable(query)
        if origin is None:
            self._alone_until_s[query.id] = now_s + _ASK_AGAIN_S
            return None
        return Candidate(query.id, origin.topic_ids)

    def _packable(self, query: Query) -> QueryOrigin | None:
        """The origin of a query that may share its batches: it has no backup and no period of its own, is not to be cut
        into other buckets, and has answered the history of its inputs.
        """
        plan, checkpoint = self._launcher.plan(query), Checkpoint(self._launcher.checkpoint(query))
        origin, flow = checkpoint.expect_origin(), plan.fragment(query.name).dataflow
        if flow.period_ms or plan.settings.number("buckets") not in (None, origin.buckets):
            return None
        if has_backup(checkpoint.storage, now_ms()):
            return None
        _, read = checkpoint.committed() or (-1, {})
        answered = all(
            read.get(topic, {}).get(partition, 0) >= end
            for topic, ends in origin.history.items()
            for partition, end in ends.items()
        )
        return origin if answered else None

    def _begin(self, queries: Sequence[Query], move: Callable[[Sequence[Query]], None]) -> None:
        """In a task of its own; from now on nobody else sees to ``queries``."""
        ids = [query.id for query in queries]
        self._moving.update(ids)

        def moved() -> None:
            try:
                move(queries)
            except Exception as failure:  # noqa: BLE001 - the views go on as they were
                error = of_driver(failure, queries[0].name)
                _LOG.warning("views stay as they are, and are not moved\n%s", error, exc_info=not error.retry)
                self._keep_alone(ids)
            finally:
                self._moving.subtract(ids)

        self._tasks.submit(moved)

    def _keep_alone(self, ids: Iterable[int]) -> None:
        for view in ids:
            self._quiet.forget(view)
            self._alone_until_s[view] = time.monotonic() + _AFTER_TROUBLE_S

    # -- into a pack

    def _form(self, queries: Sequence[Query]) -> None:
        with self._lock:
            begun_s = time.monotonic()
            for query in queries:
                self._say(query, f"with {len(queries) - 1} others")
                if (running := self._running.pop(query.id, None)) is not None:
                    assert isinstance(running, RunningQuery)
                    running.stop()
                    self._noted(query, running)
            settled = [self._settled(query) for query in queries]
            pack = self._launcher.settings.checkpoints.inside(f"{self._prefix}{uuid.uuid4().hex[:8]}")

            def told(size: int) -> None:
                for query in queries:
                    self._say(query, f"with {len(queries) - 1} others, {megabytes(size)} written")

            made = pack_up(self._launcher.session, settled, pack, self._keys, told)
            places = [place.location for place in made.places]
            try:
                self._switch(pack, zip(queries, settled, places, strict=True))
            except EnvironmentFault:
                pack.clear()
                raise
            for one in settled:
                self._discard(one.checkpoint)
            _LOG.info(
                "packed %s: %s rows, %s in %.1f s", ", ".join(query.name for query in queries), f"{made.rows:,}",
                megabytes(made.bytes), time.monotonic() - begun_s,
            )  # fmt: skip

    def _settled(self, query: Query) -> Alone:
        """A query that has been stopped, with each batch that it has begun committed."""
        query = self._launcher.as_it_is(query)
        plan, place = self._launcher.plan(query), self._launcher.checkpoint(query)
        fragment, checkpoint = plan.fragment(query.name), Checkpoint(place)
        settings = self._launcher.job_settings(plan)
        if not self._rests(checkpoint):
            settles = replace(settings, settles=True)
            with stopping(self._launcher.started(query, fragment, place, settles)) as settling:
                settling.await_settled()
                self._noted(query, settling)
        return Alone(str(query.id), query.name, fragment.dataflow, place)

    def _rests(self, checkpoint: Checkpoint, *, fails: bool = False) -> bool:
        """Whether what is written is that of the last committed batch, and will stay so: nobody of before writes on.

        fails   a batch that has begun comes to no end. It counts for nothing unless Kafka has it
        """
        job = self._launcher.settings.job
        mark = fenced(self._launcher.brokers, checkpoint.expect_origin(), job)
        committed, _ = checkpoint.committed() or (-1, {})
        return mark <= committed and (fails or checkpoint.last_planned <= committed)

    # -- at work

    def _start(self, pack: Storage) -> _Pack | None:
        members = self._members(pack)
        if not self.wanted:
            self._apart.setdefault(pack.location, "DOVETAIL_PACK_AFTER_S is 0")
        leaving = [query for query in members if query.desired is not Desired.RUNNING]
        if why := self._apart.get(pack.location, ""):
            leaving = members
        if leaving:
            members = self._leave(pack, leaving, why or "it is not to run")
        if not members:
            return None
        places = {query.id: self._launcher.checkpoint(query) for query in members}
        for place in places.values():
            retire_leftovers(place, self._launcher.brokers, self._launcher.settings.job.local_copy_dir)
        running = PackAtWork(self._launch(pack, members))
        self._at_work[pack.location] = _Pack(
            running,
            {
                query.id: PackedQuery(
                    running,
                    number,
                    pack,
                    tuple(other.name for other in members if other.id != query.id),
                    Checkpoint(places[query.id]).expect_origin().buckets,
                )
                for number, query in enumerate(members)
            },
        )
        return self._at_work[pack.location]

    def _launch(self, pack: Storage, members: Sequence[Query], *, settles: bool = False) -> RunningQuery:
        settings = replace(self._launcher.settings.job, settles=settles)
        return self._launcher.started_pack(pack, {str(query.id): query for query in members}, settings)

    def _count(self, pack: Storage, error: DovetailError) -> None:
        """What a failure says against a pack: all of what is not its environment's, and that if it goes on."""
        if not self._trouble():
            self._attempts[pack.location] += 1
        if not error.retry or self._attempts[pack.location] >= _ATTEMPTS:
            self._apart[pack.location] = f"it has failed: {error.what}"

    def _stop(self, pack: Storage) -> None:
        self._stop_at(pack.location)

    def _stop_at(self, location: str) -> None:
        if (at_work := self._at_work.pop(location, None)) is not None:
            for view in at_work.members:
                self._running.pop(view, None)
            at_work.running.stop()

    # -- out of a pack

    def _leave(self, pack: Storage, leaving: Sequence[Query], why: str) -> list[Query]:
        """Have ``leaving`` alone, and all where none or one would stay; those that stay."""
        members = self._members(pack)
        going = {query.id for query in leaving}
        if len(members) - len(going) < 2:
            going = {query.id for query in members}
        with self._moved(members):
            at_work = self._at_work.get(pack.location)
            self._stop(pack)
            wanted = [query for query in members if query.desired is not Desired.DROPPED]
            for query in wanted:
                self._say(query, f"{'leaves' if query.id in going else 'stays in'} its pack: {why}")
                if at_work is not None and query.id in at_work.members:
                    self._noted(query, at_work.members[query.id])
            if not self._rests(Checkpoint(pack), fails=pack.location in self._apart):
                with stopping(self._launch(pack, wanted, settles=True)) as settling:
                    settling.await_settled()
            gone = [self._member(query) for query in members if query.id in going]
            leavers = [query for query in members if query.id in going]
            made = [
                taken_out(self._launcher.session, one, self._keys).location if query in wanted else ""
                for query, one in zip(leavers, gone, strict=True)
            ]
            self._switch(pack, zip(leavers, gone, made, strict=True))
            staying = [query for query in members if query.id not in going]
            if staying:
                for one in gone:
                    one.checkpoint.clear()
            else:
                self._discard(pack)
            if self._apart.pop(pack.location, ""):
                self._keep_alone(going)
            self._attempts.pop(pack.location, None)
            for view in going:
                self._quiet.forget(view)
            _LOG.info("out of their pack: %s (%s)", ", ".join(query.name for query in leavers), why)
            return staying

    def _member(self, query: Query) -> PackMember:
        place = self._launcher.checkpoint(query)
        return PackMember(str(query.id), query.name, self._as_it_was(query, place), place)

    def _as_it_was(self, query: Query, place: Storage) -> Dataflow | None:
        """None where the plan is another one than that of the state."""
        with suppress(DovetailError):
            fragment = self._launcher.plan(query).fragment(query.name)
            if fragment.fingerprint == Checkpoint(place).expect_origin().fingerprint:
                return fragment.dataflow
        return None

    # -- both

    def _switch(self, pack: Storage, switched: Iterable[tuple[Query, Alone | PackMember, str]]) -> None:
        """From here on the others count: of each query the checkpoint it has, and the one that it gets."""
        every = list(switched)
        catalog = self._launcher.catalog
        if not catalog.switch_checkpoints([(query.id, one.checkpoint.location, made) for query, one, made in every]):
            raise EnvironmentFault(
                "another process has given one of the views another checkpoint",
                where=pack.location,
                fix="run one runner for each catalog",
            )
        for query, _, _ in every:
            progress: dict[str, Any] = {**self._launcher.as_it_is(query).progress, "state": {}}
            progress.pop("packed_with", None)
            catalog.report(query.id, now_ms=now_ms(), progress=progress)

    @contextmanager
    def _moved(self, queries: Sequence[Query]) -> Iterator[None]:
        ids = [query.id for query in queries]
        self._moving.update(ids)
        try:
            yield
        finally:
            self._moving.subtract(ids)

    @cached_property
    def _prefix(self) -> str:
        """So begin the names of the packs of this catalog."""
        return f"{PACK}{self._launcher.catalog.identity(uuid.uuid4().hex)[:8]}-"

    def _queries(self) -> list[Query]:
        return self._launcher.catalog.queries(dropped=True)

    def _members(self, pack: Storage) -> list[Query]:
        """As the catalog says; the dropped ones that are yet to go, too."""
        return [query for query in self._queries() if self.pack_of(query) == pack]

    def _keys(self, buckets: int) -> tuple[int, ...]:
        return bucket_keys(self._launcher.session, buckets)

    def _discard(self, place: Storage) -> None:
        discard(place, self._launcher.brokers, self._launcher.settings.job.local_copy_dir, outlived=True)

    def _say(self, query: Query, said: str) -> None:
        with suppress(ServiceUnavailable):
            self._launcher.catalog.report(query.id, now_ms=now_ms(), actual=Actual.PACKING, error=redacted(said))
