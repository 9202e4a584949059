"""What Spark says of a failure, told as an error of Dovetail."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

from changelog.errors import DovetailError, InternalError, ServiceUnavailable, StateLimitExceeded
from spark_jobs.runner.failure import typed

HEAD = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_EXCEPTION] An exception was thrown"
TRACE = HEAD + ' from the Python worker: Traceback (most recent call last):\n  File "worker.py", line 1, in main\n'
TAIL = " SQLSTATE: 38000 SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: view\n"


def error(text: str) -> DovetailError:
    return typed(StreamingQueryException(text), "view")


@pytest.mark.parametrize(
    "raised",
    [
        StateLimitExceeded("too many rows", where="bucket 1", fix="raise join_max_buffered_bytes"),
        StateLimitExceeded("too many rows", fix="raise join_max_buffered_bytes"),
        ServiceUnavailable("two\nlines"),
    ],
)
def test_the_error_of_a_worker_keeps_its_kind_and_words(raised: DovetailError) -> None:
    told = error(f"{TRACE}changelog.errors.{type(raised).__name__}: {raised}\n{TAIL}")

    assert type(told) is type(raised)
    assert (told.what, told.fix) == (raised.what, raised.fix)
    assert told.where == ", ".join(filter(None, ['query "view"', raised.where]))


def test_a_lost_broker_is_a_service_that_may_come_back() -> None:
    lost = "org.apache.kafka.common.errors.TimeoutException: Call(callName=listOffsets) timed out at 1 after 2 attempts"

    told = error(f"{HEAD}\njava.util.concurrent.ExecutionException: {lost}\n\tat java.base/a.b(C.java:1)")

    assert isinstance(told, ServiceUnavailable)
    assert "listOffsets" in told.what


def test_anything_else_is_an_internal_error_with_the_end_of_its_traceback() -> None:
    told = error(f"{TRACE}ZeroDivisionError: division by zero\n\n\tat org.apache.spark.Something(X.scala:1)")

    assert isinstance(told, InternalError)
    assert "ZeroDivisionError: division by zero" in told.what
    assert "X.scala" not in told.what
