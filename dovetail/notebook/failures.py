"""Errors as a notebook shows them: what, where and how to go on, and no traceback, but of defects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.changelog.errors import DovetailError, EnvironmentFault
from dovetail.runtime.faults import remedy
from dovetail.sql.syntax.redact import redacted


class CellFailed(Exception):
    """Ends a cell, so that "run all" goes no further. ``error`` says why."""

    def __init__(self, error: DovetailError) -> None:
        super().__init__(redacted(str(error)))
        self.error = error

    def _render_traceback_(self) -> list[str]:
        """IPython asks an exception for this before it makes a traceback of its own."""
        return [f"error: {self}"]


@contextmanager
def as_cell_failures() -> Iterator[None]:
    """Passwords are masked. Raises CellFailed in the place of what the user or the environment can mend."""
    try:
        yield
    except DovetailError as error:
        raise CellFailed(error) from None
    except OSError as failure:
        fault = EnvironmentFault(str(failure), where=str(failure.filename or ""), fix=remedy(failure))
        raise CellFailed(fault) from None
