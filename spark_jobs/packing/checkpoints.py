"""The checkpoint of a pack, made of those of its members; and that of a member which leaves.

    <home>/pack-…/members/7-pairs.1/   origin and static tables of the member
    <home>/pack-…/query.json           origin of the pack: written last
    <home>/pack-…/seed/, spark/        the state of all, that of a member under its key

The former ones are only read. What is made counts once the catalog names it, and that is the caller's to change: who is
killed in the midst begins again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import assert_never

from pyspark.sql import SparkSession

from dovetail.broker.query_origin import ORIGIN_FILE, QueryOrigin
from dovetail.broker.start_offsets import least_offsets
from dovetail.broker.topics import Offsets
from dovetail.changelog.errors import StateLimitExceeded
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.host.one_bucket import part_of_level
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.fused.batch import part_of_member
from dovetail.spark_jobs.fused.state import STAGE, is_fused
from dovetail.spark_jobs.packing.composition import as_logged, earliest, reached
from dovetail.spark_jobs.rescaling.former_state import (
    Cut,
    LevelRepartition,
    StateLocation,
    repartition_level,
    repartition_stage,
)
from dovetail.spark_jobs.rescaling.generations import next_in, next_of, pack_of
from dovetail.spark_jobs.rescaling.rescale import expect_rows, expect_within_limits, reporting_size
from dovetail.spark_jobs.state.atomic_checkpoint import atomic_checkpoint, complete, copy_snapshots
from dovetail.spark_jobs.state.checkpoint import Checkpoint, parsed_offsets
from dovetail.spark_jobs.state.seed import Seed

Keys = Callable[[int], tuple[int, ...]]
"""The values of so many buckets, by which Spark knows them."""


@dataclass(frozen=True)
class Alone:
    """A query at rest in a checkpoint of its own: each batch that has begun is committed.

    key   what its part of a pack is to be called
    """

    key: str
    name: str
    dataflow: Dataflow
    checkpoint: Storage


@dataclass(frozen=True)
class Packed:
    """``places``: of the members."""

    places: tuple[Storage, ...]
    rows: int
    bytes: int


def pack_up(
    session: SparkSession,
    queries: Sequence[Alone],
    pack: Storage,
    keys: Keys,
    report: Callable[[int], None],
    former: Sequence[PackMember] = (),
) -> Packed:
    """Make a pack of ``queries``, and of the members ``former`` of another one, which is at rest; its places are in
    this order. Raises OSError, and what Spark says of its tasks; nothing is left of it then.
    """
    with atomic_checkpoint(pack):
        with reporting_size(Seed(pack), report):
            cuts = [cut for query in queries for cut in _taken_in(session, query, pack, keys)]
            cuts += _taken_over(session, former, pack, keys)
        rows = sum(cut.rows for cut in cuts)
        Seed(pack).put_scalars(STAGE, {name: value for cut in cuts for name, value in cut.scalars.items()})
        expect_rows(Seed(pack), rows)
        members: list[Alone | PackMember] = [*queries, *former]
        places = tuple(_made_member(one, pack) for one in members)
        origins = [Checkpoint(place).expect_origin() for place in places]
        of_pack = QueryOrigin(
            QueryOrigin.new_identity(_name(pack)),
            fingerprint="",
            plan="",
            first_offsets=(),
            buckets=1,
            topic_ids={topic: known for origin in origins for topic, known in origin.topic_ids.items()},
            resumed_at=earliest([origin.resumed_at for origin in origins]),
            fused=True,
        )
        complete(pack, of_pack)
    return Packed(places, rows, Seed(pack).bytes)


def _taken_in(session: SparkSession, query: Alone, pack: Storage, keys: Keys) -> Iterator[Cut]:
    checkpoint, flow = Checkpoint(query.checkpoint), query.dataflow
    origin = checkpoint.expect_origin()
    buckets = origin.buckets
    for level in range(1, flow.levels + 1):
        taken, put_in = StateLocation.of(level, flow.levels, fused=origin.fused), _in_pack(query.key, level)
        yield repartition_level(
            session, checkpoint, LevelRepartition(flow, level, keys(buckets), 1, pack, taken, put_in)
        )


def _taken_over(session: SparkSession, members: Sequence[PackMember], pack: Storage, keys: Keys) -> list[Cut]:
    """What is in one bucket already, and stays as it is."""
    if not members:
        return []
    parts = [StateLocation(STAGE, 1, part_of_member(one.key)) for one in members]
    repartitions = [LevelRepartition(None, 1, keys(1), 1, pack, taken=part, put_in=part) for part in parts]
    return repartition_stage(session, Checkpoint(_pack_of_all(members)), repartitions)


def _in_pack(key: str, level: int) -> StateLocation:
    return StateLocation(STAGE, 1, part_of_member(key) + part_of_level(level))


def _made_member(one: Alone | PackMember, pack: Storage) -> Storage:
    checkpoint, place = Checkpoint(one.checkpoint), next_in(pack, one.checkpoint)
    origin = checkpoint.expect_origin()
    copy_snapshots(checkpoint, place)
    match one:
        case Alone():
            read, levels = _position(checkpoint, one.dataflow), one.dataflow.levels
        case PackMember():
            read, levels = _read_in_pack(one), _levels_of(origin)
        case _:
            assert_never(one)
    member = replace(
        origin,
        identity=QueryOrigin.new_identity(one.name),
        resumed_at=as_logged(read),
        packed_levels=levels,
        fused=True,
    )
    place.put(ORIGIN_FILE, member.text.encode())
    return place


def _position(checkpoint: Checkpoint, dataflow: Dataflow | None) -> Offsets:
    """What committed batches have read. ``dataflow``: of a checkpoint that goes on from no other."""
    if (committed := checkpoint.committed()) is not None:
        return committed[1]
    origin = checkpoint.expect_origin()
    if origin.resumed_at or dataflow is None:
        return parsed_offsets(origin.resumed_at)
    return least_offsets(dataflow.scans, origin.first_offsets)


@dataclass(frozen=True)
class PackMember:
    """One of a pack that is at rest.

    dataflow   None: its plan is another one now
    """

    key: str
    name: str
    dataflow: Dataflow | None
    checkpoint: Storage


def taken_out(session: SparkSession, members: Sequence[PackMember], keys: Keys) -> list[Storage]:
    """Make for each of some members of a pack a checkpoint alone, of as many buckets as it had; the pack is read once.
    Raises as ``pack_up``.

    One stays in one bucket, uncut, where its plan is another one now, which whoever starts it says; and where one of
    more buckets would hold more than its share of ``join_max_buffered_bytes``.
    """
    made = [next_of(one.checkpoint) for one in members]
    with ExitStack() as opened:
        for place in made:
            opened.enter_context(atomic_checkpoint(place))
        _take_out(session, [_Leaver.of(one) for one in members], keys)
        tight = [one for one in members if not _within_limits(one)]
        for one in tight:
            next_of(one.checkpoint).clear()
        _take_out(session, [_Leaver.of(replace(one, dataflow=None)) for one in tight], keys)
        for one in members:
            _complete(_Leaver.of(replace(one, dataflow=None) if one in tight else one))
    return made


@dataclass(frozen=True)
class _Leaver:
    """One that leaves, its state cut into so many ``buckets``."""

    member: PackMember
    buckets: int
    levels: int

    @staticmethod
    def of(member: PackMember) -> _Leaver:
        origin = Checkpoint(member.checkpoint).expect_origin()
        return _Leaver(member, 1 if member.dataflow is None else origin.buckets, _levels_of(origin))

    @property
    def fused(self) -> bool:
        flow = self.member.dataflow
        return flow is None or is_fused(flow, self.buckets)

    def repartitions(self, key: tuple[int, ...]) -> Iterator[LevelRepartition]:
        made = next_of(self.member.checkpoint)
        for level in range(1, self.levels + 1):
            taken, put_in = _in_pack(self.member.key, level), StateLocation.of(level, self.levels, fused=self.fused)
            yield LevelRepartition(self.member.dataflow, level, key, self.buckets, made, taken, put_in)


def _take_out(session: SparkSession, leavers: Sequence[_Leaver], keys: Keys) -> None:
    if not leavers:
        return
    repartitions = [(one, repartition) for one in leavers for repartition in one.repartitions(keys(1))]
    pack = Checkpoint(_pack_of_all([one.member for one in leavers]))
    rows = Counter[str]()
    for (_, repartition), cut in zip(
        repartitions, repartition_stage(session, pack, [repartition for _, repartition in repartitions]), strict=True
    ):
        Seed(repartition.target).put_scalars(repartition.put_in.stage, cut.scalars)
        rows[repartition.target.location] += cut.rows
    for one in leavers:
        copy_snapshots(Checkpoint(one.member.checkpoint), next_of(one.member.checkpoint))
        made = Seed(next_of(one.member.checkpoint))
        expect_rows(made, rows[next_of(one.member.checkpoint).location])


def _within_limits(member: PackMember) -> bool:
    """Whether each of its buckets would get on with what it holds."""
    if member.dataflow is None:
        return True
    with suppress(StateLimitExceeded):
        expect_within_limits(member.dataflow, Seed(next_of(member.checkpoint)), _Leaver.of(member).buckets)
        return True
    return False


def _complete(leaver: _Leaver) -> None:
    member = leaver.member
    origin = Checkpoint(member.checkpoint).expect_origin()
    again = replace(
        origin,
        identity=QueryOrigin.new_identity(member.name),
        buckets=leaver.buckets,
        fused=leaver.fused,
        resumed_at=as_logged(_read_in_pack(member)),
        packed_levels=None,
    )
    complete(next_of(member.checkpoint), again)


def _read_in_pack(member: PackMember) -> Offsets:
    joined_at = Checkpoint(member.checkpoint).expect_origin().resumed_at
    return reached(joined_at, _position(Checkpoint(_pack_of_all([member])), None), parsed_offsets(joined_at))


def _pack_of_all(members: Sequence[PackMember]) -> Storage:
    [pack] = {found for member in members if (found := pack_of(member.checkpoint)) is not None}
    return pack


def _levels_of(origin: QueryOrigin) -> int:
    assert origin.packed_levels is not None
    return origin.packed_levels


def _name(place: Storage) -> str:
    return place.location.rpartition("/")[2]
