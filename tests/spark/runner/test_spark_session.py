"""What a session starts its Python processes with."""

from __future__ import annotations

import os

from spark_jobs.runner.spark_session import WORKER_PYTHON


def test_the_interpreter_of_the_workers_is_where_the_session_looks_for_it() -> None:
    assert os.access(WORKER_PYTHON, os.X_OK)
