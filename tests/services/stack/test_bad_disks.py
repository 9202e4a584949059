"""The local stack on a disk that is full, or that cannot be written to."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.changelog.errors import StackError
from dovetail.services.cli.main import app
from dovetail.services.stack import temporary_stack
from dovetail.services.stack.processes import kill
from dovetail.services.stack.state import Phase
from tests.bad_disks import filled, read_only, small_disk
from tests.services.stack.test_stack import state_of
from tests.spark.kafka import messages

pytestmark = pytest.mark.services
WAIT_S = 90.0
Trouble = Callable[[Path], AbstractContextManager[None]]
TROUBLES = {
    "full": (filled, "No space left on device", "free some space"),
    "read-only": (read_only, "Read-only file system", "mount the file system for writing"),
}


@pytest.mark.parametrize("setting", ["DOVETAIL_DATA_DIR", "DOVETAIL_CHECKPOINT_DIR", "DOVETAIL_LOCAL_COPY_DIR"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_up_says_which_folder_cannot_be_written_to_and_starts_nothing(
    trouble: str, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, reason, fix = TROUBLES[trouble]
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path / "data"))
    with small_disk(tmp_path / "disk", 2) as disk:
        monkeypatch.setenv(setting, str(disk / "folder"))
        with begin(disk):
            result = CliRunner().invoke(app, ["up"])
    assert result.exit_code == 1
    said = " ".join(result.stderr.split())
    assert f"{disk / 'folder'} cannot be written to: {reason}" in said
    assert f"where: the folder of {setting}" in said
    assert f"fix: {fix}; or set {setting} to a folder that can be written to" in said
    assert not (tmp_path / "data" / "stack.json").exists()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_disk_that_fills_up_ends_no_component_and_heals(tmp_path: Path) -> None:
    """The supervisor starts what dies meanwhile, though it cannot write that down, and does so once there is room."""
    with small_disk(tmp_path / "disk", 4) as disk, temporary_stack(disk, ("redis",)) as stack:
        before = state_of(stack)
        redis = before.child("redis").process
        assert redis is not None
        with filled(disk):
            with pytest.raises(StackError, match="No space left on device"):
                stack.up(("redis",))
            kill([redis], timeout_s=10)
            until(lambda: redis.find() is None)
            assert state_of(stack) == before
        until(lambda: stack.status()[1].phase is Phase.READY and stack.status()[1].pid != redis.pid)
        assert state_of(stack).supervisor == before.supervisor


def test_a_broker_whose_disk_was_full_has_all_that_it_has_acknowledged(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 48) as disk, temporary_stack(disk, ("kafka",)) as stack:
        broker = stack.endpoint("kafka")
        TopicAdmin(BrokerAddress(broker), WAIT_S).create("kept", TopicShape(partitions=1))
        acknowledged: list[bytes] = []
        refused: list[str] = []

        def delivered(error: object, message: object) -> None:
            refused.append(str(error)) if error else acknowledged.append(message.value())  # type: ignore[attr-defined]

        producer = Producer({"bootstrap.servers": broker, "message.timeout.ms": 5000, "log_level": 0})
        with filled(disk):
            for number in range(64):
                producer.produce("kept", b"%06d" % number + b"x" * 50_000, on_delivery=delivered)
            producer.flush(30)
            assert refused

        def written() -> bool:
            """Whether the broker takes records, which it may do for a moment before it ends of what went wrong."""
            producer.produce("kept", b"after", on_delivery=delivered)
            producer.flush(30)
            return b"after" in acknowledged

        until(written)
        until(lambda: stack.status()[0].phase is Phase.READY)
        found = {message.value() for message in messages(broker, "kept")}
        assert set(acknowledged) <= found
        assert b"after" in found
