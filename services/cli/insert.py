"""``dovetail insert``: the rows of files into a stream."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.changelog.wording import counted
from dovetail.services.cli.show import Screen
from dovetail.services.file_format import FORMAT_OF_ENDING, FileFormat
from dovetail.services.session import Session
from dovetail.services.session.files import row_batches
from dovetail.services.session.rows import insert_table
from dovetail.services.session.wait.input_chain import InputChain
from dovetail.sql.planner import stream_of
from dovetail.sql.syntax.statements import WaitFor

_STDIN = Path("-")


def insert_files(
    session: Session, screen: Screen, stream: str, files: Sequence[Path], *, kind: FileFormat | None, wait: str
) -> None:
    """Batch by batch, each in a transaction of its own, and says how far it has come. ``wait`` names a view that is to
    include them all.

    Raises SqlError with the file, and how many rows are there already, for the first row that does not fit. What
    cannot be waited for is refused before anything is written.
    """
    context, done = session.context, 0
    schema = stream_of(context.catalog, stream).schema
    if wait:
        InputChain.of(context.catalog, wait)
    for path in files:
        name = "standard input" if path == _STDIN else str(path)
        with _opened(path) as file:
            batches = row_batches(file, kind or _format(path), schema, name)
            try:
                for rows in batches:
                    done += insert_table(context, stream, rows)
                    screen.note(f"{counted(done, 'row')} of {name} in {stream}")
            except SqlError as fault:
                there = f"; {counted(done, 'row')} before it {'is' if done == 1 else 'are'} in {stream}" if done else ""
                raise type(fault)(f"{fault.what}{there}", where=fault.where, fix=fault.fix) from None
    screen.note(f"inserted {counted(done, 'row')} into {stream}", style="green")
    if wait:
        session.execute(WaitFor(wait))
        screen.note(f"{wait} includes them", style="green")


def _format(path: Path) -> FileFormat:
    """By the ending of the name. Raises SqlError for another."""
    found = FileFormat.JSONL if path == _STDIN else FORMAT_OF_ENDING.get(path.suffix.lower())
    if found is None:
        endings = ", ".join(FORMAT_OF_ENDING)
        raise SqlError(
            f"the name of {path.name} does not say what the file holds",
            where="dovetail insert",
            fix=f"--format {' | '.join(FileFormat)}; or a name that ends with one of {endings}",
        )
    return found


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path == _STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as fault:
        raise UnknownName(f"{path} cannot be read: {fault.strerror}", where="dovetail insert") from None
    with file:
        yield file
