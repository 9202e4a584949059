"""Errors as a person reads them, and the exit code that goes with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.text import Text

from dovetail.changelog.errors import DovetailError, EnvironmentFault
from dovetail.runtime.faults import remedy
from dovetail.services.cli.show import Screen
from dovetail.sql.syntax.redact import redacted

FAILED = 1
"""The command could not do what was asked, or what it looked at is not well. 2 is that of a command used wrongly."""
UNDECIDED = 3
"""Nothing went wrong, and what was asked cannot be told."""
INTERRUPTED = 130
READER_GONE = 141
"""``dovetail tail v | head`` has what it wanted."""


def show_error(screen: Screen, error: DovetailError) -> None:
    """What, where and fix; passwords masked."""
    what, *rest = redacted(str(error)).split("\n")
    screen.notes.print(Text.assemble(("error: ", "bold red"), what))
    for line in rest:
        screen.notes.print(Text(line, style="green" if line.startswith("  fix:") else ""))


@contextmanager
def reporting_errors(screen: Screen) -> Iterator[None]:
    """Ends the command with exit code 1 and the error's text, or with 130 on Ctrl-C. A disk that fails is an error too:
    there is a traceback of defects only.
    """
    try:
        yield
    except DovetailError as error:
        show_error(screen, error)
        raise typer.Exit(FAILED) from None
    except BrokenPipeError:
        # As a command that the signal ends, without a word. What is not written yet would fail again on the way out.
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise typer.Exit(READER_GONE) from None
    except OSError as failure:
        show_error(screen, EnvironmentFault(str(failure), where=str(failure.filename or ""), fix=remedy(failure)))
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        screen.note("interrupted")
        raise typer.Exit(INTERRUPTED) from None
