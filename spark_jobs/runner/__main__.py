"""``python -m spark_jobs.runner``: the runner, until it is told to stop."""

from __future__ import annotations

import sys
import threading

from changelog.errors import DovetailError
from spark_jobs.logs import configure_logs
from spark_jobs.runner.environment import RunnerSettings
from spark_jobs.runner.runner import run
from spark_jobs.signals import told_to_stop


def main() -> int:
    stopped = threading.Event()
    told_to_stop(stopped)
    try:
        settings = RunnerSettings.read()
        configure_logs(settings.log_level, settings.log_format)
        run(settings, stopped)
    except DovetailError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
