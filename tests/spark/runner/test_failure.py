"""What Spark says of a failure, told as an error of Dovetail."""

from __future__ import annotations

import traceback

import pytest
from pyspark.errors import StreamingQueryException

from dovetail.broker.errors import BrokerError
from dovetail.changelog.errors import (
    CheckpointMismatch,
    DovetailError,
    EnvironmentFault,
    InternalError,
    ServiceUnavailable,
    StackError,
    StateLimitExceeded,
    StorageRefused,
    UnknownName,
)
from dovetail.spark_jobs.runner.failure import typed

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
    reported = error(f"{TRACE}dovetail.changelog.errors.{type(raised).__name__}: {raised}\n{TAIL}")

    assert type(reported) is type(raised)
    noted = error(f"{TRACE}dovetail.changelog.errors.{type(raised).__name__}: {raised}\n[of member 7]\n{TAIL}")
    assert str(noted) == str(reported)
    assert (reported.what, reported.fix) == (raised.what, raised.fix)
    assert reported.where == ", ".join(filter(None, ['query "view"', raised.where]))


def test_of_errors_that_cause_each_other_the_last_is_the_one() -> None:
    """A topic that is gone is waited for: that it does not exist ends no query for good."""
    try:
        try:
            raise UnknownName('topic "t" does not exist', where="the inputs", fix="create it")
        except UnknownName as cause:
            raise ServiceUnavailable("no end is known", where="brokers", fix="start the broker") from cause
    except ServiceUnavailable:
        chained = traceback.format_exc()
    reported = error(
        f"{HEAD} from the Python worker: {chained}\n{TAIL}{HEAD} from the Python worker: {chained}\n{TAIL}"
    )

    assert isinstance(reported, ServiceUnavailable)
    assert (reported.what, reported.where) == ("no end is known", 'query "view", brokers')


def test_an_error_that_ends_in_another_kind_is_told_all_the_same() -> None:
    try:
        try:
            raise StateLimitExceeded("too many rows")
        except StateLimitExceeded as cause:
            raise RuntimeError("the task has failed") from cause
    except RuntimeError:
        chained = traceback.format_exc()

    assert isinstance(error(f"{HEAD} from the Python worker: {chained}\n{TAIL}"), StateLimitExceeded)


def test_a_lost_broker_is_a_service_that_may_come_back() -> None:
    lost = "org.apache.kafka.common.errors.TimeoutException: Call(callName=listOffsets) timed out at 1 after 2 attempts"

    reported = error(f"{HEAD}\njava.util.concurrent.ExecutionException: {lost}\n\tat java.base/a.b(C.java:1)")

    assert isinstance(reported, ServiceUnavailable)
    assert "listOffsets" in reported.what


def test_anything_else_is_an_internal_error_with_the_end_of_its_traceback() -> None:
    reported = error(f"{TRACE}ZeroDivisionError: division by zero\n\n\tat org.apache.spark.Something(X.scala:1)")

    assert isinstance(reported, InternalError)
    assert "ZeroDivisionError: division by zero" in reported.what
    assert "X.scala" not in reported.what


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 28] No space left on device",
        "OSError: [Errno 30] Read-only file system: '/data/state'",
        "PermissionError: [Errno 13] Permission denied: '/data/state'",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "TimeoutError",
        "MemoryError",
        "EOFError",
        "duckdb.duckdb.OutOfMemoryException: Out of Memory Error",
    ],
)
def test_what_the_machine_does_to_python_is_the_environment(line: str) -> None:
    reported = error(f"{TRACE}{line}\n\n\tat org.apache.spark.Something(X.scala:1)")

    assert reported.retry, reported
    assert isinstance(reported, EnvironmentFault)


@pytest.mark.parametrize(
    "line",
    [
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "java.io.EOFException",
        "java.net.SocketException: Connection reset",
        "java.net.ConnectException: Connection refused",
        "java.io.IOException: No space left on device",
        "java.nio.file.FileSystemException: /data/offsets/7: Read-only file system",
        "org.apache.spark.SparkException: ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
        "org.apache.spark.SparkException: Job 7 cancelled because SparkContext was shut down",
        "java.lang.OutOfMemoryError: Java heap space",
    ],
)
def test_what_happens_to_a_process_of_spark_is_the_environment(line: str) -> None:
    reported = error(f"{HEAD}\n{line}\n\tat java.base/a.b(C.java:1)")

    assert reported.retry, reported


def test_a_broker_that_a_worker_has_lost_is_said_to_be_lost() -> None:
    raised = "".join(traceback.format_exception_only(BrokerError("broker down")))
    reported = error(f"{TRACE}{raised}\n\tat org.apache.spark.Something(X.scala:1)")

    assert isinstance(reported, ServiceUnavailable)
    assert reported.what == "the broker was lost: broker down"


def test_a_cause_without_words_is_told_by_its_class() -> None:
    """As Spark gives the end of the process that says where the inputs end."""
    failure = StreamingQueryException("[STREAM_FAILED] Query [id = 1] terminated with exception:  (no cause message)")
    cause = Exception("\n\nJVM stacktrace:\njava.io.EOFException\n\tat java.base/a.b(C.java:1)")
    setattr(failure, "_cause", cause)  # noqa: B010 - its type does not say that it has one

    reported = typed(failure, "view")

    assert isinstance(reported, EnvironmentFault)
    assert "java.io.EOFException" in reported.what


def test_a_defect_that_speaks_of_the_environment_is_a_defect() -> None:
    reported = error(
        f"{TRACE}ValueError: Connection refused, OSError and Broken pipe\n\n\tat org.apache.spark.X(X.scala:1)"
    )

    assert isinstance(reported, InternalError)


@pytest.mark.parametrize(
    "line",
    [
        "java.lang.IllegalStateException: Incomplete log file in the offset log",
        "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred",
    ],
)
def test_a_damaged_checkpoint_is_said_with_the_way_out(line: str) -> None:
    reported = error(f"{HEAD}\n{line}\n\tat java.base/a.b(C.java:1)")

    assert isinstance(reported, CheckpointMismatch)
    assert "backup" in reported.fix


def test_a_batch_that_has_lost_a_part_with_its_executor_is_run_again() -> None:
    reported = error(
        f"{HEAD}\nJob aborted due to stage failure: ResultStage 6 has failed the maximum allowable number of times: 1."
        " Most recent failure reason: org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location"
        " for shuffle 1 partition 1\n\tat org.apache.spark.MapOutputTracker$.validateStatus(X.scala:1)"
    )

    assert isinstance(reported, EnvironmentFault)
    assert "a process of Spark has gone" in reported.what


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (
            'java.io.IOException: Cannot run program "/opt/dovetail/bin/python": error=2, No such file or directory',
            "an executor has no /opt/dovetail/bin/python",
        ),
        ("ModuleNotFoundError: No module named 'confluent_kafka'", 'has no module "confluent_kafka"'),
        ("[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; however, it was not found.", '"PyArrow"'),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11",
            "another Python than the runner: Python in worker has different version: 3.9",
        ),
    ],
)
def test_what_the_python_of_an_executor_lacks_is_said_with_the_setting(line: str, what: str) -> None:
    reported = error(f"{TRACE}{line}\n\n\tat org.apache.spark.Something(X.scala:1)")

    assert isinstance(reported, EnvironmentFault)
    assert what in reported.what
    assert "spark.pyspark.python in DOVETAIL_SPARK_CONF" in reported.fix


FRAME = "\n\tat org.apache.hadoop.fs.s3a.S3AFileSystem.s3GetFileStatus(S3AFileSystem.java:4015)"


@pytest.mark.parametrize(
    "line",
    [
        "org.apache.hadoop.fs.s3a.AWSClientIOException: open s3a://b/1-v: Unable to execute HTTP request",
        "java.net.ConnectException: getFileStatus on s3a://b/1-v/spark/offsets: Connection refused",
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] No\nCaused by: org.apache.hadoop.fs.s3a.AWSStatus500Exception: 1",
        "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: Read timed out",
    ],
)
def test_a_store_that_is_lost_is_a_service_that_may_come_back_and_no_damage(line: str) -> None:
    assert isinstance(error(f"{HEAD}\n{line}{FRAME}"), ServiceUnavailable)


@pytest.mark.parametrize(
    "line",
    [
        "java.nio.file.AccessDeniedException: s3a://b/1-v: getFileStatus on s3a://b/1-v: (Status Code: 403)",
        "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://b/1-v/spark': getFileStatus on s3a://b: NoSuchBucket",
        "org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: No AWS Credentials provided",
    ],
)
def test_a_store_that_refuses_is_said_with_the_settings(line: str) -> None:
    reported = error(f"{HEAD}\n{line}{FRAME}")
    assert isinstance(reported, StorageRefused)
    assert "spark.hadoop.fs.s3a.access.key" in reported.fix


def test_a_version_that_is_missing_in_a_store_is_damage() -> None:
    line = "Error reading delta file s3a://b/1-v/spark/state/0/0/2.changelog: java.io.FileNotFoundException: No"
    assert isinstance(error(f"{HEAD}\n{line}{FRAME}"), CheckpointMismatch)


def test_jars_that_are_missing_are_said_with_the_command() -> None:
    line = "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"
    reported = error(f"{HEAD}\n{line}")
    assert isinstance(reported, StackError)
    assert "python -m dovetail.services.jars s3a" in reported.fix


@pytest.mark.parametrize("quoted", ["1" * 1_000_000, "Connection refuse" * 60_000, "org.apache.kafka." * 60_000])
@pytest.mark.parametrize("head", [HEAD, TRACE + "pyarrow.lib.ArrowInvalid: no number: "])
def test_what_quotes_a_large_record_is_told_shortly(head: str, quoted: str) -> None:
    assert len(str(error(head + quoted + "\n" + TAIL))) < 10_000
