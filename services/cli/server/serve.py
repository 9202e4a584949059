"""``dovetail serve``: the HTTP server, in the foreground."""

from __future__ import annotations

from dovetail.runtime.logs.process_log import configure_logs
from dovetail.runtime.settings import Settings
from dovetail.services.serve.process import serve


def run_server(settings: Settings) -> None:
    """Until it is told to stop. Raises StackError for settings by which strangers would get in."""
    configure_logs(settings.log_level, settings.log_format)
    serve(settings)
