"""A run of Dovetail: a stack of its own over the broker, and the view, from its statement until it has answered all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.beside_flink.usage import Measured, Usage
from benchmarks.beside_flink.workloads import Workload
from dovetail.services.stack import Stack
from dovetail.services.stack.files import StackFiles
from dovetail.services.stack.state import read_state
from dovetail.services.stack.temporary import temporary_settings

_SETTLED_S = 2.0
"""Between the declaration of the inputs and the view, which the times of Flink begin with as well."""
_LONGEST_S = 900


def run(workload: Workload, brokers: str, output: str, folder: Path) -> Measured:
    """The time of ``dovetail run``, its process included."""
    settings = temporary_settings(folder, brokers=brokers, buckets=2, spark_master="local[2]")
    stack = Stack(settings, owner_pid=os.getpid())
    stack.up(("spark",))
    try:
        _dovetail(settings.as_environment(), folder, ";\n".join(workload.streams()))
        time.sleep(_SETTLED_S)
        state = read_state(StackFiles(settings).state)
        assert state is not None
        with Usage([state.supervisor.pid]) as usage:
            begun_s = time.monotonic()
            view = f"CREATE MATERIALIZED VIEW {output} AS {workload.dovetail}"
            _dovetail(settings.as_environment(), folder, f"{view};\nWAIT FOR {output} TIMEOUT {_LONGEST_S}", usage)
            seconds = time.monotonic() - begun_s
        measured = usage.measured(seconds)
        _dovetail(settings.as_environment(), folder, f"DROP VIEW {output}")
    finally:
        stack.down()
    return measured


def _dovetail(environment: dict[str, str], folder: Path, script: str, usage: Usage | None = None) -> None:
    file = folder / "script.sql"
    file.write_text(script + ";\n")
    argv = [str(Path(sys.executable).with_name("dovetail")), "run", str(file)]
    with subprocess.Popen(
        argv,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        if usage is not None:
            usage.add(process.pid)
        said, _ = process.communicate()
    if process.returncode:
        sys.exit(f"{script}\n{said}")
