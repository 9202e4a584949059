"""``python -m dovetail.spark_jobs.runner``: the runner, until it is told to stop."""

from __future__ import annotations

import logging
import os
import sys
import threading

from dovetail.runtime.logs.query_logs import keep_query_logs
from dovetail.runtime.processes.signals import stop_on_signals
from dovetail.runtime.processes.start import exit_code_of
from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.scratch import scratch
from dovetail.spark_jobs.runner.runner import run
from dovetail.spark_jobs.runner.runner_settings import RunnerSettings
from dovetail.spark_jobs.runner.spark_session import fork_from_here, is_local


def main() -> int:
    stopped = threading.Event()
    stop_on_signals(stopped)

    def serve(settings: Settings) -> None:
        if is_local(settings.spark_master):
            fork_from_here()
        keep_query_logs(settings)
        with scratch(settings.scratch) as folder:
            run(RunnerSettings.of(settings), folder, stopped)

    return exit_code_of(serve)


if __name__ == "__main__":
    # Threads that wait for a JVM or a broker that has gone must not hold the process.
    code = main()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
