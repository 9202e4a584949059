"""Lookup fragments in real worker processes: a catalog of the case's own, and a child process for each fragment."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin
from dovetail.changelog.errors import InternalError, ServiceUnavailable, SqlError
from dovetail.runtime.processes.forked import Forked, Request
from dovetail.runtime.settings import read_settings
from dovetail.services.session.input_progress import InputProgress
from dovetail.services.worker.supervisor.child_process import MODULE
from dovetail.sql.catalog import Actual, Catalog, Desired, Query
from dovetail.sql.catalog.records import RelationDefinition
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateStream, Statement
from tests.children import children
from tests.conformance.engine import NotRunnable
from tests.conformance.host import Launch
from tests.paths import ROOT

_LISTENER = 100
"""The number of the socket at which a process would be asked, which nobody does here."""
_START_S = 60.0
_DRAIN_S = 60.0
_STOP_S = 20.0
_POLL_S = 0.02
_LOG_LINES = 12


@dataclass(frozen=True)
class WorkerEnvironment:
    """What a worker process is told of its surroundings."""

    brokers: str
    redis_url: str
    folder: Path
    catalog_url: str

    def variables(self, name: str) -> dict[str, str]:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        settings = read_settings().model_copy(update={"data_dir": folder})
        given = {
            "BROKERS": self.brokers,
            "REDIS_URL": self.redis_url,
            "CATALOG_URL": self.catalog_url,
            "LOG_LEVEL": "WARNING",
        }
        return os.environ | settings.as_environment() | {f"DOVETAIL_{key}": value for key, value in given.items()}


def shared_catalog(url: str, catalog: Catalog, own: Callable[[str], str]) -> Catalog:
    """A copy of ``catalog`` that processes can share, in which streams have the topics that ``own`` names."""
    shared = Catalog.open(url)
    for relation in catalog.relations():
        definition: Statement = relation.definition
        if isinstance(definition, CreateStream):
            definition = parse_one(over_topic(definition, own(definition.topic or definition.name)))
        assert isinstance(definition, RelationDefinition)
        shared.create(definition, now_ms=relation.created_ms)
    return shared


def over_topic(statement: CreateStream, topic: str) -> str:
    """The text of the statement, its topic named."""
    clause = "SETTINGS" if statement.rules is Rules.TIMEPLUS else "WITH"
    setting = f"topic = '{topic}'"
    text = statement.text.rstrip().rstrip(";")
    if clause == "SETTINGS":
        joint = "," if re.search(r"\bSETTINGS\b", text, re.IGNORECASE) else " SETTINGS"
        return f"{text}{joint} {setting}"
    if re.search(r"\bWITH\s*\(", text, re.IGNORECASE):
        raise NotRunnable("a table with a WITH clause cannot be looked up by a case", where=text)
    return f"{text} WITH ({setting})"


class WorkerQuery:
    """A fragment in a worker process of its own."""

    def __init__(self, environment: WorkerEnvironment, catalog: Catalog, query: Query, topic: str) -> None:
        self._environment = environment
        self._catalog = catalog
        self._query = query
        self._topic = topic
        self._process = self._start()

    @staticmethod
    def started(
        environment: WorkerEnvironment, catalog: Catalog, launch: Launch, own: Callable[[str], str]
    ) -> WorkerQuery:
        fragment = launch.fragment
        query = Query(
            name=own(fragment.name),
            sql=launch.sql,
            plan=fragment.explain(),
            fingerprint=fragment.fingerprint,
            topic=own(launch.topic),
            engine=fragment.engine.value,
            view=own(launch.view),
        )
        made = catalog.add_query(query, now_ms=_now_ms())
        return WorkerQuery(environment, catalog, made, own(fragment.lookup_flow.scan.topic))

    def _start(self) -> Forked:
        self._catalog.report(self._query.id, now_ms=_now_ms(), actual=Actual.PENDING)
        variables = self._environment.variables(self._folder)
        arguments = (self._query.name, "--listen", str(_LISTENER))
        request = Request(MODULE, arguments, str(ROOT), variables, (0, 1, 2, _LISTENER))
        with (
            self._log.open("ab") as log,
            Path(os.devnull).open() as nothing,
            socket.create_server(("127.0.0.1", 0)) as listener,
        ):
            process = children().fork(request, (nothing.fileno(), log.fileno(), log.fileno(), listener.fileno()))
        self._process = process
        self._await(lambda query: query.actual is Actual.RUNNING, _START_S, "started")
        return process

    def settle(self) -> None:
        ends = topics.end_offsets(clients.admin(BrokerAddress(self._environment.brokers)), [self._topic])
        self._await(lambda query: InputProgress.of(query).includes(ends), _DRAIN_S, "answered its input")
        # A commit is answered before its records can be read.
        TopicAdmin(BrokerAddress(self._environment.brokers), _DRAIN_S).quiescent_ends(self._query.topic)
        counts = self._catalog.query(self._query.name).progress.get("counts", {})
        if rejected := counts.get("rejected", 0):
            raise InternalError(f"{rejected} records of the case were rejected", where=self._query.name)

    def _await(self, reached: Callable[[Query], bool], patience_s: float, what: str) -> None:
        end = time.monotonic() + patience_s
        while not reached(query := self._catalog.query(self._query.name)):
            if query.actual is Actual.FAILED:
                raise SqlError(query.error)
            if self._process.poll() is not None or time.monotonic() > end:
                state = f"code {self._process.poll()}: {query.error}{self._log_end}"
                raise ServiceUnavailable(f"the worker has not {what}, {state}", where=query.name)
            time.sleep(_POLL_S)

    @property
    def _log(self) -> Path:
        return self._environment.folder / f"{self._folder}.log"

    @property
    def _log_end(self) -> str:
        return "\n".join(["", *self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]])

    @property
    def _folder(self) -> str:
        return re.sub(r"\W", "_", self._query.name)

    def restart(self) -> None:
        self._end()
        self._process = self._start()

    def stop(self) -> None:
        self._end()
        self._catalog.want(self._query.name, Desired.DROPPED, now_ms=_now_ms())

    def _end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        if self._process.wait(_STOP_S) is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
