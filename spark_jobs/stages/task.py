"""What a running task knows of itself."""

from __future__ import annotations

from pyspark import TaskContext


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("not inside a task of Spark")
    return context


def partition() -> int:
    return _context().partitionId()


def batch_id() -> int:
    """The number of the batch that the task belongs to: the same in a replay."""
    return int(_context().getLocalProperty("streaming.sql.batchId") or 0)
