"""``python -m services.serve``: the service over HTTP, until it is told to stop."""

from __future__ import annotations

import logging
import sys

from changelog.errors import DovetailError
from runtime.environment.unknown_variables import warn_of_unknown
from runtime.logs.process_log import configure_logs
from runtime.settings import read_settings
from services.serve.process import serve


def main() -> int:
    try:
        settings = read_settings()
        configure_logs(settings.log_level, settings.log_format)
        warn_of_unknown(logging.getLogger(__name__).warning)
        serve(settings)
    except DovetailError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
