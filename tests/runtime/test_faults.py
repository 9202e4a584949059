"""Exceptions of the environment and those of the code, told apart."""

from __future__ import annotations

import errno

import pytest

from dovetail.broker.errors import BrokerError
from dovetail.changelog.errors import DovetailError, EnvironmentFault, InternalError, ServiceUnavailable, SqlError
from dovetail.runtime.faults import error_of


@pytest.mark.parametrize(
    ("failure", "kind", "fix"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), EnvironmentFault, "free some space"),
        (OSError(errno.EROFS, "Read-only file system"), EnvironmentFault, "for writing"),
        (PermissionError(errno.EACCES, "Permission denied"), EnvironmentFault, "let this user"),
        (ConnectionRefusedError("refused"), EnvironmentFault, "again by itself"),
        (EOFError(), EnvironmentFault, "again by itself"),
        (MemoryError(), EnvironmentFault, "memory"),
        (TimeoutError(), ServiceUnavailable, "dovetail status"),
        (BrokerError("transport failed"), ServiceUnavailable, "the broker runs"),
    ],
)
def test_what_the_environment_does_may_pass(failure: BaseException, kind: type[DovetailError], fix: str) -> None:
    error = error_of(failure, "here")

    assert type(error) is kind
    assert error.retry
    assert (error.where, fix in f"{error.what} {error.fix}") == ("here", True)


@pytest.mark.parametrize("failure", [ValueError("x"), KeyError("x"), ZeroDivisionError(), AssertionError()])
def test_a_defect_does_not(failure: BaseException) -> None:
    error = error_of(failure, "here")

    assert isinstance(error, InternalError)
    assert not error.retry
    assert type(failure).__name__ in error.what


def test_an_error_of_ours_stays_what_it_is() -> None:
    error = SqlError("as written")
    assert error_of(error, "elsewhere") is error
