"""Settings of Spark that are handed through to it: ``DOVETAIL_SPARK_CONF``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from dovetail.changelog.errors import StackError

_VARIABLE = "DOVETAIL_SPARK_CONF"
_PAIR = re.compile(r"(spark\.[\w.-]+)=(.*)", re.DOTALL)
_LINE = re.compile(r"(spark\.[\w.-]+)(?:\s*[=:]\s*|\s+)(.*)")
_BUCKETS = "leave it out: it is the number of buckets of each query, DOVETAIL_BUCKETS"
_FIXED = "leave it out: the state or the output of queries would be wrong with another value"
DECIDED: Mapping[str, str] = {
    "spark.master": "set DOVETAIL_SPARK_MASTER",
    "spark.driver.memory": "set DOVETAIL_DRIVER_MEMORY_GIB",
    "spark.jars": "put the jars into the folder that DOVETAIL_SPARK_JARS names",
    "spark.submit.deployMode": "leave it out: the runner is the driver",
    "spark.python.daemon.module": "leave it out: the workers of Dovetail start so",
    "spark.speculation": _FIXED,
    "spark.stage.maxConsecutiveAttempts": _FIXED,
    "spark.sql.adaptive.enabled": _FIXED,
    "spark.sql.session.timeZone": _FIXED,
    "spark.sql.shuffle.partitions": _BUCKETS,
    "spark.sql.streaming.noDataMicroBatches.enabled": _FIXED,
    "spark.sql.streaming.numRecentProgressUpdates": "leave it out: the runner reads its figures there",
    "spark.sql.streaming.stateStore.providerClass": _FIXED,
}
"""What Dovetail sets itself → what to do instead."""


def read_conf(given: str) -> dict[str, str]:
    """The settings of ``given``: pairs ``spark.key=value`` and paths of properties files, cut as a shell cuts words.

    Of two for one key the later one stands. Raises StackError for what is neither, and for what Dovetail decides.
    """
    found: dict[str, str] = {}
    for word in _words(given):
        pair = _PAIR.fullmatch(word)
        found.update({pair[1]: pair[2]} if pair else _of_file(Path(word)))
    for key in found:
        if key in DECIDED:
            raise StackError(f"{key} is set by Dovetail", where=_VARIABLE, fix=DECIDED[key])
    return found


def _words(given: str) -> list[str]:
    try:
        return shlex.split(given)
    except ValueError as fault:
        raise StackError(
            f"the settings of Spark cannot be read: {fault}",
            where=_VARIABLE,
            fix="write pairs like spark.executor.memory=4g, those with spaces in quotes, and paths of properties files",
        ) from fault


def _of_file(path: Path) -> dict[str, str]:
    """A properties file as spark-submit reads it: ``key value``, ``key=value`` or ``key: value``, # for comments."""
    try:
        lines = path.expanduser().read_text().splitlines()
    except OSError as fault:
        raise StackError(
            f'"{path}" is neither spark.key=value nor a file that can be read: {fault.strerror}',
            where=_VARIABLE,
            fix="write pairs like spark.executor.memory=4g, and paths of properties files",
        ) from fault
    return dict(_of_line(line.strip(), f"{path}, line {number}") for number, line in enumerate(lines, 1) if _says(line))


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _of_line(line: str, where: str) -> tuple[str, str]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise StackError(
            f'"{line}" is no setting of Spark', where=where, fix="write it as: spark.key value; comments begin with #"
        )
    return found[1], found[2]
