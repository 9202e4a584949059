"""The parent of Spark's Python workers on a host: it imports once what each of them needs, then forks them.

``spark.python.daemon.module``. Spark's own daemon forks empty processes, and each imports Arrow, Polars, DuckDB and the
operators anew: seconds of every core at the start of a query.
"""

from __future__ import annotations

import gc
import importlib
import os

from pyspark.daemon import manager

STAGES = (
    "pyspark.worker",
    "dovetail.spark_jobs.fused.source",
    "dovetail.spark_jobs.stages.level",
    "dovetail.spark_jobs.stages.output",
)

if __name__ == "__main__":
    if "DOVETAIL_FORK_SERVER" not in os.environ:
        # Out of a zip, too, which each worker would compile anew.
        for module in STAGES:
            importlib.import_module(module)
    # What is there now lives as long as the process: a collection in a worker need not touch, and copy, its pages.
    gc.freeze()
    # A batch is tens of thousands of messages that live for a moment: to look for garbage among them finds none.
    gc.set_threshold(100_000, 20, 20)
    manager()
