"""The heap of Spark's JVM, which does not shrink by itself: it is collected when it is full, and little is given back.

The serial collector keeps 70 % free beside what is in use, and goes there in steps: of what is beyond, a collection
gives back nothing, the next a tenth, the next four tenths, the fourth all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

_COLLECTIONS = 4
_FREE_PERCENT = {"MinHeapFreeRatio": "5", "MaxHeapFreeRatio": "10"}
"""In the order in which the one may never be above the other."""


def give_memory_back(session: SparkSession) -> None:
    """Collect what is left of queries that have ended, and give the system all but a tenth of what is free."""
    jvm = session.sparkContext._jvm  # noqa: SLF001
    assert jvm is not None
    with _little_kept_free(jvm):
        for _ in range(_COLLECTIONS):
            jvm.System.gc()


@contextmanager
def _little_kept_free(jvm: Any) -> Iterator[None]:
    kind = jvm.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
    options = jvm.java.lang.management.ManagementFactory.getPlatformMXBean(kind)
    before = {name: options.getVMOption(name).getValue() for name in _FREE_PERCENT}
    for name, percent in _FREE_PERCENT.items():
        options.setVMOption(name, percent)
    try:
        yield
    finally:
        for name in reversed(before):
            options.setVMOption(name, before[name])
