"""``python -m dovetail.services.worker``: a lookup worker, until it is told to stop."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from dataclasses import replace

from dovetail.broker.presence import await_broker
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.runtime.clock import now_ms
from dovetail.runtime.environment.statement_secrets import secrets_of
from dovetail.runtime.logs.query_logs import keep_query_logs
from dovetail.runtime.processes.signals import stop_on_signals
from dovetail.runtime.processes.start import exit_code_of
from dovetail.runtime.settings import Settings
from dovetail.runtime.wanted import WantedWatch
from dovetail.services.commands.command_reader import CommandReader
from dovetail.services.worker.query.worker_settings import WorkerSettings
from dovetail.services.worker.supervisor.child_process import fork_server
from dovetail.services.worker.supervisor.health_server import health_server
from dovetail.services.worker.supervisor.worker_supervisor import WorkerSupervisor, discard_orphans
from dovetail.sql.catalog import Catalog, Worker

_LOG = logging.getLogger("dovetail.worker")
_LOOK_S = 0.2
_STALE_S = 10.0


def run(settings: Settings, stopped: threading.Event) -> None:
    """Look at the catalog until ``stopped``. Raises ServiceUnavailable if a service is away at first."""
    # Before this process has a thread.
    children = fork_server(settings.as_environment(), from_here=True)
    of_worker = WorkerSettings.of(settings)
    keep_query_logs(settings)
    await_broker(of_worker.brokers, of_worker.broker_timeout_s, "the lookup worker")
    catalog = Catalog.open(of_worker.catalog_url, python_functions=of_worker.python_functions)
    host, secrets = socket.gethostname(), tuple(secrets_of(os.environ))
    worker = Worker(f"{host}-{os.getpid()}", host, os.getpid(), started_ms=now_ms(), secrets=secrets)
    looked_s = [time.monotonic()]
    supervisor = WorkerSupervisor(
        worker, of_worker, settings.stop_timeout_s, catalog, settings.as_environment(), children
    )
    server = health_server(supervisor, lambda: time.monotonic() - looked_s[0] < _STALE_S, settings)
    supervisor.introduce(replace(worker, address=server.address))
    discard_orphans(supervisor.files, catalog)
    commands = CommandReader(of_worker.brokers, of_worker.broker_timeout_s, worker.id, supervisor)
    _LOG.info("worker %s takes up lookup queries, brokers %s, %s", worker.id, of_worker.brokers, server.address)
    wanted = WantedWatch(catalog)
    while not wanted.wait(stopped, _LOOK_S):
        try:
            supervisor.look()
            looked_s[0] = time.monotonic()
        except ServiceUnavailable as failure:
            _LOG.warning("the catalog is out of reach, looking again\n%s", failure)
    commands.close()
    supervisor.stop()
    server.close()
    catalog.close()
    _LOG.info("stopped")


def main() -> int:
    stopped = threading.Event()
    stop_on_signals(stopped)
    return exit_code_of(lambda settings: run(settings, stopped))


if __name__ == "__main__":
    sys.exit(main())
