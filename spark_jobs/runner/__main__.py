"""``python -m spark_jobs.runner``: the runner, until it is told to stop."""

from __future__ import annotations

import logging
import os
import sys
import threading

from changelog.errors import DovetailError
from runtime.environment.unknown_variables import warn_of_unknown
from runtime.logs.process_log import configure_logs
from runtime.logs.query_logs import keep_query_logs
from runtime.settings import read_settings
from runtime.signals import told_to_stop
from spark_jobs.runner.runner import run
from spark_jobs.runner.runner_settings import RunnerSettings


def main() -> int:
    stopped = threading.Event()
    told_to_stop(stopped)
    try:
        settings = read_settings()
        configure_logs(settings.log_level, settings.log_format)
        warn_of_unknown(logging.getLogger(__name__).warning)
        keep_query_logs(settings)
        run(RunnerSettings.of(settings), stopped)
    except DovetailError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # Threads that wait for a JVM or a broker that has gone must not hold the process.
    code = main()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
