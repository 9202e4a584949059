"""A panic of polars is no ``Exception``: nothing that ends a query, a request or a task in order would catch it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.changelog.errors import InternalError


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Raises InternalError where polars panics."""
    from polars.exceptions import PanicException  # noqa: PLC0415 - who only names a format waits for no library

    try:
        yield
    except PanicException as panic:
        raise InternalError(
            f"polars could not take a value: {panic}",
            where="reading or writing rows",
            fix="report it, with the statement and the types of its columns",
        ) from panic
