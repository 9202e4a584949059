"""Any exception as an error of Dovetail: whether the environment is to blame, and so may mend it."""

from __future__ import annotations

import errno

from dovetail.broker.errors import BrokerError
from dovetail.changelog.errors import DovetailError, EnvironmentFault, InternalError, ServiceUnavailable, shortened

_DISK = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or raise the quota",
    errno.EROFS: "mount the file system for writing",
    errno.EACCES: "let this user write there",
    errno.EPERM: "let this user write there",
    errno.EIO: "see the log of the operating system for the disk",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the limit of open files of the system",
}


def error_of(failure: BaseException, where: str) -> DovetailError:
    """What ended the work at ``where``; InternalError where it is nothing that the environment does."""
    match failure:
        case BrokerError():
            return ServiceUnavailable(failure.what, where=where, fix=failure.fix)
        case DovetailError():
            return failure
        case TimeoutError():
            return ServiceUnavailable("a service did not answer in time", where=where, fix="dovetail status")
        case ConnectionError() | EOFError():
            return EnvironmentFault(f"a process that is needed has gone: {_message(failure)}", where=where, fix=_AGAIN)
        case MemoryError():
            return EnvironmentFault("there is no memory left", where=where, fix="see what takes it; " + _AGAIN)
        case OSError():
            return EnvironmentFault(_message(failure), where=where, fix=f"{remedy(failure)}; {_AGAIN}")
    return InternalError(_message(failure), where=where, fix="see the log for the whole trace, and report it")


def remedy(failure: OSError) -> str:
    """What to do about a disk."""
    return _DISK.get(failure.errno or 0, "see that the folder is there, and that the disk is well")


_AGAIN = "it is tried again by itself"


def _message(failure: BaseException) -> str:
    return shortened(f"{type(failure).__name__}: {failure}" if str(failure) else type(failure).__name__)
