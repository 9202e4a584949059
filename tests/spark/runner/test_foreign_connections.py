"""What else runs on the machine may connect to any port: a scan of ports, a health check gone astray."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import Queries
from tests.spark.flows import orders_clicks
from tests.spark.jvm import process_of
from tests.spark.kafka import multiset, send, values

pytestmark = pytest.mark.services


def test_foreign_connections_stop_no_query(
    broker: str, topics: Callable[..., str], queries: Queries, spark: SparkSession
) -> None:
    left, right = topics("left"), topics("right")
    dataflow = orders_clicks(left, right)
    query = queries.start(dataflow, "scanned")

    with _scanned(process_of(spark)) as connected:
        for number in range(5):
            send(broker, left, [{"k": number, "a": "x"}])
            send(broker, right, [{"k": number, "b": "y"}])
            queries.drain(query, dataflow)

    assert multiset(values(broker, "scanned")) == {(number, "x", "y"): 1 for number in range(5)}
    assert connected


@contextmanager
def _scanned(process: psutil.Process) -> Iterator[list[int]]:
    """Connects to each port at which a process and its children listen, again and again; yields the ports."""
    connected: list[int] = []
    ended = threading.Event()

    def scan() -> None:
        while not ended.is_set():
            for port in _ports(process):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                    connection.sendall(b"\0" * 64)
                    connected.append(port)

    scanning = threading.Thread(target=scan)
    scanning.start()
    try:
        yield connected
    finally:
        ended.set()
        scanning.join()


def _ports(process: psutil.Process) -> set[int]:
    ports: set[int] = set()
    for one in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            sockets = one.net_connections("tcp")
            ports |= {each.laddr.port for each in sockets if each.status == psutil.CONN_LISTEN}
    return ports
