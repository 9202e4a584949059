"""The start of a process that serves until it is told to stop."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from dovetail.changelog.errors import DovetailError, EnvironmentFault
from dovetail.runtime.environment.unknown_variables import warn_of_unknown
from dovetail.runtime.faults import remedy
from dovetail.runtime.logs.process_log import configure_logs
from dovetail.runtime.processes.descriptors import raise_descriptor_limit
from dovetail.runtime.processes.own_files import keep_to_owner
from dovetail.runtime.settings import Settings, read_settings

_LOG = logging.getLogger("dovetail.start")


def exit_code_of(serve: Callable[[Settings], None]) -> int:
    """``serve`` by the settings of this process, its logging set up: 0 when it returns, 1 for an error of Dovetail, or
    of a file, which goes to standard error.
    """
    try:
        settings = read_settings()
        raise_descriptor_limit()
        keep_to_owner(settings.data_dir)
        configure_logs(settings.log_level, settings.log_format)
        warn_of_unknown(_LOG.warning)
        serve(settings)
    except DovetailError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as failure:
        if failure.filename is None:
            raise
        _LOG.debug("ended by a file", exc_info=failure)
        print(EnvironmentFault(str(failure), where=str(failure.filename), fix=remedy(failure)), file=sys.stderr)
        return 1
    return 0
