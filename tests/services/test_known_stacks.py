"""Which stack a command is about, from whatever folder it is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import read_settings
from dovetail.services.known_stacks import forget, found_settings, other_stacks, remember
from dovetail.services.stack.processes import ProcessIdentity
from dovetail.services.stack.state import StackState, write_state

NOBODY = ProcessIdentity(os.getpid(), 0.0)
"""A process that has ended, and whose pid is another's now."""


@pytest.fixture(autouse=True)
def _a_user_without_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("DATA_DIR", "BROKERS", "CATALOG_URL"):
        monkeypatch.delenv(f"DOVETAIL_{name}", raising=False)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    folder = tmp_path / "places"
    folder.mkdir()
    return folder


def folder_of(places: Path, name: str) -> Path:
    folder = places / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def started(folder: Path, monkeypatch: pytest.MonkeyPatch, supervisor: ProcessIdentity | None = None) -> Path:
    """What ``dovetail up`` leaves behind in ``folder``; a supervisor that runs is this process."""
    monkeypatch.chdir(folder)
    settings = read_settings()
    settings.data_dir.mkdir(exist_ok=True)
    write_state(settings.data_dir / "stack.json", StackState("run", supervisor or ProcessIdentity.of(os.getpid())))
    remember(settings)
    return settings.data_dir


def test_where_none_runs_the_folder_is_meant(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(places)
    assert found_settings().data_dir == places / ".dovetail"


def test_the_one_that_runs_is_found_from_anywhere(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder_of(places, "a folder 'of' stäcks")
    data = started(home, monkeypatch)
    monkeypatch.chdir(folder_of(places, "elsewhere"))
    said: list[str] = []
    assert found_settings(say=said.append).data_dir == data
    assert said == [f"the stack that was started in {home}"]
    # What stops a stack is typed in its folder.
    assert found_settings(elsewhere=False).data_dir == places / "elsewhere" / ".dovetail"
    assert other_stacks(read_settings()) == f"; one runs that was started in {home}"
    forget(found_settings())
    assert found_settings().data_dir == places / "elsewhere" / ".dovetail"


def test_one_that_was_killed_is_not_meant(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(folder_of(places, "killed"), monkeypatch, NOBODY)
    data = started(folder_of(places, "living"), monkeypatch)
    monkeypatch.chdir(places)
    assert found_settings().data_dir == data


def test_its_settings_are_those_of_the_folder_where_it_was_started(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = folder_of(places, "home")
    (home / ".env").write_text("DOVETAIL_BUCKETS=7\nDOVETAIL_LOG_LEVEL=ERROR\nDOVETAIL_BROKERS=kafka:9092\n")
    started(home, monkeypatch)
    monkeypatch.chdir(folder_of(places, "elsewhere"))
    Path(".env").write_text("DOVETAIL_LOG_LEVEL=DEBUG\n")
    found = found_settings({"output_partitions": 3})
    assert (found.buckets, found.log_level, found.brokers, found.output_partitions) == (7, "DEBUG", "kafka:9092", 3)


def test_the_nearest_folder_around_stands_before_others(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(folder_of(places, "another"), monkeypatch)
    started(folder_of(places, "outer"), monkeypatch)
    inner = started(folder_of(places, "outer/inner"), monkeypatch)
    monkeypatch.chdir(folder_of(places, "outer/inner/deep/deeper"))
    assert found_settings().data_dir == inner


def test_several_are_named_and_none_is_guessed(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several = {started(folder_of(places, name), monkeypatch) for name in ("one", "two")}
    monkeypatch.chdir(folder_of(places, "elsewhere"))
    with pytest.raises(StackError, match="2 stacks run") as refused:
        found_settings()
    assert all(str(data) in str(refused.value) for data in several)
    assert "DOVETAIL_DATA_DIR=" in str(refused.value)


@pytest.mark.parametrize("own", ["stack.json", "catalog.db"])
def test_a_folder_with_a_stack_of_its_own_means_that(places: Path, monkeypatch: pytest.MonkeyPatch, own: str) -> None:
    """Also where it does not run: what is dropped there must not be dropped elsewhere."""
    started(folder_of(places, "running"), monkeypatch)
    monkeypatch.chdir(folder_of(places, "own"))
    Path(".dovetail").mkdir()
    (Path(".dovetail") / own).write_text("{}")
    assert found_settings().data_dir == places / "own" / ".dovetail"


@pytest.mark.parametrize(
    "named", [{"data_dir": "x"}, {"brokers": "kafka:9092"}, {"catalog_url": "sqlite:///catalog.db"}]
)
def test_what_is_named_stands(places: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, object]) -> None:
    data = started(folder_of(places, "running"), monkeypatch)
    monkeypatch.chdir(folder_of(places, "elsewhere"))
    assert found_settings(named).data_dir != data
    for name, value in named.items():
        monkeypatch.setenv(f"DOVETAIL_{name.upper()}", str(value))
    assert found_settings().data_dir != data


def test_a_home_that_cannot_be_written_to_hinders_nobody(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (places / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(places / "file"))
    data = started(folder_of(places, "home"), monkeypatch)
    monkeypatch.chdir(folder_of(places, "home/within"))
    assert found_settings().data_dir == data
    forget(found_settings())
