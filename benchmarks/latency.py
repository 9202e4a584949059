"""Latency at a held rate: each left row meets one right row; the time from its produce to its joined row being read."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import orjson
from confluent_kafka import Producer

from benchmarks.delays import received
from benchmarks.load import create_topics, now_ms
from benchmarks.running import start
from dovetail.runtime.settings import read_settings
from dovetail.services.jars import jar_paths
from dovetail.spark_jobs.runner.spark_session import start_session

RATE = 1000
WARM_UP_S = 60
DDL = [
    "CREATE STREAM asked (k int64, sent float64)",
    "CREATE STREAM answered (k int64, sent float64)",
]
VIEW = (
    "CREATE MATERIALIZED VIEW paired AS SELECT asked.k AS k, answered.sent AS sent FROM asked JOIN answered"
    " ON asked.k = answered.k SETTINGS seek_to = 'earliest', buckets = 1"
)


def measure(brokers: str, folder: Path, seconds: int) -> None:
    """Hold ``RATE`` rows a second; print p50, p95 and p99 of the rows sent after the warm-up."""
    folder.mkdir()
    create_topics(brokers, ["asked", "answered"], 1)
    settings = read_settings()
    session = start_session("latency", jar_paths(settings, "spark"), "local[2]")
    query = start(session, brokers, folder, settings, DDL, VIEW)
    stop = threading.Event()
    sender = threading.Thread(target=send, args=(brokers, WARM_UP_S + seconds, stop))
    sender.start()
    try:
        delays = received(brokers, ["paired"], "sent", WARM_UP_S, seconds)
    finally:
        stop.set()
        sender.join()
        query.stop()
        session.stop()
    p50, p95, p99 = np.percentile(delays, [50, 95, 99])
    print(
        f"latency at {RATE} rows a second, {len(delays):,} rows: p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms"
    )


def send(brokers: str, seconds: int, stop: threading.Event, rate: int = RATE) -> None:
    """Half of the rows to each side, one pair after the other, evenly in time."""
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0})
    began = time.monotonic()
    for k in range(seconds * rate // 2):
        pause = began + k * 2 / rate - time.monotonic()
        if pause > 0 and stop.wait(pause):
            return
        for topic in ("asked", "answered"):
            producer.produce(topic, orjson.dumps({"k": k, "sent": now_ms()}))
        producer.poll(0)
    producer.flush()
