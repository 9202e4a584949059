"""Views that share a streaming query write what they would have written alone, whatever happens to them."""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.broker.query_origin import ORIGIN_FILE, QueryOrigin
from dovetail.runtime.clock import now_ms
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.packing.alone_note import is_to_be_alone
from dovetail.sql.catalog import Actual, Desired, Query, What
from dovetail.sql.syntax.statements import Drop
from tests.spark.kafka import send, values
from tests.spark.rescaling.test_rescale import Load, Row, current_rows
from tests.spark.running import Running, killed, runners_over

pytestmark = pytest.mark.services

WITHIN_S = 300.0
VIEWS = {
    "pack_named": "SELECT o.user_id AS user_id, u.name AS name, count(*) AS n"
    " FROM orders AS o LEFT JOIN users AS u ON o.user_id = u.id GROUP BY o.user_id, u.name",
    "pack_counted": "SELECT user_id, count(*) AS n FROM orders GROUP BY user_id",
    "pack_plain": "SELECT id, user_id * 2 AS twice FROM orders",
    "pack_pairs": "SELECT o.id AS id, u.name AS name FROM orders AS o JOIN users AS u ON o.user_id = u.id",
    "pack_dropped": "SELECT user_id, max(id) AS last FROM orders GROUP BY user_id",
    "pack_bounded": "SELECT p.k AS k, p.t AS t, q.v AS v FROM p JOIN q ON p.k = q.k"
    " SETTINGS join_max_buffered_bytes = 60000",
}


def packed_with(others: int) -> Callable[[Query], bool]:
    return lambda query: query.actual is Actual.RUNNING and len(query.progress.get("packed_with", ())) == others


def alone(query: Query) -> bool:
    return query.actual is Actual.RUNNING and not query.progress.get("packed_with")


def has_read(topics: Mapping[str, int]) -> Callable[[Query], bool]:
    return lambda query: all(
        sum(query.progress.get("offsets", {}).get(topic, {}).values()) >= rows for topic, rows in topics.items()
    )


@pytest.fixture
def runners(tmp_path: Path, broker: str) -> Iterator[Callable[..., Running]]:
    with runners_over(tmp_path, broker, BUCKETS=2, PACK_AFTER_S=6, PACK_ROWS_PER_S=100_000) as start:
        yield start


def test_six_views_share_a_query_until_one_fails(
    runners: Callable[..., Running], broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    users, orders = topics("users", partitions=2), topics("orders", partitions=2)
    left, right = topics("left"), topics("right")
    runner = runners()
    runner.create(f"CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR) WITH (topic = '{users}')")
    runner.create(f"CREATE TABLE orders (id BIGINT, user_id BIGINT) APPEND ONLY WITH (topic = '{orders}')")
    runner.create(f"CREATE TABLE p (k BIGINT, t VARCHAR) APPEND ONLY WITH (topic = '{left}')")
    runner.create(f"CREATE TABLE q (k BIGINT, v BIGINT) APPEND ONLY WITH (topic = '{right}')")
    for name, select in VIEWS.items():
        runner.create(f"CREATE MATERIALIZED VIEW {name} AS {select}")
    load = Load(broker, users, orders)
    load.go_on(600)
    send(broker, left, [{"k": n, "t": "x"} for n in range(20)])
    send(broker, right, [{"k": n % 20, "v": n} for n in range(40)])
    for name in VIEWS:
        runner.wait(name, packed_with(len(VIEWS) - 1), WITHIN_S)
    [pack] = (path for path in (tmp_path / "checkpoints").iterdir() if path.name != "catalogs")
    assert re.fullmatch(r"pack-\w{8}-\w{8}", pack.name)

    load.go_on(3000)
    runner.wait("pack_plain", has_read({orders: 700}), WITHIN_S)
    killed(runner)
    # As one that was being made, or removed.
    unfinished = pack.with_name(f"{pack.name[:-8]}unnamed1")
    (unfinished / "seed").mkdir(parents=True)
    # As one of before, which was not removed yet when the catalog named that in the pack.
    former = left_behind(tmp_path / "checkpoints", Path(runner.catalog.query("pack_plain").checkpoint))
    load.go_on(300)
    again = runners()
    living = [name for name in VIEWS if name != "pack_dropped"]
    for name in living[:-1]:
        again.wait(name, has_read({orders: load.sent}), WITHIN_S)
    assert current_rows(broker, "pack_dropped", ("user_id", "last")).total() == len(load.counted)

    assert not unfinished.exists()
    assert not former.exists()

    again.catalog.drop(Drop(What.VIEW, "pack_dropped"), now_ms=3)
    deadline_s = time.monotonic() + WITHIN_S
    while any(query.name == "pack_dropped" for query in again.catalog.queries(dropped=True)):
        assert time.monotonic() < deadline_s, again.log.read_text()[-3000:]
        time.sleep(0.1)
    for name in living:
        again.wait(name, packed_with(len(living) - 1), WITHIN_S)

    # What a failing batch leaves is to be had though nothing but the batches before it lead there.
    for _ in range(2):
        load.go_on(50)
        for name in living[:-1]:
            again.wait(name, has_read({orders: load.sent}), WITHIN_S)
    shutil.rmtree(tmp_path / "state-copy")
    send(broker, left, [{"k": n, "t": "y" * 1000} for n in range(1000)])
    load.go_on(300)
    failed = again.wait("pack_bounded", lambda query: query.actual is Actual.FAILED, WITHIN_S)
    assert "join_max_buffered_bytes" in failed.error
    assert not failed.progress.get("packed_with")
    assert is_to_be_alone(LocalFolder(Path(failed.checkpoint)), now_ms())
    # The others go on together.
    for name in living[:-1]:
        again.wait(name, packed_with(len(living) - 2), WITHIN_S)
        again.wait(name, has_read({orders: load.sent}), WITHIN_S)
    assert again.stop() == 0

    counted = load.counted
    assert current_rows(broker, "pack_named", ("user_id", "name", "n")) == counted
    assert current_rows(broker, "pack_counted", ("user_id", "n")) == Counter({(user, n): 1 for user, _, n in counted})
    bought = {int(str(row["id"])): int(str(row["user_id"])) for row in values(broker, orders)}
    assert multiset(broker, "pack_plain", "id", "twice") == Counter(
        {(order, user * 2): 1 for order, user in bought.items()}
    )
    names = {user: name for user, name, _ in counted if name is not None}
    assert current_rows(broker, "pack_pairs", ("id", "name")) == Counter(
        {(order, names[user]): 1 for order, user in bought.items() if user in names}
    )
    assert multiset(broker, "pack_bounded", "k", "t", "v") == Counter({(n % 20, "x", n): 1 for n in range(40)})


def test_one_that_is_paused_leaves_and_all_do_where_no_packs_are_wanted(
    runners: Callable[..., Running], broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    numbers = topics("numbers", partitions=2)
    names = [f"pack_highest_{number}" for number in range(4)]
    runner = runners()
    runner.create(f"CREATE TABLE numbers (k BIGINT, v BIGINT) APPEND ONLY WITH (topic = '{numbers}')")
    for name in names:
        runner.create(f"CREATE MATERIALIZED VIEW {name} AS SELECT k, max(v) AS s FROM numbers GROUP BY k")
    send(broker, numbers, [{"k": n % 7, "v": n} for n in range(100)])
    for name in names:
        runner.wait(name, packed_with(3), WITHIN_S)

    paused, *others = names
    runner.catalog.want(paused, Desired.PAUSED, now_ms=1)
    left = runner.wait(paused, lambda query: query.actual is Actual.PAUSED, WITHIN_S)
    assert Path(left.checkpoint).parent == tmp_path / "checkpoints"
    for name in others:
        runner.wait(name, packed_with(2), WITHIN_S)
    send(broker, numbers, [{"k": n % 7, "v": n} for n in range(100, 200)])
    for name in others:
        runner.wait(name, has_read({numbers: 200}), WITHIN_S)
    assert runner.stop() == 0

    again = runners(PACK_AFTER_S=0)
    for name in others:
        again.wait(name, alone, WITHIN_S)
    again.catalog.want(paused, Desired.RUNNING, now_ms=2)
    send(broker, numbers, [{"k": n % 7, "v": n} for n in range(200, 300)])
    for name in names:
        again.wait(name, has_read({numbers: 300}), WITHIN_S)
    assert again.stop() == 0
    assert not list((tmp_path / "checkpoints").glob("pack-*"))
    highest = Counter({(k, max(range(k, 300, 7))): 1 for k in range(7)})
    assert [current_rows(broker, name, ("k", "s")) for name in names] == [highest] * len(names)


def left_behind(checkpoints: Path, member: Path) -> Path:
    """What a member was resumed from, with an identity of its own."""
    place = checkpoints / member.name.partition(".")[0]
    origin = QueryOrigin.read((member / ORIGIN_FILE).read_text(), where="")
    place.mkdir()
    again = replace(origin, identity=QueryOrigin.new_identity("pack_plain"), packed_levels=None)
    (place / ORIGIN_FILE).write_text(again.text)
    return place


def multiset(broker: str, topic: str, *columns: str) -> Counter[Row]:
    return Counter(tuple(row[column] for column in columns) for row in values(broker, topic))
