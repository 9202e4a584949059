"""Records that keep coming, from a seed, whatever happens to the broker."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from typing import Any

import orjson
from confluent_kafka import KafkaException, Producer

KEYS = 40
"""Few, so that joins have much to take back; the highest is no product."""
PARTITIONS = 2
_PAUSE_S = 0.05
_AT_ONCE = 10
_STEP_MS = 20


class Load:
    """A thread that sends orders, clicks and stock, about 600 records a second, from ``start`` to ``stop``.

    Event times only grow, so no row is late. A producer that retries forever loses nothing and repeats nothing.
    """

    def __init__(self, brokers: str, seed: int) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": brokers,
                "enable.idempotence": True,
                "message.timeout.ms": 600_000,
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        self._chance = random.Random(seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send, name="load")
        self.sent = 0
        self.refused: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when the broker has all records."""
        self._ended.set()
        self._thread.join()
        left = self._producer.flush(120)
        assert left == 0, f"{left} records were not taken"
        assert not self.refused, self.refused[:3]

    def _send(self) -> None:
        number = 0
        while not self._ended.wait(_PAUSE_S):
            for _ in range(_AT_ONCE):
                number += 1
                at_ms = 1_700_000_000_000 + number * _STEP_MS
                key = self._chance.randrange(KEYS)
                self._put("orders", number, {"n": number, "k": key, "v": self._chance.randrange(1000), "ts": at_ms})
                other = self._chance.randrange(KEYS)
                self._put("clicks", number, {"n": number, "k": other, "w": self._chance.randrange(9), "ts": at_ms})
                self._put("stock", key, {"k": key, "held": self._chance.randrange(100)}, key=str(key))
            self._producer.poll(0)

    def _put(self, topic: str, place: int, value: Mapping[str, Any], key: str | None = None) -> None:
        self._producer.produce(
            topic, orjson.dumps(value), key=key, partition=place % PARTITIONS, on_delivery=self._delivered
        )
        self.sent += 1

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self.refused.append(str(KafkaException(error)))
