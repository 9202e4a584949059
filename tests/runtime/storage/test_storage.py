"""What a checkpoint asks of the place it is kept in: of a folder and of an object store alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dovetail.changelog.errors import ServiceUnavailable, StackError, StorageRefused
from dovetail.runtime.storage.claim import claim
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.runtime.storage.object_store import ObjectStore
from dovetail.runtime.storage.places import beside, checked_location, expect_usable, hadoop_conf, storage_at
from dovetail.runtime.storage.s3_access import S3Access
from dovetail.runtime.storage.storage import Storage, copy_file
from dovetail.runtime.storage.watch import StorageWatch
from tests.servers.object_store import BUCKET, access, object_store, place
from tests.servers.process import PASSWORD
from tests.servers.proxy import Proxy


@pytest.fixture(scope="module")
def way(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with object_store(tmp_path_factory.mktemp("moto")) as running:
        yield running


@pytest.fixture(params=["folder", pytest.param("object store", marks=pytest.mark.services)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return LocalFolder(tmp_path / "place")
    return place(request.getfixturevalue("way"), f"a prefix/{tmp_path.name}")


def test_what_was_put_last_is_read(storage: Storage) -> None:
    storage.put("query.json", b"first")
    storage.put("query.json", b"second")
    storage.put("spark/offsets/0", b"")
    assert (storage.read("query.json"), storage.read("spark/offsets/0")) == (b"second", b"")
    assert (storage.size("query.json"), storage.inside("spark").read("offsets/0")) == (6, b"")


def test_what_is_not_there_is_told_from_what_cannot_be_read(storage: Storage) -> None:
    assert (storage.names(), storage.names("state"), storage.files()) == ([], [], [])
    for ask in (storage.read, storage.size):
        with pytest.raises(FileNotFoundError):
            ask("query.json")
    storage.remove("query.json")
    storage.clear()


def test_names_are_those_right_in_a_folder_and_files_all_below_it(storage: Storage) -> None:
    for name in ("query.json", "spark/offsets/0", "spark/offsets/1", "spark/state/0/1.zip"):
        storage.put(name, b"x")
    assert sorted(storage.names()) == ["query.json", "spark"]
    assert sorted(storage.names("spark/offsets")) == ["0", "1"]
    assert sorted(storage.files("spark")) == ["spark/offsets/0", "spark/offsets/1", "spark/state/0/1.zip"]
    storage.remove("spark/offsets/0")
    assert sorted(storage.inside("spark").files()) == ["offsets/1", "state/0/1.zip"]
    storage.inside("spark").clear()
    assert storage.files() == ["query.json"]


def test_a_large_file_is_written_and_copied_piece_by_piece(storage: Storage, tmp_path: Path) -> None:
    content = bytes(range(256)) * 50_000
    with storage.writing("snapshots/rates.arrow") as file:
        file.write(content[:1000])
        file.write(content[1000:])
    copy_file(storage, "snapshots/rates.arrow", LocalFolder(tmp_path / "copy"))
    assert (tmp_path / "copy" / "snapshots" / "rates.arrow").read_bytes() == content


def test_a_place_is_that_of_one_catalog(storage: Storage) -> None:
    claim(storage, "first")
    claim(storage, "first")
    with pytest.raises(StackError, match="belong to another catalog, first") as refused:
        claim(storage, "second")
    assert (refused.value.where, "DOVETAIL_CHECKPOINT_DIR" in refused.value.fix) == (storage.location, True)
    storage.remove("catalogs/first")
    claim(storage, "second")


@pytest.mark.parametrize("given", ["s3://bucket/a", "hdfs://host/a", "s3a://", "s3a:///"])
def test_a_location_of_another_kind_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="neither a folder nor s3a://bucket/prefix"):
        checked_location(given)


def test_a_location_is_a_folder_or_a_prefix(tmp_path: Path) -> None:
    assert storage_at(checked_location(str(tmp_path)), {}) == LocalFolder(tmp_path)
    found = storage_at(checked_location("s3a://bucket/a/b/"), {"spark.hadoop.fs.s3a.endpoint": "http://minio:9000"})
    assert (found.location, found.folder) == ("s3a://bucket/a/b", None)
    assert found.inside("1-view").url == "s3a://bucket/a/b/1-view"
    assert hadoop_conf(found)["spark.hadoop.fs.s3a.endpoint"] == "http://minio:9000"
    assert storage_at("s3a://bucket", {}).inside("1-view").location == "s3a://bucket/1-view"


def test_another_place_is_reached_where_the_bucket_is_the_same() -> None:
    here = ObjectStore("bucket", "a", S3Access(access_key="k"))
    assert beside(here, "s3a://bucket/b/c") == ObjectStore("bucket", "b/c", here.access)
    assert beside(here, "s3a://other/b") is None
    assert beside(LocalFolder(Path("/a")), "s3a://bucket/b") is None
    assert beside(here, "/a") == LocalFolder(Path("/a"))


def test_a_store_is_reached_by_the_settings_of_hadoop_or_by_the_environment() -> None:
    conf = {
        "spark.hadoop.fs.s3a.endpoint": "minio:9000",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": "all",
        "spark.hadoop.fs.s3a.secret.key": "secret",
        "spark.hadoop.fs.s3a.bucket.mine.access.key": "own",
    }
    environment = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hidden",
        "AWS_SESSION_TOKEN": "token",
        "AWS_REGION": "eu-west-1",
    }
    assert S3Access.of("mine", conf, environment) == S3Access(
        "minio:9000", "http", "eu-west-1", "own", "secret", path_style=True
    )
    of_environment = S3Access.of("mine", {}, environment)
    assert of_environment == S3Access(
        region="eu-west-1", access_key="key", secret_key="hidden", session_token="token", path_style=False
    )
    assert "hidden" not in repr(of_environment)
    assert "token" not in repr(of_environment)


@pytest.mark.services
def test_a_store_that_refuses_is_told_of_without_its_secret(way: Proxy) -> None:
    missing = ObjectStore("not-there", "a", access(way))
    with pytest.raises(StorageRefused, match="there is no bucket not-there") as refused:
        expect_usable(missing)
    assert "DOVETAIL_CHECKPOINT_DIR" in refused.value.fix
    with pytest.raises(StorageRefused, match="there is no bucket"):
        missing.put("query.json", b"{}")
    assert PASSWORD not in str(refused.value)


@pytest.mark.services
def test_a_login_that_a_store_does_not_know_is_told_of_without_its_secret(tmp_path: Path) -> None:
    with object_store(tmp_path, refuses=True) as way:
        storage = place(way, "a")
        for ask in (lambda: expect_usable(storage), storage.names, lambda: storage.put("query.json", b"{}")):
            with pytest.raises(StorageRefused, match="refuses its user") as refused:
                ask()
            assert "spark.hadoop.fs.s3a.access.key" in refused.value.fix
            assert f"s3a://{BUCKET}/a at 127.0.0.1" in refused.value.where
            assert PASSWORD not in str(refused.value)


@pytest.mark.services
def test_a_watch_says_that_a_store_is_away_for_as_long_as_it_is(tmp_path: Path) -> None:
    with object_store(tmp_path) as way:
        watch = StorageWatch(place(way, "a"))
        watch.start()
        assert watch.trouble == ""
        way.close()
        await_that(lambda: "does not answer" in watch.trouble)
        way.open()
        await_that(lambda: watch.trouble == "")
        watch.stop()


@pytest.mark.services
def test_a_store_that_is_away_is_told_of_until_it_is_back(tmp_path: Path) -> None:
    with object_store(tmp_path) as way:
        storage = place(way, "a")
        expect_usable(storage)
        way.close()
        for ask in (storage.names, lambda: storage.read("query.json"), lambda: storage.put("query.json", b"{}")):
            with pytest.raises(ServiceUnavailable, match="does not answer") as lost:
                ask()
            assert f"s3a://{BUCKET}/a at 127.0.0.1" in lost.value.where
        way.open()
        expect_usable(storage)


def await_that(holds: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_folder_is_not_watched(tmp_path: Path) -> None:
    watch = StorageWatch(LocalFolder(tmp_path))
    watch.start()
    assert watch.trouble == ""
    watch.stop()
