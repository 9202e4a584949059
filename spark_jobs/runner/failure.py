"""What Spark says when a query fails, told as an error of Dovetail."""

from __future__ import annotations

import re
from collections.abc import Mapping

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException

import dovetail.changelog.errors
from dovetail.changelog.errors import (
    CheckpointMismatch,
    DovetailError,
    EnvironmentFault,
    InternalError,
    ServiceUnavailable,
    StackError,
    StorageRefused,
)
from dovetail.runtime.faults import error_of
from dovetail.spark_jobs.stages.at_fault import without_note

# A worker's error arrives as the text of its traceback: the class, then what, where and fix as ``str`` gives them.
_TYPED = re.compile(
    r"^dovetail\.changelog\.errors\.(?P<kind>\w+): (?P<what>.*?)"
    r"(?:\n  where: (?P<where>.*?))?(?:\n  fix:   (?P<fix>.*?))?(?=\n SQLSTATE|\n\s*\n|\n\s+at |\Z)",
    re.MULTILINE | re.DOTALL,
)
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = re.compile(
    r"\s*(?:The above exception was the direct cause of the following|During handling of the above exception, another)"
    rf" exception(?: occurred)?:\s*{re.escape(_TRACEBACK)}"
)
_KINDS: Mapping[str, type[DovetailError]] = {
    name: kind
    for name, kind in vars(dovetail.changelog.errors).items()
    if isinstance(kind, type) and issubclass(kind, DovetailError)
}
_BROKER = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network|Coordinator|BrokerNotAvailable)\w*Exception[^\n]*"
    r"|(?<=\.BrokerError: the broker did not answer): [^\n]*"
)
# The last line of a traceback: an exception of Python that the machine raises, not the code.
_PYTHON = re.compile(
    r"^(?:\w+\.)*(?:OSError|IOError|FileNotFoundError|PermissionError|BlockingIOError|TimeoutError|ConnectionError"
    r"|Connection\w+Error|BrokenPipeError|MemoryError|EOFError|ArrowMemoryError|IOException"
    r"|OutOfMemoryException)\b[^\n]*",
    re.MULTILINE,
)
_FOLDERS = "DOVETAIL_CHECKPOINT_DIR and DOVETAIL_LOCAL_COPY_DIR"
_DISK = {
    "No space left on device": f"free some space on the disk of {_FOLDERS}",
    "Disk quota exceeded": f"free some space in {_FOLDERS}, or raise the quota",
    "Read-only file system": f"mount the disk of {_FOLDERS} for writing",
    "Input/output error": f"see the log of the operating system for the disk of {_FOLDERS}",
}
_ON_DISK = re.compile("|".join(_DISK))
_PROCESS = re.compile(
    r"Python worker (?:exited|process|failed)|FetchFailedException|java\.io\.EOFException"
    r"|java\.net\.\w{0,40}?(?:Socket|Connect)\w{0,40}?Exception"
    r"|Connection reset|Connection refused|Broken pipe|ExecutorLostFailure|SparkContext (?:was|has been) \w+"
    r"|stopped SparkContext|java\.lang\.OutOfMemoryError|java\.lang\.InterruptedException"
    r"|java\.nio\.channels\.ClosedByInterruptException"
)
_DAMAGED = re.compile(
    r"Incomplete log file|CANNOT_LOAD_STATE_STORE|CANNOT_READ_\w{0,40}?(?:DELTA|SNAPSHOT)|CHECKPOINT_\w{0,40}?CORRUPT"
    r"|Error reading (?:delta|snapshot|streaming state) file|failed to read log file"
)
# Of exceptions, not of the frames below them, in which the same names stand.
_STORE = r"^(?!\s+at )[^\n]*?(?P<message>"
_STORE_REFUSES = re.compile(
    rf"{_STORE}(?:AccessDeniedException: s3a:|UnknownStoreException|NoAuthWithAWSException|NoAwsCredentialsException"
    r"|CredentialInitializationException|AWSRedirectException|Status Code: (?:301|401|403))[^\n]*)",
    re.MULTILINE,
)
_STORE_LOST = re.compile(
    rf"{_STORE}(?:org\.apache\.hadoop\.fs\.s3a\.[\w.]{{0,120}}?(?:Exception|Error)"
    r"|software\.amazon\.awssdk\.[\w.]{0,120}?(?:Exception|Error)|Unable to execute HTTP request|[Oo]n s3a://)[^\n]*)",
    re.MULTILINE,
)
_NO_S3A = re.compile(
    r"S3AFileSystem not found|ClassNotFoundException: org\.apache\.spark\.internal\.io\.cloud|No FileSystem for scheme"
)
_AGAIN = "it is tried again by itself"
_LONGEST_LINE = 2_000
# The interpreter of the executors, whichever way it is found wanting.
_NO_INTERPRETER = re.compile(r'Cannot run program "(?P<path>[^"]+)"')
_NO_LIBRARY = re.compile(r"No module named '(?P<name>[\w.]+)'|PACKAGE_NOT_INSTALLED\]\s*(?P<other>\w+)")
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\][^\n]*")
_INTERPRETER = "the interpreter that spark.pyspark.python in DOVETAIL_SPARK_CONF names"


def typed(failure: StreamingQueryException, query: str) -> DovetailError:
    """The DovetailError that ended ``query``: the worker's own where there is one."""
    return error_from_spark(without_note(said_of(failure)), _in_query(query))


def said_of(failure: StreamingQueryException) -> str:
    """All that Spark says of it."""
    # Of a cause without words, as a connection that ends has none, the failure itself says not even the class.
    return f"{failure}\n{getattr(failure, '_cause', None) or ''}"


def of_session(failure: PySparkException | Py4JError) -> DovetailError:
    """What stood in the way of the session itself, before any query."""
    return error_from_spark(str(failure), "the session of Spark")


def of_driver(failure: BaseException, query: str) -> DovetailError:
    """What stood in the way of ``query`` in this process: of the driver, of its JVM or of a client."""
    where = _in_query(query)
    match failure:
        case StreamingQueryException() | PySparkException() | Py4JJavaError():
            return error_from_spark(str(failure), where)
        case Py4JError():
            return EnvironmentFault("the JVM of Spark has gone", where=where, fix=_AGAIN)
    return error_of(failure, where)


def error_from_spark(text: str, where: str) -> DovetailError:
    """By the words of Spark, which has no other way to say what has happened in a worker.

    What quotes a record may do so in a line of megabytes, in which patterns would be sought for hours.
    """
    text = "\n".join(line[:_LONGEST_LINE] for line in text.split("\n"))
    if (found := _raised(text)) and (kind := _KINDS.get(found["kind"])):
        return kind(found["what"], where=_joined(where, found["where"] or ""), fix=found["fix"] or "")
    if error := _of_store(text, where):
        return error
    if lost := _BROKER.search(text):
        return ServiceUnavailable(
            f"the broker was lost: {lost[0].split(': ', 1)[-1]}",
            where=where,
            fix=f"start the broker; {_AGAIN}",
        )
    if found := _ON_DISK.search(text):
        return EnvironmentFault(_line_of(found), where=where, fix=f"{_DISK[found[0]]}; {_AGAIN}")
    if found := _DAMAGED.search(text):
        return CheckpointMismatch(
            f"the checkpoint is damaged: {_line_of(found)}",
            where=where,
            fix="restore the checkpoint from a backup, or drop the query and create it again",
        )
    if fault := _interpreter(text, where):
        return fault
    if raised := _PYTHON.findall(_traceback(text)):
        return EnvironmentFault(raised[-1].strip(), where=where, fix=_AGAIN)
    if _TRACEBACK not in text and (found := _PROCESS.search(text)):
        return EnvironmentFault(f"a process of Spark has gone: {_line_of(found)}", where=where, fix=_AGAIN)
    return InternalError(_shortened(text), where=where, fix="see the runner's log for the whole trace")


def _raised(text: str) -> re.Match[str] | None:
    """The error of Dovetail that was raised in the end: of those that a traceback chains, each is the cause of the
    next.
    """
    found = _TYPED.search(text)
    while found and (link := _CHAINED.match(text, found.end())):
        outer = _TYPED.search(text, link.end())
        if outer is None or _TRACEBACK in text[link.end() : outer.start()]:
            break
        found = outer
    return found


def _of_store(text: str, where: str) -> DovetailError | None:
    """What an object store, or the way to it, has done to a checkpoint: the store will be back, and the checkpoint is
    not damaged by it.
    """
    if _NO_S3A.search(text):
        return StackError(
            "Spark has no jars for object stores",
            where=where,
            fix="fetch them with: python -m dovetail.services.jars s3a; name their folder in DOVETAIL_SPARK_JARS too",
        )
    if refused := _STORE_REFUSES.search(text):
        return StorageRefused(
            f"the object store refuses: {refused['message']}",
            where=where,
            fix="set spark.hadoop.fs.s3a.access.key and .secret.key in DOVETAIL_SPARK_CONF to what the store knows, and"
            f" DOVETAIL_CHECKPOINT_DIR to a bucket that is there; {_AGAIN}",
        )
    if lost := _STORE_LOST.search(text):
        return ServiceUnavailable(
            f"the object store was lost: {lost['message']}", where=where, fix=f"see that the store runs; {_AGAIN}"
        )
    return None


def _interpreter(text: str, where: str) -> EnvironmentFault | None:
    """What the Python of the executors lacks."""
    if found := _NO_INTERPRETER.search(text):
        return EnvironmentFault(
            f"an executor has no {found['path']}",
            where=where,
            fix=f"install Python there on every machine, or at another path: {_INTERPRETER}; {_AGAIN}",
        )
    if found := _NO_LIBRARY.search(text):
        return EnvironmentFault(
            f'the Python of an executor has no module "{found["name"] or found["other"]}"',
            where=where,
            fix=f"install what requirements.lock names for {_INTERPRETER}, on every machine; {_AGAIN}",
        )
    if found := _OTHER_PYTHON.search(text):
        return EnvironmentFault(
            f"an executor has another Python than the runner: {found[0].partition(']')[2].strip()}",
            where=where,
            fix=f"install the runner's version on every machine, as {_INTERPRETER}; {_AGAIN}",
        )
    return None


def _line_of(found: re.Match[str]) -> str:
    """The line in which it was found."""
    text = found.string
    end = text.find("\n", found.end())
    return text[text.rfind("\n", 0, found.start()) + 1 : end if end >= 0 else len(text)].strip()


def _in_query(query: str) -> str:
    return f'query "{query}"'


def _joined(where: str, place: str) -> str:
    return f"{where}, {place}" if place else where


def _traceback(text: str) -> str:
    """What Python told last, without the frames of the JVM after it; '' where it is not Python that failed."""
    _, found, traceback = text.rpartition(_TRACEBACK)
    return traceback.partition("\n\n\tat ")[0] if found else ""


def _shortened(text: str, lines: int = 12) -> str:
    """The last lines of the Python traceback if there is one, else the first of the text."""
    before, found, _ = text.partition("\n\n\tat ")
    shown = before.strip().splitlines()
    return "\n".join(shown[-lines:] if found else shown[:lines])
