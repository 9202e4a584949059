"""What a running task knows of itself."""

from __future__ import annotations

from pyspark import TaskContext

from dovetail.changelog.errors import EnvironmentFault


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


def refuse_second_attempt() -> None:
    """A task with state is not tried again within its batch: an executor may hold the state of the attempt before in
    memory, and go on with it where the one that was written is another (decision 7). The whole query is started again.
    """
    if number := _context().attemptNumber():
        raise EnvironmentFault(
            f"a task of batch {batch_id()} was lost, and Spark has tried it again: attempt {number + 1}",
            where=f"partition {partition()}",
            fix="the query is started again from its checkpoint by itself",
        )
