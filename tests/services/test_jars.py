"""The lock of the jars, and what a damaged file leads to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import Settings, read_settings
from dovetail.services.jars import ensure_jars, jar_folder, jar_paths, locked_jars

SOME_JAR = "kafka_2.13-4.3.0.jar"


@pytest.fixture
def own_settings(tmp_path: Path) -> Settings:
    """Settings with an empty jar folder, and the machine's jar cache."""
    return read_settings().model_copy(update={"jar_dir": tmp_path / "jars"})


def test_the_lock_names_each_jar_once_with_its_checksum() -> None:
    jars = locked_jars()
    assert len({(jar.jar_set, jar.module) for jar in jars}) == len(jars)
    assert {len(jar.sha256) for jar in jars} == {64}
    assert {jar.jar_set for jar in jars} == {"broker", "spark", "s3a", "flink"}


@pytest.mark.services
def test_the_folders_hold_the_lock_and_nothing_else(own_settings: Settings) -> None:
    (own_settings.jars / "broker").mkdir(parents=True)
    (own_settings.jars / "broker" / "of-an-older-lock.jar").touch()
    paths = jar_paths(own_settings, "broker")
    assert sorted(jar_folder(own_settings, "broker").iterdir()) == sorted(paths)


@pytest.mark.services
def test_a_missing_jar_is_fetched_again(own_settings: Settings) -> None:
    ensure_jars(own_settings)
    missing = own_settings.jars / "broker" / SOME_JAR
    missing.unlink()
    ensure_jars(own_settings)
    assert missing.exists()


@pytest.mark.services
def test_a_damaged_jar_in_the_cache_is_fetched_again(own_settings: Settings, tmp_path: Path) -> None:
    ensure_jars(own_settings)
    cache = tmp_path / "cache"
    shutil.copytree(own_settings.jar_cache, cache)
    next(cache.rglob(SOME_JAR)).write_bytes(b"half a download")
    repaired = own_settings.model_copy(update={"jar_cache": cache, "jar_dir": tmp_path / "repaired"})
    progress: list[str] = []
    ensure_jars(repaired, progress.append)
    assert "fetching 1 damaged jars again" in progress
    assert (repaired.jars / "broker" / SOME_JAR).stat().st_size > 1_000_000


@pytest.mark.services
def test_jars_that_cannot_be_had_say_so(own_settings: Settings, tmp_path: Path) -> None:
    ivy_settings = tmp_path / "ivysettings.xml"
    ivy_settings.write_text(
        '<ivysettings><settings defaultResolver="mirror"/><resolvers>'
        f'<ibiblio name="mirror" m2compatible="true" usepoms="false" root="file://{tmp_path}/mirror"/>'
        "</resolvers></ivysettings>"
    )
    offline = own_settings.model_copy(update={"ivy_settings": ivy_settings, "jar_cache": tmp_path / "cache"})
    with pytest.raises(StackError, match=r"could not be fetched: .*not found") as caught:
        ensure_jars(offline)
    assert "DOVETAIL_IVY_SETTINGS" in caught.value.fix
    assert list(offline.jars.glob(".*.complete")) == []
