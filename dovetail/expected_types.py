"""What is given from Python is of the type that is asked for: no checker need have looked at the program."""

from __future__ import annotations

from dovetail.changelog.errors import SqlError


def expect_text(value: object, where: str, example: str) -> None:
    """Raises SqlError for what is no text; ``example`` is a call with one."""
    if not isinstance(value, str):
        raise _misfit("a text", value, where, f"give a text: {example}")


def expect_truth(value: object, called: str, where: str) -> None:
    if not isinstance(value, bool):
        raise _misfit(f"True or False for {called}", value, where, f"{called}=True, or leave it out")


def expect_limit(value: object, where: str) -> None:
    """None: there is no limit."""
    if value is not None and (type(value) is not int or value < 0):
        raise SqlError(
            f"{value!r} is not a number of rows", where=where, fix="limit=10, or leave it out for rows without end"
        )


def _misfit(expected: str, value: object, where: str, fix: str) -> SqlError:
    return SqlError(f"{expected} is expected, not {value!r} of the type {type(value).__name__}", where=where, fix=fix)
