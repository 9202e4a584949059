"""This release goes on with the checkpoints of those before it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from tests.spark.kafka import send, values
from tests.spark.releases.views import DDL, TABLES, VIEWS, rows
from tests.spark.releases.write import CHECKPOINTS, make_topics, run_to_the_end, send_half
from tests.sql.world import World

RELEASES = sorted(path.name for path in CHECKPOINTS.iterdir())


def test_the_present_format_is_among_them() -> None:
    """A release that is published is written down before the next one begins."""
    assert version("dovetail") in RELEASES
    assert {path.name for path in (CHECKPOINTS / version("dovetail")).iterdir()} == set(VIEWS)


@pytest.fixture(scope="module")
def inputs(broker: str) -> str:
    """The broker with the records that the release had read, at their offsets, and those that came since."""
    make_topics(broker)
    send_half(broker, 0)
    send_half(broker, 1)
    return broker


@pytest.mark.services
@pytest.mark.parametrize(
    ("release", "view"),
    [(release, path.name) for release in RELEASES for path in sorted((CHECKPOINTS / release).iterdir())],
)
def test_it_goes_on_from_the_checkpoint_of(
    release: str, view: str, inputs: str, spark: SparkSession, tmp_path: Path
) -> None:
    kept = CHECKPOINTS / release / view
    written = [json.loads(line) for line in (kept / "output.json").read_text().splitlines()]
    topics.ensure(clients.admin(BrokerAddress(inputs)), {view: 1})
    send(inputs, view, written)
    shutil.copytree(kept / "checkpoint", tmp_path / view)
    _as_of(inputs, tmp_path / view)

    run_to_the_end(spark, view, inputs, tmp_path)

    output = values(inputs, view)
    assert output[: len(written)] == written
    assert len(output) > len(written)
    assert net(output) == expected(view)


def _as_of(brokers: str, checkpoint: Path) -> None:
    """Give the topics in the checkpoint the ids that this broker has given them: it is another one."""
    origin = json.loads((checkpoint / "query.json").read_text())
    origin["topic_ids"] = topics.ids(clients.admin(BrokerAddress(brokers)), origin["topic_ids"])
    (checkpoint / "query.json").write_text(json.dumps(origin))


def net(output: list[dict[str, object]]) -> Mapping[tuple[object, ...], int]:
    counted: Counter[tuple[object, ...]] = Counter()
    for row in output:
        delta = row.pop("_tp_delta")
        assert isinstance(delta, int)
        counted[tuple(row.values())] += delta
    return {row: count for row, count in counted.items() if count}


def expected(view: str) -> Mapping[tuple[object, ...], int]:
    """The view over all the rows of its inputs, as a batch."""
    world = World.of(*DDL)
    for table in TABLES:
        world.insert(table, *(dict(row) for row in rows(table, 0) + rows(table, 1)))
    return world.recomputed(VIEWS[view])
