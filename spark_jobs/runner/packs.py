"""The packs of a runner: which of its views share a streaming query, from when on, and until when.

What makes a pack, changes it or starts it does so one after the other. Which checkpoint counts is what the catalog
says; it changes for all who are concerned in one transaction, so whoever is killed before that has changed nothing.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

from dovetail.broker.query_origin import QueryOrigin
from dovetail.changelog.errors import DovetailError, EnvironmentFault, ServiceUnavailable
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.clock import now_ms
from dovetail.runtime.storage.backup_note import has_backup
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.exchange.bucket_keys import bucket_keys
from dovetail.spark_jobs.packing.alone_note import is_to_be_alone, note_alone
from dovetail.spark_jobs.packing.checkpoints import Alone, Packed, PackMember, pack_up, taken_out
from dovetail.spark_jobs.packing.choice import (
    FEWEST,
    LONGEST_BATCH_S,
    Candidate,
    LoadTracker,
    OpenPack,
    PackLimits,
    joinings,
)
from dovetail.spark_jobs.rescaling.generations import PACK, pack_of
from dovetail.spark_jobs.rescaling.rescale import retire_leftovers
from dovetail.spark_jobs.runner.failure import of_driver
from dovetail.spark_jobs.runner.launch import Launcher, megabytes, stopping
from dovetail.spark_jobs.runner.packed_query import PackAtWork, PackedQuery
from dovetail.spark_jobs.runner.query import RunningQuery, fenced
from dovetail.spark_jobs.stages.at_fault import at_fault, text_with_notes
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from dovetail.spark_jobs.state.removal import discard
from dovetail.sql.catalog import Actual, Desired, Query
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.redact import redacted

_LOG = logging.getLogger("dovetail.runner")
_ATTEMPTS = 3
"""Of a pack whose environment ends it again and again: one of its views may be what does."""
_AFTER_TROUBLE_S = 3600.0
_ASK_AGAIN_S = 60.0
_AT_ONCE = 8
_AWAITED_TIMES = 10
"""For so many times the time that it takes to be packed, views wait for others that are not quiet for so long yet; and
a pack that others have joined, or left, is left alone for the cooldown.
"""

_One = TypeVar("_One")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class _Pack:
    """One at work since ``since_s``; ``members`` by id."""

    running: PackAtWork
    pack: Storage
    members: dict[int, PackedQuery]
    topic_ids: Mapping[str, str]
    since_s: float


@dataclass(frozen=True)
class _Verdict:
    """A pack has failed: why, and for which views. They are to leave it; or all, where nobody knows (none)."""

    why: str
    views: frozenset[int]


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
        self._tracker = LoadTracker(self._limits)
        self._lock = threading.RLock()
        self._moving: Counter[int] = Counter()
        self._at_work: dict[str, _Pack] = {}
        self._verdicts: dict[str, _Verdict] = {}
        """On packs that have failed, by location."""
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

        Raises EnvironmentFault where the pack cannot start; at the next try those leave for whom it cannot.
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
                self._count(pack, error, frozenset(map(int, at_fault(text_with_notes(failure)))))
                if error.retry:
                    raise
                # Not the end of this view: whose it is shows when it runs alone.
                raise EnvironmentFault(
                    f"its pack cannot start, and is tried without the view that it fails for: {error.what}",
                    where=error.where,
                    fix=error.fix,
                ) from failure
            return at_work.members.get(query.id) if at_work is not None else None

    def failed(self, query: Query, packed: PackedQuery, error: DovetailError) -> None:
        """The pack has ended: it is started again, without the view that it fails for where that would not help."""
        with self._lock:
            if self.has_stopped(packed):
                return
            views = packed.running.at_fault
            self._stop(packed.pack)
            self._count(packed.pack, error, views)
            if (verdict := self._verdicts.get(packed.pack.location)) is not None:
                leaving = "the view that it has failed for" if verdict.views else "all of its views"
                _LOG.warning('the pack of "%s" has failed: %s will run alone\n%s', query.name, leaving, error)

    def has_stopped(self, packed: PackedQuery) -> bool:
        """Whether its pack was, by the runner."""
        at_work = self._at_work.get(packed.pack.location)
        return at_work is None or at_work.running is not packed.running

    def mark_healthy(self, packed: PackedQuery) -> None:
        self._attempts.pop(packed.pack.location, None)

    def put_out(self, query: Query, why: str) -> None:
        """Have a query alone, its state in a checkpoint of its own; the others start again without it."""
        self._put_out([query], why)

    def _put_out(self, queries: Sequence[Query], why: str) -> None:
        """Of one pack."""
        with self._lock:
            by_pack: dict[str, list[Query]] = defaultdict(list)
            packs: dict[str, Storage] = {}
            for query in map(self._launcher.as_it_is, queries):
                if (pack := self.pack_of(query)) is not None:
                    packs[pack.location] = pack
                    by_pack[pack.location].append(query)
            for location, members in by_pack.items():
                self._leave(packs[location], members, why)

    def _evict(self, why: str, queries: Sequence[Query]) -> None:
        self._put_out(queries, why)
        self._pin_unpacked([query.id for query in queries], self._cooldown_s, noted=False)

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
    def _cooldown_s(self) -> float:
        return _AWAITED_TIMES * self._limits.after_s

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
        here = {query.id: query for query in queries}
        for at_work in list(self._at_work.values()):
            overloaded = self._tracker.leaves(at_work.members)
            if overloaded and busy.isdisjoint(overloaded) and overloaded.keys() <= here.keys():
                why = ", ".join(sorted(set(overloaded.values())))
                self._begin([here[view] for view in overloaded], partial(self._evict, why))
                return
        alone = {query.id: query for query in queries if self._may_be_packed(query, now_s)}
        quiet = [view for view in alone if self._tracker.long_enough(view, now_s)]
        # Views that are made one after the other join one pack, and not the first of them one of their own.
        awaited = [query for query in queries if self._is_on_its_way(query, alone, quiet)]
        if awaited and not any(self._tracker.long_enough(view, now_s, _AWAITED_TIMES) for view in quiet):
            return
        there = self._open(here, now_s)
        if not quiet or (not there and len(quiet) < FEWEST):
            return
        known = [one for view in quiet if (one := self._candidate(alone[view], now_s)) is not None]
        for joining in joinings(known, there, self._limits)[:1]:
            # Those that somebody is seeing to are let be: that takes no longer than until the next look.
            if busy.isdisjoint(joining.views):
                into = joining.into.location if joining.into is not None else ""
                self._begin([alone[view] for view in joining.views], partial(self._form, into))

    # -- which

    def _listen(self, query: Query, now_s: float) -> None:
        if query.id not in self._running or query.actual is not Actual.RUNNING:
            self._tracker.forget(query.id)
            return
        rows = query.progress.get("counts", {}).get("rows_in", 0)
        size = sum(size for _, size in query.progress.get("state", {}).values())
        running = self._running.get(query.id)
        at_rest = not isinstance(running, RunningQuery) or running.at_rest
        self._tracker.note(query.id, rows, size, now_s, batch=query.progress.get("batch", -1), at_rest=at_rest)

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
        return query.id in alone and query.id not in quiet and not self._tracker.overloaded(query.id)

    def _open(self, queries: Mapping[int, Query], now_s: float) -> list[OpenPack]:
        """Packs that have cooled down long enough to be joined, and of which everybody is at work."""
        return [
            OpenPack(location, len(pack.members), pack.topic_ids, self._tracker.load(pack.members))
            for location, pack in list(self._at_work.items())
            if now_s - pack.since_s >= self._cooldown_s
            and all(self._is_at_work(queries.get(view)) for view in pack.members)
        ]

    def _is_at_work(self, query: Query | None) -> bool:
        return query is not None and query.desired is Desired.RUNNING and query.actual is Actual.RUNNING

    def _candidate(self, query: Query, now_s: float) -> Candidate | None:
        """None where something stands against it, which is not asked again for a while."""
        origin = None
        try:
            origin = self._packable(query)
        except Exception as failure:  # noqa: BLE001 - whatever is wrong with one view, it runs as it does
            foreseen = isinstance(failure, DovetailError | OSError)
            _LOG.warning(
                '"%s" runs alone: its checkpoint cannot be looked at: %s', query.name, failure, exc_info=not foreseen
            )
        if origin is None:
            self._alone_until_s[query.id] = now_s + _ASK_AGAIN_S
            return None
        return Candidate(query.id, origin.topic_ids, self._tracker.load([query.id]))

    def _packable(self, query: Query) -> QueryOrigin | None:
        """The origin of a query that may share its batches: it has no backup and no period of its own, is not to be cut
        into other buckets, and has answered the history of its inputs.
        """
        plan, checkpoint = self._launcher.plan(query), Checkpoint(self._launcher.checkpoint(query))
        origin, flow = checkpoint.expect_origin(), plan.fragment(query.name).dataflow
        if flow.period_ms or plan.settings.number("buckets") not in (None, origin.buckets):
            return None
        if has_backup(checkpoint.storage, now_ms()) or is_to_be_alone(checkpoint.storage, now_ms()):
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
                passes = error.retry or not self._launcher.session_lives
                self._pin_unpacked(ids, self._cooldown_s if passes else _AFTER_TROUBLE_S, noted=not passes)
            finally:
                self._moving.subtract(ids)

        self._tasks.submit(moved)

    def _pin_unpacked(self, views: Collection[int], for_s: float = _AFTER_TROUBLE_S, *, noted: bool = True) -> None:
        """``noted``: after another start of the runner too."""
        for view in views:
            self._tracker.forget(view)
            self._alone_until_s[view] = time.monotonic() + for_s
        for query in self._queries():
            if noted and query.id in views and query.desired is not Desired.DROPPED:
                # Where that fails, it is for as long as this runner lives.
                with suppress(DovetailError, OSError):
                    note_alone(self._launcher.checkpoint(query), now_ms() + int(1000 * for_s))

    # -- into a pack

    def _form(self, into: str, queries: Sequence[Query]) -> None:
        """``into``: where the pack is that they join, which another one with all of them takes the place of; or ''."""
        with self._lock:
            begun_s = time.monotonic()
            there = self._at_work[into].pack if into in self._at_work else None
            former = self._members(there) if there is not None else []
            if into and not (former and all(self._is_at_work(query) for query in former)):
                return
            with self._moved(former):
                made = self._formed(queries, there, former)
            _LOG.info(
                "packed %s%s: %s rows, %s in %.1f s", ", ".join(query.name for query in queries),
                f" with {len(former)} others" if former else "", f"{made.rows:,}", megabytes(made.bytes),
                time.monotonic() - begun_s,
            )  # fmt: skip

    def _formed(self, queries: Sequence[Query], there: Storage | None, former: Sequence[Query]) -> Packed:
        every = [*queries, *former]

        def report(size: int) -> None:
            for query in every:
                self._say(query, f"with {len(every) - 1} others" + (f", {megabytes(size)} written" if size else ""))

        report(0)
        self._to_rest(queries, there)
        if there is not None:
            self._end_pack(there, former)
        drained = _at_once(self._drained, queries)
        members = [self._member(query) for query in former]
        pack = self._launcher.settings.checkpoints.inside(f"{self._prefix}{uuid.uuid4().hex[:8]}")
        made = pack_up(self._launcher.session, drained, pack, self._keys, report, members)
        try:
            self._switch(pack, zip(every, [*drained, *members], [place.location for place in made.places], strict=True))
        except EnvironmentFault:
            pack.clear()
            raise
        for one in drained:
            self._discard(one.checkpoint)
        if there is not None:
            self._discard(there)
        return made

    def _to_rest(self, queries: Sequence[Query], pack: Storage | None) -> None:
        """Stop ``queries``, which run alone, each when it has no batch under way; ``pack`` has none then either."""
        found = [self._running.get(query.id) for query in queries]
        resting: list[RunningQuery | PackAtWork] = [one for one in found if isinstance(one, RunningQuery)]
        if pack is not None:
            resting.append(self._at_work[pack.location].running)
        try:
            _at_once(lambda one: one.quiesce(LONGEST_BATCH_S), resting)
            for query in queries:
                if isinstance(running := self._running.pop(query.id, None), RunningQuery):
                    running.stop()
                    self._noted(query, running)
        except BaseException:
            for one in resting:
                one.go_on()
            raise

    def _end_pack(self, pack: Storage, members: Sequence[Query], *, fails: bool = False) -> None:
        """Have a pack at rest, its last word noted of each of ``members``."""
        if (at_work := self._at_work.get(pack.location)) is not None:
            at_work.running.quiesce(LONGEST_BATCH_S)
        self._stop(pack)
        for query in members:
            if at_work is not None and query.id in at_work.members:
                self._noted(query, at_work.members[query.id])
        checkpoint = Checkpoint(pack)
        if not self._rests(checkpoint, fails=fails):
            with stopping(self._launch(pack, members, drain_only=True)) as settling:
                settling.await_drained()
        elif fails and not checkpoint.has_state:
            _LOG.info("the batches of %s since its last durable state are run again", pack.location)
            self._launcher.settle_pack(pack, _by_key(members))

    def _drained(self, query: Query) -> Alone:
        """A query that has been stopped, with each batch that it has begun committed."""
        query = self._launcher.as_it_is(query)
        plan, place = self._launcher.plan(query), self._launcher.checkpoint(query)
        fragment, checkpoint = plan.fragment(query.name), Checkpoint(place)
        settings = self._launcher.job_settings(plan)
        if not self._rests(checkpoint):
            drain_only = replace(settings, drain_only=True)
            with stopping(self._launcher.started(query, fragment, place, drain_only)) as settling:
                settling.await_drained()
                self._noted(query, settling)
        return Alone(str(query.id), query.name, fragment.dataflow, place)

    def _rests(self, checkpoint: Checkpoint, *, fails: bool = False) -> bool:
        """Whether what is written is that of the last committed batch, and will stay so: nobody of before writes on.

        fails   a batch that has begun comes to no end. It counts for nothing unless Kafka has it
        """
        job = self._launcher.settings.job
        commit_mark = fenced(self._launcher.brokers, checkpoint.expect_origin(), job)
        committed, _ = checkpoint.committed() or (-1, {})
        return commit_mark <= committed and (fails or (checkpoint.last_planned <= committed and checkpoint.has_state))

    # -- at work

    def _start(self, pack: Storage) -> _Pack | None:
        members = self._members(pack)
        leaving = {query.id: "it is not to run" for query in members if query.desired is not Desired.RUNNING}
        leaving |= {query.id: "it is to have other buckets" for query in members if self._is_to_be_cut(query)}
        if (verdict := self._verdicts.get(pack.location)) is not None:
            leaving |= {query.id: verdict.why for query in members if not verdict.views or query.id in verdict.views}
        if not Checkpoint(pack).expect_origin().fused:
            leaving |= {query.id: "another release has made it, and kept its state in another way" for query in members}
        if not self.wanted:
            leaving |= {query.id: "DOVETAIL_PACK_AFTER_S is 0" for query in members}
        if leaving:
            members = self._leave(
                pack, [query for query in members if query.id in leaving], ", ".join(sorted(set(leaving.values())))
            )
        if not members:
            return None
        places = {query.id: self._launcher.checkpoint(query) for query in members}
        for place in places.values():
            retire_leftovers(place, self._launcher.brokers, self._launcher.settings.job.local_copy_dir)
        origins = {view: Checkpoint(place).expect_origin() for view, place in places.items()}
        running = PackAtWork(self._launch(pack, members))
        self._at_work[pack.location] = _Pack(
            running,
            pack,
            {
                query.id: PackedQuery(
                    running,
                    number,
                    pack,
                    tuple(other.name for other in members if other.id != query.id),
                    origins[query.id].buckets,
                )
                for number, query in enumerate(members)
            },
            {topic: known for origin in origins.values() for topic, known in origin.topic_ids.items()},
            time.monotonic(),
        )
        return self._at_work[pack.location]

    def _is_to_be_cut(self, query: Query) -> bool:
        """Whether its text names other buckets than it had: it was altered while nobody saw to it."""
        with suppress(DovetailError):
            wanted = self._launcher.plan(query).settings.number("buckets")
            return wanted not in (None, Checkpoint(self._launcher.checkpoint(query)).expect_origin().buckets)
        return False

    def _launch(self, pack: Storage, members: Sequence[Query], *, drain_only: bool = False) -> RunningQuery:
        settings = replace(self._launcher.settings.job, drain_only=drain_only)
        return self._launcher.started_pack(pack, _by_key(members), settings)

    def _count(self, pack: Storage, error: DovetailError, views: frozenset[int]) -> None:
        """What a failure says against a pack: all of what is not its environment's, and that if it goes on.

        Where nobody knows for which of ``views`` it was, it is started again first: a topic that is another one now
        ends the source of all, and is told of those who read it at the start.
        """
        if not self._trouble():
            self._attempts[pack.location] += 1
        attempts = self._attempts[pack.location]
        if attempts >= _ATTEMPTS or (not error.retry and (views or attempts > 1)):
            known = views & {query.id for query in self._members(pack)}
            self._verdicts[pack.location] = _Verdict(f"it has failed: {error.what}", known)

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
            wanted = [query for query in members if query.desired is not Desired.DROPPED]
            for query in wanted:
                self._say(query, f"{'leaves' if query.id in going else 'stays in'} its pack: {why}")
            self._end_pack(pack, wanted, fails=pack.location in self._verdicts)
            leavers = [query for query in members if query.id in going]
            gone = [self._member(query) for query in leavers]
            there = [one for query, one in zip(leavers, gone, strict=True) if query in wanted]
            made = iter(taken_out(self._launcher.session, there, self._keys))
            places = [next(made).location if query in wanted else "" for query in leavers]
            self._switch(pack, zip(leavers, gone, places, strict=True))
            staying = [query for query in members if query.id not in going]
            if staying:
                for one in gone:
                    one.checkpoint.clear()
            else:
                self._discard(pack)
            if (verdict := self._verdicts.pop(pack.location, None)) is not None:
                self._pin_unpacked(verdict.views or going)
            self._attempts.pop(pack.location, None)
            for view in going:
                self._tracker.forget(view)
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
        return bucket_keys(buckets)

    def _discard(self, place: Storage) -> None:
        discard(place, self._launcher.brokers, self._launcher.settings.job.local_copy_dir, outlived=True)

    def _say(self, query: Query, said: str) -> None:
        with suppress(ServiceUnavailable):
            self._launcher.catalog.report(query.id, now_ms=now_ms(), actual=Actual.PACKING, error=redacted(said))


def _by_key(members: Sequence[Query]) -> dict[str, Query]:
    """By what the part of each in the state of all is called."""
    return {str(query.id): query for query in members}


def _at_once(work: Callable[[_One], _Made], every: Sequence[_One]) -> list[_Made]:
    """Done for all, a few at a time: whoever asks Spark or the broker waits more than he works."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="packing") as several:
        return list(several.map(work, every))
