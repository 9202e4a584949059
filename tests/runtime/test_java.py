"""Which Java is taken, and what is said when there is none to take."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.changelog.errors import StackError
from dovetail.runtime.java import find_java


def java_home(folder: Path, version: str) -> Path:
    """A folder whose bin/java says that it is of that version."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    executable.chmod(0o755)
    return folder


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_java_home_is_taken(tmp_path: Path, version: str, major: int) -> None:
    home = java_home(tmp_path / "jdk", version)
    java = find_java({"JAVA_HOME": str(home), "PATH": ""})
    assert (java.executable, java.major) == (home / "bin" / "java", major)


def test_the_path_is_searched_without_java_home(tmp_path: Path) -> None:
    home = java_home(tmp_path / "jdk", "17.0.1")
    assert find_java({"PATH": str(home / "bin")}).executable == home / "bin" / "java"


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("11.0.2", 11)])
def test_an_old_java_is_refused(tmp_path: Path, version: str, major: int) -> None:
    home = java_home(tmp_path / "jdk", version)
    with pytest.raises(StackError, match=f"Java {major} is too old") as caught:
        find_java({"JAVA_HOME": str(home)})
    assert "Java 17 or newer" in caught.value.fix


def test_no_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="Java was not found"):
        find_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="JAVA_HOME has no bin/java"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})


def test_a_java_that_does_not_run_is_refused(tmp_path: Path) -> None:
    home = java_home(tmp_path / "jdk", "17")
    (home / "bin" / "java").write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    with pytest.raises(StackError, match="gave no version: broken"):
        find_java({"JAVA_HOME": str(home)})
