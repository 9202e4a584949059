"""Whether a cluster answers: asked once, waited for, or looked at all the time."""

from __future__ import annotations

import threading
import time

from confluent_kafka import KafkaException

from broker import clients
from broker.address import BrokerAddress
from changelog.errors import ServiceUnavailable

_ANSWER_S = 2.0
_ATTEMPT_S = 5.0
_LOOK_S = 1.0
_LOOK_ANSWER_S = 3.0
_SILENT_S = 4.0
"""A broker that answers after so long is slow, and not gone."""


def broker_answers(brokers: BrokerAddress, timeout_s: float = _ANSWER_S) -> bool:
    """Whether the brokers list their topics within the time."""
    return _silence(brokers, timeout_s) == ""


def await_broker(brokers: BrokerAddress, timeout_s: float, process: str) -> None:
    """Return once the brokers answer to ``process``. Raises ServiceUnavailable after the time."""
    deadline = time.monotonic() + timeout_s
    while reason := _silence(brokers, min(_ATTEMPT_S, timeout_s)):
        if time.monotonic() > deadline:
            raise ServiceUnavailable(
                f"no broker answered at {brokers} within {timeout_s:g} s: {reason}",
                where=process,
                fix="start the broker (dovetail up), or set DOVETAIL_BROKERS to where it listens",
            )


def _silence(brokers: BrokerAddress, timeout_s: float) -> str:
    """Why they do not answer; '' if they do."""
    try:
        clients.admin(brokers).list_topics(timeout=timeout_s)
    except KafkaException as failure:
        return failure.args[0].str() or "no reason was given"
    return ""


class BrokerWatch:
    """A thread that asks, from ``start`` to ``stop``."""

    def __init__(self, brokers: BrokerAddress) -> None:
        self._brokers = brokers
        self._answered_s = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="broker-watch", daemon=True)

    def start(self) -> None:
        self._answered_s = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    @property
    def trouble(self) -> str:
        """Why nothing can be read or written now; '' while the brokers answer."""
        silent_s = time.monotonic() - self._answered_s
        return "" if silent_s < _SILENT_S else f"no broker has answered at {self._brokers} for {silent_s:.0f} s"

    def _ask(self) -> None:
        client = clients.admin(self._brokers)
        while not self._ended.wait(_LOOK_S):
            try:
                client.describe_cluster(request_timeout=_LOOK_ANSWER_S).result(_LOOK_ANSWER_S)
            except (KafkaException, TimeoutError):
                continue
            self._answered_s = time.monotonic()
