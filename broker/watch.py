"""Whether the brokers answer, looked at all the time."""

from __future__ import annotations

import threading
import time

from confluent_kafka import KafkaException

from broker import clients
from broker.address import BrokerAddress

_LOOK_S = 1.0
_ANSWER_S = 3.0
_SILENT_S = 4.0
"""A broker that answers after so long is slow, and not gone."""


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
                client.describe_cluster(request_timeout=_ANSWER_S).result(_ANSWER_S)
            except (KafkaException, TimeoutError):
                continue
            self._answered_s = time.monotonic()
