"""`.env`: read where nobody else may have written it, for settings alone; and a command says that it was."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from dovetail.changelog.errors import StackError
from dovetail.runtime import env_files
from dovetail.runtime.environment.env_files import tell_files
from dovetail.runtime.settings import read_settings
from dovetail.services.known_stacks import found_settings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of the working folder."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / ".env"
    made.write_text("DOVETAIL_BUCKETS=7\nDOVETAIL_REDIS_URL=redis://:s3cret@h\nDOVETAIL_MYSQL_PORT=1\nPATH=/evil\n")
    made.chmod(0o644)
    return made


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666, 0o620, 0o602])
def test_one_that_others_may_write_to_is_refused(file: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grp, "getgrgid", lambda group: grp.struct_group(("shared", "x", group, ["somebody", "else"])))
    file.chmod(mode)
    for read in (read_settings, found_settings):
        with pytest.raises(StackError, match="by others than its owner") as refused:
            read()
        assert refused.value.where == str(file)
        assert f"chmod go-w {file}" in refused.value.fix


def test_a_group_of_the_user_alone_may_write(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grp, "getgrgid", lambda group: grp.struct_group(("own", "x", group, [])))
    monkeypatch.setattr(
        pwd, "getpwuid", lambda user: pwd.struct_passwd(("me", "x", user, file.stat().st_gid, "", "/", "/bin/sh"))
    )
    file.chmod(0o664)
    assert read_settings().buckets == 7


def test_one_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(env_files, "_ROOT", owner + 2)
    with pytest.raises(StackError, match="another user's"):
        read_settings()


def test_it_sets_nothing_but_settings(file: Path) -> None:
    before = dict(os.environ)
    assert read_settings().buckets == 7
    assert dict(os.environ) == before


def test_what_it_sets_is_told_by_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert found_settings(say=said.append).buckets == 7
    assert said == [f"{file} sets DOVETAIL_BUCKETS, DOVETAIL_REDIS_URL"]
    monkeypatch.setenv("DOVETAIL_BUCKETS", "3")
    tell_files(said.append)
    assert said[1:] == [f"{file} sets DOVETAIL_REDIS_URL"]
    monkeypatch.setenv("DOVETAIL_REDIS_URL", "redis://h")
    file.chmod(0o600)
    tell_files(said.append)
    assert len(said) == 2
