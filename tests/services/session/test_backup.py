"""BACKUP VIEW and RESTORE VIEW: a view goes on on an empty machine, of which the broker is all that is left."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import CheckpointMismatch, SqlError
from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.runtime.storage.places import folder_name
from dovetail.services.session import Session
from dovetail.services.session.backup.backup_folder import (
    Backup,
    backup_place,
    checkpoint_in,
    read_backup,
    write_backup,
)
from dovetail.services.session.input_progress import await_reading, input_ends
from dovetail.services.stack import temporary_stack
from dovetail.services.stack.temporary import temporary_settings
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import BackupView, CreateStream, CreateView, RestoreView
from tests.spark.kafka import values

DDL = """
CREATE TABLE buyers (id int PRIMARY KEY, name varchar);
CREATE TABLE sales (id int PRIMARY KEY, buyer int, amount int);
CREATE MATERIALIZED VIEW sold AS
SELECT s.id AS id, b.name AS name, s.amount AS amount FROM sales AS s LEFT JOIN buyers AS b ON s.buyer = b.id
"""


@contextmanager
def machine(folder: Path, broker: str) -> Iterator[Session]:
    """A Spark runner and a catalog of its own; Kafka is elsewhere."""
    with (
        temporary_stack(folder, ("spark",), brokers=broker, start_timeout_s=240.0, stop_timeout_s=60.0) as stack,
        Session.open(stack.settings) as session,
    ):
        yield session


def settle(session: Session, view: str = "sold") -> None:
    """Wait until the view has answered all its input."""
    definition = session.context.catalog.get(view).definition
    assert isinstance(definition, CreateView)
    plan = plan_query(view, definition, session.context.catalog)
    await_reading(session.context, view, input_ends(session.context, plan))
    session.context.topics.quiescent_ends(view)


def net(broker: str, view: str = "sold") -> Counter[tuple[object, ...]]:
    """What the changes add up to, of which none may stand twice: a row too much would count."""
    counted: Counter[tuple[object, ...]] = Counter()
    for row in values(broker, view):
        counted[row["id"], row["name"], row["amount"]] += int(str(row["_tp_delta"]))
    return Counter({row: count for row, count in counted.items() if count})


@pytest.mark.services
def test_a_view_goes_on_on_an_empty_machine_after_the_broker_has_moved_on(broker: str, tmp_path: Path) -> None:
    backup = tmp_path / "backups" / "sold"
    backup.parent.mkdir()
    with machine(tmp_path / "first", broker) as session:
        session.run(DDL)
        session.run("INSERT INTO buyers VALUES (1, 'ann'); INSERT INTO sales VALUES (10, 1, 5), (11, 2, 7)")
        settle(session)
        session.run(f"BACKUP VIEW sold TO '{backup}'")
        written = session.context.catalog.get("sold").written
        # Each of these is a batch that the backup has not seen, and the third has no output.
        for statement in (
            "INSERT INTO buyers VALUES (2, 'bob')",
            "UPDATE sales SET amount = 6 WHERE id = 10",
            "INSERT INTO buyers VALUES (3, 'cid')",
            "INSERT INTO sales VALUES (12, 3, 9)",
        ):
            session.run(statement)
            settle(session)
        with pytest.raises(SqlError, match="already"):
            session.run(f"RESTORE VIEW sold FROM '{backup}'")
    before = values(broker, "sold")
    shutil.rmtree(tmp_path / "first")

    with machine(tmp_path / "second", broker) as session:
        session.run(f"RESTORE VIEW sold FROM '{backup}'")
        session.run("INSERT INTO sales VALUES (13, 1, 1); DELETE FROM sales WHERE id = 11")
        settle(session)

        assert values(broker, "sold")[: len(before)] == before
        assert net(broker) == {(10, "ann", 6): 1, (12, "cid", 9): 1, (13, "ann", 1): 1}
        assert session.context.catalog.get("sold").written == written
        assert written is not None
        assert session.verify("sold").holds
        assert [one.name for one in session.context.catalog.relations()] == ["buyers", "sales", "sold"]

        session.run("DROP VIEW sold")
        after = values(broker, "sold")
        with pytest.raises(CheckpointMismatch, match="was dropped"):
            session.run(f"RESTORE VIEW sold FROM '{backup}'")
        assert values(broker, "sold") == after
        assert not list((tmp_path / "second" / "checkpoints").glob("[0-9]*"))


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    checkpoint = tmp_path / "checkpoint"
    (checkpoint / "spark" / "state").mkdir(parents=True)
    (checkpoint / "query.json").write_text("{}")
    (checkpoint / "spark" / "state" / "1.zip").write_bytes(b"state")
    write_backup(tmp_path / "backup", Backup("v", (), ()), {"v": LocalFolder(checkpoint)})
    return tmp_path / "backup"


def test_a_backup_is_read_as_it_was_written(backup: Path) -> None:
    assert read_backup(backup) == Backup("v", (), ())
    assert (backup / "checkpoints" / "v" / "spark" / "state" / "1.zip").read_bytes() == b"state"
    assert [path.name for path in backup.parent.iterdir() if path.name.startswith(".")] == []


def test_nothing_is_overwritten(backup: Path, tmp_path: Path) -> None:
    with pytest.raises(SqlError, match="is there already"):
        write_backup(backup, Backup("other", (), ()), {})
    assert read_backup(backup).view == "v"


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        ("backup.json", "never finished"),
        ("checkpoints/v/query.json", "query.json is not there"),
        ("checkpoints/v/spark/state/1.zip", "1.zip is not there"),
    ],
)
def test_half_a_backup_is_said_to_be_one(harm: str, message: str, backup: Path) -> None:
    (backup / harm).unlink()
    with pytest.raises(CheckpointMismatch, match=message):
        read_backup(backup)


def test_a_damaged_file_and_another_version_are_told(backup: Path) -> None:
    (backup / "checkpoints" / "v" / "spark" / "state" / "1.zip").write_bytes(b"stale")
    with pytest.raises(CheckpointMismatch, match=r"1\.zip is not what was written"):
        read_backup(backup)
    manifest = json.loads((backup / "backup.json").read_text())
    (backup / "backup.json").write_text(json.dumps({**manifest, "version": 2}))
    with pytest.raises(CheckpointMismatch, match="version 2, and this release reads version 1"):
        read_backup(backup)


@pytest.mark.parametrize(
    "path", ["/etc/backup", "../backup", "{root}", "{root}/../other", "{root}-too/x", "out/x", "{root}/out"]
)
def test_a_backup_is_below_the_folder_of_the_settings(tmp_path: Path, path: str) -> None:
    root = tmp_path / "backups"
    (tmp_path / "other").mkdir()
    root.mkdir()
    (root / "out").symlink_to(tmp_path / "other")
    bound = Settings(data_dir=tmp_path, backup_dir=root)
    with pytest.raises(SqlError, match="outside of the folder of backups"):
        backup_place(bound, path.format(root=root), "BACKUP VIEW")
    for within in ("monday", f"{root}/monday", "x/../monday"):
        assert backup_place(bound, within, "RESTORE VIEW") == root / "monday"
    free = Settings(data_dir=tmp_path)
    assert backup_place(free, "/backups/monday", "BACKUP VIEW") == Path("/backups/monday")


def test_a_name_is_no_path(tmp_path: Path) -> None:
    """Of a view, as a statement gave it, or as a backup that was tampered with does."""
    for name in ("/../../x", "../x", "/etc", "a/b", "..", ".", "", "ü ./x"):
        assert checkpoint_in(tmp_path, name).resolve().parent == tmp_path / "checkpoints"
        assert "/" not in folder_name(name)
    assert folder_name("named_orders.1-a") == "named_orders.1-a"


def test_the_statements_are_read() -> None:
    backup, restore = "BACKUP VIEW v TO '/b'", "RESTORE MATERIALIZED VIEW v FROM '/b'"
    assert parse_one(backup) == BackupView("v", "/b", backup)
    assert parse_one(restore) == RestoreView("v", "/b", restore)


def test_of_what_does_not_exist_there_is_no_backup(tmp_path: Path) -> None:
    stream = parse_one("CREATE STREAM s (n int)")
    assert isinstance(stream, CreateStream)
    session = Session(temporary_settings(tmp_path), Catalog.open("sqlite://"), BrokerAddress("nowhere"))
    session.context.catalog.create(stream, now_ms=0)
    with pytest.raises(SqlError, match="is no materialized view"):
        session.run(f"BACKUP VIEW s TO '{tmp_path / 'b'}'")
    session.close()
