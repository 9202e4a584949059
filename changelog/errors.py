"""The errors of Dovetail, one tree.

    DovetailError
    ├─ SqlError                a statement that cannot be run as written      user
    │  ├─ SyntaxFault          the text is not SQL of either dialect
    │  ├─ UnknownName          a stream, column, function or setting that is not there
    │  └─ Unsupported          understood, and refused: the nearest thing that works is named
    ├─ FunctionFault           a function of the user's breaks its declaration user
    ├─ RecordRejected          one record that cannot be used                 user
    ├─ StateLimitExceeded      the rows buffered by a query passed its limit  user
    ├─ CountOverflow           a row would stand more often than can be told  user
    ├─ CheckpointMismatch      the checkpoint belongs to another plan         user
    ├─ RecordsGone             records were deleted before they were read     user
    ├─ Interrupted             a statement whose time is over, or whose client has gone  user
    ├─ StackError              the local stack: Java, jars, ports, processes  user
    ├─ ServiceUnavailable      a broker, cache or database does not answer    external, retry
    │  └─ BrokerError          a call to the broker failed (``broker.errors``)
    ├─ EnvironmentFault        a process, a disk or memory fails              external, retry
    ├─ SourceRefused           a database answers, and refuses                user, retry
    ├─ StorageRefused          an object store answers, and refuses           user, retry
    └─ InternalError           an invariant of Dovetail is broken             internal

Each says what was attempted, where, and the fix with its exact setting. What may pass by itself has ``retry``: a query
that it ends is started again, for as long as it takes. Anything else ends the query until somebody has mended it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from dovetail.changelog.suggest import Guess

REASON_BYTES = 1_000
_CUT = "…"


def shortened(text: str) -> str:
    """``text``, or how it begins and a mark: at most REASON_BYTES in UTF-8. For what quotes a record."""
    # A character takes a byte at least, so no more of them are looked at; half a pair of them is a question mark.
    head = text[: REASON_BYTES + 1].encode(errors="replace")
    if len(head) <= REASON_BYTES:
        return head.decode()
    return head[: REASON_BYTES - len(_CUT.encode())].decode(errors="ignore") + _CUT


class Domain(StrEnum):
    """Who can mend it: the user, somebody else's service, or the developers."""

    USER = "user"
    EXTERNAL = "external"
    INTERNAL = "internal"


class DovetailError(Exception):
    """The root. ``str()`` gives what, where and fix, a line each."""

    domain: Domain = Domain.INTERNAL
    retry: bool = False

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what, where, fix)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.fix:
            lines.append(f"  fix:   {self.fix}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Spark carries errors from its workers to the driver by pickle, which knows nothing of keywords.
        return _rebuild, (type(self), self.what, self.where, self.fix)


def _rebuild(kind: type[DovetailError], what: str, where: str, fix: str) -> DovetailError:
    return kind(what, where=where, fix=fix)


class TextPlace(str):
    """A ``where`` that knows the text it is about: ``offset`` counts the characters of ``script`` before it."""

    script: str
    offset: int

    @staticmethod
    def of(shown: str, script: str, offset: int) -> TextPlace:
        made = TextPlace(shown)
        made.script, made.offset = script, offset
        return made


class SqlError(DovetailError):
    """A statement that cannot be run as it is written; ``where`` gives line, column and clause, ``offset`` the place in
    its text, where that is known.
    """

    domain = Domain.USER

    @property
    def offset(self) -> int | None:
        return self.where.offset if isinstance(self.where, TextPlace) else None


class SyntaxFault(SqlError):
    """The text is not SQL of either dialect; ``guesses`` of the word that was meant, the likeliest first, are yet to be
    tried, and ``form`` is what to look at where none of them helps.
    """

    guesses: Sequence[Guess] = ()
    form: str = ""


class UnknownName(SqlError):
    """A stream, column, function or setting that does not exist; ``fix`` names the nearest that does."""


class Unsupported(SqlError):
    """Understood, and refused; ``fix`` names the nearest thing that works."""


class FunctionFault(DovetailError):
    """A function that a user has written gives what it does not declare, or cannot be loaded; its query ends."""

    domain = Domain.USER


class RecordRejected(DovetailError):
    """One record that cannot be used; it goes to the dead-letter topic with this as its reason, which may quote it."""

    domain = Domain.USER

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(shortened(what), where=where, fix=fix)


class StateLimitExceeded(DovetailError):
    """The rows that a query buffers passed ``join_max_buffered_bytes``; the query is aborted."""

    domain = Domain.USER


class CountOverflow(DovetailError):
    """Equal rows are so many that their count does not fit into 64 bits; the query is aborted."""

    domain = Domain.USER


class CheckpointMismatch(DovetailError):
    """The checkpoint was written by another plan, so the query cannot resume from it."""

    domain = Domain.USER


class RecordsGone(DovetailError):
    """Records of an input were deleted, by retention or by hand, before the query had read them."""

    domain = Domain.USER


class Interrupted(DovetailError):
    """A statement was ended from outside: its time is over, or nobody waits for its answer."""

    domain = Domain.USER


class StackError(DovetailError):
    """The local stack cannot be started or reached."""

    domain = Domain.USER


class ServiceUnavailable(DovetailError):
    """A service outside of Dovetail does not answer; trying again may help."""

    domain = Domain.EXTERNAL
    retry = True


class EnvironmentFault(DovetailError):
    """What a query runs on has failed: a process that died, a full disk, memory; trying again may help."""

    domain = Domain.EXTERNAL
    retry = True


class StorageRefused(DovetailError):
    """An object store refuses what is asked of it for checkpoints: login, or bucket.

    Trying again helps once somebody has mended it.
    """

    domain = Domain.USER
    retry = True


class SourceRefused(DovetailError):
    """The source of a dictionary refuses what is asked: password, database, table or column.

    Trying again helps once somebody has mended the source, so rows wait for it as for one that does not answer.
    """

    domain = Domain.USER
    retry = True


class InternalError(DovetailError):
    """An invariant of Dovetail is broken."""
