"""What is fixed at a query's first start."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.broker.query_origin import FORMAT, QueryOrigin
from dovetail.broker.start_offsets import Beginning
from dovetail.changelog.errors import CheckpointMismatch, RecordsGone
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.stages.job import static_tables
from dovetail.spark_jobs.state.checkpoint import Checkpoint


def opened(folder: Path, plan: str = "Join inner\n  on k", start: int = 5, topic_id: str = "a") -> QueryOrigin:
    tables = {"rates": pa.table({"start": [start]})}
    return Checkpoint(LocalFolder(folder)).open(
        "view", plan, plan, 2, lambda: Beginning([{0: start}]), lambda: tables, topic_ids={"orders": topic_id}
    )


def test_a_resumed_query_is_the_one_that_was_started(tmp_path: Path) -> None:
    first = opened(tmp_path)

    assert opened(tmp_path, start=99) == first
    assert first.first_offsets == ({0: 5},)
    assert static_tables(LocalFolder(tmp_path / "snapshots"), ("rates",))["rates"].column("start").to_pylist() == [5]


def test_a_start_that_was_cut_short_is_a_first_start_again(tmp_path: Path) -> None:
    first = opened(tmp_path)
    (tmp_path / "query.json").unlink()
    (tmp_path / "spark").mkdir()

    again = opened(tmp_path, start=6)

    assert again.identity != first.identity
    assert again.first_offsets == ({0: 6},)
    assert not (tmp_path / "spark").exists()


def test_a_query_that_has_begun_a_batch_is_not_started_afresh(tmp_path: Path) -> None:
    """Killed in its first batch, it may have written rows, and who wrote them stands in the file that is gone."""
    opened(tmp_path)
    (tmp_path / "query.json").unlink()
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    (tmp_path / "spark" / "offsets" / "0").touch()

    with pytest.raises(CheckpointMismatch, match=r"query.json is gone, and batch 0 has begun"):
        opened(tmp_path)
    assert (tmp_path / "spark" / "offsets" / "0").exists()


def test_another_plan_is_refused_and_the_difference_told(tmp_path: Path) -> None:
    opened(tmp_path)

    with pytest.raises(CheckpointMismatch) as refused:
        opened(tmp_path, plan="Join left\n  on k")

    assert str(refused.value).splitlines()[:3] == [
        'query "view" was started with another plan',
        "    -Join inner",
        "    +Join left",
    ]
    assert "replay" in refused.value.fix


def test_a_topic_that_was_made_again_is_refused(tmp_path: Path) -> None:
    opened(tmp_path, topic_id="a")

    with pytest.raises(RecordsGone, match='topic "orders" was deleted and made again'):
        opened(tmp_path, topic_id="b")


@pytest.mark.parametrize("left", ["", "{", '{"identity": "x"', "[]", '{"format": 1, "identity": "x"}', "\x00" * 40])
def test_a_truncated_origin_is_said_with_the_way_out(tmp_path: Path, left: str) -> None:
    opened(tmp_path)
    (tmp_path / "query.json").write_text(left)

    with pytest.raises(CheckpointMismatch, match="damaged") as refused:
        opened(tmp_path)
    assert "backup" in refused.value.fix


def test_a_checkpoint_of_a_newer_format_is_refused_and_can_be_dropped(tmp_path: Path) -> None:
    origin = opened(tmp_path)
    written = json.loads(origin.text)
    (tmp_path / "query.json").write_text(json.dumps({**written, "format": FORMAT + 1}))

    with pytest.raises(CheckpointMismatch, match=f"has format {FORMAT + 1}, and this release reads format {FORMAT}"):
        opened(tmp_path)
    assert Checkpoint(LocalFolder(tmp_path)).identity == origin.identity


def test_the_last_committed_batch_tells_what_was_read(tmp_path: Path) -> None:
    checkpoint = Checkpoint(LocalFolder(tmp_path))
    assert checkpoint.committed() is None
    for log in ("offsets", "commits"):
        (tmp_path / "spark" / log).mkdir(parents=True)
    for batch in (9, 10, 11):
        (tmp_path / "spark" / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"orders":{{"0":{batch}}}}}')
    for batch in (9, 10):
        (tmp_path / "spark" / "commits" / str(batch)).write_text("v1\n{}")

    assert checkpoint.committed() == (10, {"orders": {0: 10}})
    assert [ends["orders"][0] for ends in checkpoint.planned()] == [9, 10, 11]
