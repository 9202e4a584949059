"""The checkpoint of a pack, made of those of its members; and that of a member which leaves.

    <home>/pack-…/members/7-pairs.1/   origin and static tables of the member
    <home>/pack-…/query.json           origin of the pack: written last
    <home>/pack-…/seed/, spark/        the state of all, that of a member under its key

The former ones are only read. What is made counts once the catalog names it, and that is the caller's to change: who is
killed in the midst begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from broker.query_origin import ORIGIN_FILE, QueryOrigin
from broker.start_offsets import least_offsets
from broker.topics import Offsets
from changelog.errors import StateLimitExceeded
from joins.dataflow.graph import Dataflow
from joins.host.one_bucket import part_of_level
from runtime.storage.storage import Storage
from spark_jobs.packing.composition import as_logged, earliest, reached
from spark_jobs.packing.decode import STAGE
from spark_jobs.packing.stage import part_of_member
from spark_jobs.rescaling.former_state import LevelRecut, Shelf, recut_level
from spark_jobs.rescaling.generations import next_in, next_of, pack_of
from spark_jobs.rescaling.rescale import expect_rows, expect_within_limits, telling
from spark_jobs.state.checkpoint import Checkpoint, parsed_offsets
from spark_jobs.state.making import complete, copy_snapshots, making
from spark_jobs.state.seed import Seed

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
    """``places``: of the members, in the order in which they were given."""

    places: tuple[Storage, ...]
    rows: int
    bytes: int


def pack_up(
    session: SparkSession, queries: Sequence[Alone], pack: Storage, keys: Keys, told: Callable[[int], None]
) -> Packed:
    """Make a pack of ``queries``. Raises OSError, and what Spark says of its tasks; nothing is left of it then."""
    with making(pack):
        with telling(Seed(pack), told):
            cuts = [_taken_in(session, query, pack, keys) for query in queries]
        rows = sum(rows for rows, _ in cuts)
        Seed(pack).put_scalars(STAGE, {name: value for _, scalars in cuts for name, value in scalars.items()})
        expect_rows(Seed(pack), rows)
        places = tuple(_made_member(query, pack) for query in queries)
        origins = [Checkpoint(place).expect_origin() for place in places]
        of_pack = QueryOrigin(
            QueryOrigin.new_identity(_name(pack)),
            fingerprint="",
            plan="",
            first_offsets=(),
            buckets=1,
            topic_ids={topic: known for origin in origins for topic, known in origin.topic_ids.items()},
            resumed_at=earliest([origin.resumed_at for origin in origins]),
        )
        complete(pack, of_pack)
    return Packed(places, rows, Seed(pack).bytes)


def _taken_in(session: SparkSession, query: Alone, pack: Storage, keys: Keys) -> tuple[int, dict[str, int]]:
    """Rows and numbers of its state."""
    checkpoint, flow = Checkpoint(query.checkpoint), query.dataflow
    buckets = checkpoint.expect_origin().buckets
    rows, scalars = 0, dict[str, int]()
    for level in range(1, flow.levels + 1):
        taken, put_in = Shelf(level, flow.levels), _in_pack(query.key, level)
        cut = recut_level(session, checkpoint, LevelRecut(flow, level, keys(buckets), 1, pack, taken, put_in))
        rows += cut.rows
        scalars |= cut.scalars
    return rows, scalars


def _in_pack(key: str, level: int) -> Shelf:
    return Shelf(STAGE, 1, part_of_member(key) + part_of_level(level))


def _made_member(query: Alone, pack: Storage) -> Storage:
    checkpoint, place = Checkpoint(query.checkpoint), next_in(pack, query.checkpoint)
    origin = checkpoint.expect_origin()
    copy_snapshots(checkpoint, place)
    member = replace(
        origin,
        identity=QueryOrigin.new_identity(query.name),
        resumed_at=as_logged(_position(checkpoint, query.dataflow)),
        packed_levels=query.dataflow.levels,
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


def taken_out(session: SparkSession, member: PackMember, keys: Keys) -> Storage:
    """Make a checkpoint for a member alone, of as many buckets as it had. Raises as ``pack_up``.

    It stays in one bucket, uncut, where its plan is another one now, which whoever starts it says; and where one of
    more buckets would hold more than its share of ``join_max_buffered_bytes``.
    """
    if member.dataflow is not None:
        with suppress(StateLimitExceeded):
            return _taken_out(session, member, Checkpoint(member.checkpoint).expect_origin().buckets, keys)
    return _taken_out(session, replace(member, dataflow=None), 1, keys)


def _taken_out(session: SparkSession, member: PackMember, buckets: int, keys: Keys) -> Storage:
    pack = pack_of(member.checkpoint)
    assert pack is not None
    made, origin = next_of(member.checkpoint), Checkpoint(member.checkpoint).expect_origin()
    assert origin.packed_levels is not None
    with making(made):
        copy_snapshots(Checkpoint(member.checkpoint), made)
        rows = 0
        for level in range(1, origin.packed_levels + 1):
            put_in = Shelf(level, origin.packed_levels)
            taken = _in_pack(member.key, level)
            recut = LevelRecut(member.dataflow, level, keys(1), buckets, made, taken, put_in)
            cut = recut_level(session, Checkpoint(pack), recut)
            Seed(made).put_scalars(level, cut.scalars)
            rows += cut.rows
        expect_rows(Seed(made), rows)
        if member.dataflow is not None:
            expect_within_limits(member.dataflow, Seed(made), buckets)
        read = reached(origin.resumed_at, _position(Checkpoint(pack), None), parsed_offsets(origin.resumed_at))
        again = replace(
            origin,
            identity=QueryOrigin.new_identity(member.name),
            buckets=buckets,
            resumed_at=as_logged(read),
            packed_levels=None,
        )
        complete(made, again)
    return made


def _name(place: Storage) -> str:
    return place.location.rpartition("/")[2]
