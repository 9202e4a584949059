"""Find the Java that runs Kafka and Spark.

``JAVA_HOME`` wins over the PATH, as it does for Spark itself. Java 17 is the oldest that Spark 4.2
and Kafka 4.3 run on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dovetail.changelog.errors import StackError

OLDEST_MAJOR = 17
_INSTALL = f"install Java {OLDEST_MAJOR} or newer (a headless one is enough) and put it on the PATH, or set JAVA_HOME"


@dataclass(frozen=True)
class Java:
    """A Java runtime: its ``java`` executable and its major version."""

    executable: Path
    major: int


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The Java of ``JAVA_HOME``, else of the PATH; :class:`StackError` when it is missing or too old."""
    executable = java_executable(environ)
    major = _major_version(executable)
    if major < OLDEST_MAJOR:
        raise StackError(
            f"Java {major} is too old: Kafka and Spark need Java {OLDEST_MAJOR} or newer",
            where=str(executable),
            fix=_INSTALL,
        )
    return Java(executable, major)


def java_executable(environ: Mapping[str, str] = os.environ) -> Path:
    """The program that starts a JVM; :class:`StackError` where there is none."""
    home = environ.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise StackError(f"JAVA_HOME has no bin/java: {home}", fix=_INSTALL)
        return executable
    found = shutil.which("java", path=environ.get("PATH"))
    if found is None:
        raise StackError("Java was not found: JAVA_HOME is not set and the PATH has no java", fix=_INSTALL)
    return Path(found)


def _major_version(executable: Path) -> int:
    """17 of ``version "17.0.15"``, 8 of ``version "1.8.0_392"``."""
    answer = subprocess.run([executable, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if answer.returncode != 0 or match is None:
        raise StackError(f"{executable} -version gave no version: {answer.stderr.strip()[:200]}", fix=_INSTALL)
    return int(match.group(1))
