"""Files of statements, in an order: all are read before the first is run; or all are checked, and none is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dovetail.changelog.errors import DovetailError, SqlError
from dovetail.changelog.wording import counted
from dovetail.services.cli.failures import show_error
from dovetail.services.cli.run import run_statements
from dovetail.services.cli.show import Screen
from dovetail.services.session import Session
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.statements import Statement

_ENDING = ".sql"


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files, and for a folder those in it that end with .sql, by name. Raises SqlError for a folder without any."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.glob(f"*{_ENDING}")) if path.is_dir() else [path]
        if not inside:
            raise SqlError(f"no file of the folder ends with {_ENDING}", where=str(path), fix="name the files")
        found += inside
    return found


def run_files(session: Session, screen: Screen, files: Sequence[Path], *, until_idle: bool) -> None:
    """In order, up to the first statement that fails. Nothing is run where one of them has a syntax error."""
    scripts: dict[Path, Sequence[Statement]] = {}
    for file in files:
        with _told_of(file):
            scripts[file] = parse(file.read_text())
    for file, statements in scripts.items():
        if len(scripts) > 1:
            screen.note(f"{file}:", style="bold")
        with _told_of(file):
            run_statements(session, screen, statements, until_idle=until_idle, echo=True)


def check_files(session: Session, screen: Screen, files: Sequence[Path]) -> bool:
    """Whether each statement could be run, after those before it, as far as the catalog tells. Each that could not is
    told. Sources and topics are not asked.
    """
    from dovetail.services.lsp.dry_bind import dry_bound  # noqa: PLC0415 - it brings the planner
    from dovetail.services.lsp.file_catalog import FileCatalog  # noqa: PLC0415 - as above
    from dovetail.sql.syntax.rules import Rules  # noqa: PLC0415 - as above

    catalog = FileCatalog(session.context.catalog.relations(), to_run=True)
    looked_at = wrong = 0
    for file in files:
        try:
            with _told_of(file):
                statements = parse(file.read_text())
        except DovetailError as error:
            show_error(screen, error)
            wrong += 1
            continue
        for statement in statements:
            catalog.missed = catalog.hidden = False
            looked_at += 1
            try:
                with _told_of(file):
                    change = dry_bound(statement, catalog, Rules.TIMEPLUS)
            except DovetailError as error:
                if not catalog.hidden:
                    show_error(screen, error)
                    wrong += 1
                continue
            if change is not None:
                catalog.apply(change)
    if not wrong:
        screen.note(f"{counted(looked_at, 'statement')} checked, none was run", style="green")
    return not wrong


@contextmanager
def _told_of(file: Path) -> Iterator[None]:
    """What goes wrong names the file."""
    try:
        yield
    except DovetailError as error:
        error.where = ", ".join(filter(None, [str(file), error.where]))
        raise
