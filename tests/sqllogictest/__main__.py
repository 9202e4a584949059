"""``python -m tests.sqllogictest --suite DIR``: the sqllogictest files of a folder, as RisingWave's own tests are."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from dovetail.services.stack import temporary_stack
from dovetail.services.stack.components import COMPONENT_NAMES
from dovetail.sql.syntax.rules import Rules
from tests.sqllogictest.check import FAULTS, Check, Status, once
from tests.sqllogictest.file_run import FileRun, Limits
from tests.sqllogictest.memory import MemorySession
from tests.sqllogictest.report import by_folder, show, summary, write_json
from tests.sqllogictest.services import ServicesSession
from tests.sqllogictest.session import SuiteSession

_SAMPLED = 20
_BATCH = "batch"


class EngineName(StrEnum):
    """The choices of ``--engine``."""

    MEMORY = "memory"
    SERVICES = "services"


class AsView(StrEnum):
    """Which queries are asked a second time, as materialized views; AUTO: those of folders that are called batch."""

    AUTO = "auto"
    NEVER = "never"
    ALWAYS = "always"


def sqllogictest(
    suite: Annotated[Path, typer.Option(help="A folder of .slt files.", exists=True, file_okay=False)],
    files: Annotated[Path | None, typer.Option("--list", help="Names the files, one a line, from the folder.")] = None,
    only: Annotated[str, typer.Option(help="Only files whose path has this in it.")] = "",
    engine: Annotated[EngineName, typer.Option(help="In this process, or Kafka and Spark.")] = EngineName.MEMORY,
    sample: Annotated[int | None, typer.Option(help="So many files, drawn at random; services: 20.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="The seed of the sample.")] = 0,
    dialect: Annotated[Rules, typer.Option(help="Of queries that read no relation.")] = Rules.RISINGWAVE,
    batch: Annotated[int | None, typer.Option(help="Views take in so many records at once (memory).", min=1)] = None,
    as_view: Annotated[AsView, typer.Option(help="Ask queries as materialized views too.")] = AsView.AUTO,
    limit: Annotated[int, typer.Option(help="Seconds that a statement may take.", min=1)] = 60,
    file_limit: Annotated[int, typer.Option(help="Seconds that a file may take.", min=1)] = 900,
    tables: Annotated[bool, typer.Option(help="Print the counts by folder.")] = False,
    shown: Annotated[list[Status] | None, typer.Option("--show", help="Print these checks; may be repeated.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the checks to this file.")] = None,
) -> None:
    """Run sqllogictest files; the exit code is 1 if an answer is wrong, an error is missing, or something has crashed.

    Example: python -m tests.sqllogictest --suite tests/sqllogictest/suite --show refused --show wrong
    """
    console, began, suite = Console(soft_wrap=True), time.monotonic(), suite.resolve()
    chosen = _chosen(suite, files, only)
    if sample is not None or engine is EngineName.SERVICES:
        drawn = random.Random(seed).sample(chosen, min(len(chosen), sample or _SAMPLED))
        chosen = sorted(drawn)
    checks: list[Check] = []
    with _sessions(engine, dialect, batch) as opened, Progress(console=console, transient=True) as progress:
        bar = progress.add_task(f"files ({engine})", total=len(chosen))
        for path in chosen:
            progress.update(bar, description=str(path.relative_to(suite)))
            views = as_view is AsView.ALWAYS or (as_view is AsView.AUTO and _BATCH in path.parts)
            checks += _checks(opened, suite, path, views, Limits(limit, file_limit))
            progress.advance(bar)
    show(checks, shown or (), console)
    if tables:
        console.print(by_folder(checks))
    if json is not None:
        write_json(suite, time.monotonic() - began, checks, json)
    print(summary(len(chosen), time.monotonic() - began, checks))
    raise typer.Exit(any(check.status in FAULTS for check in checks))


def _chosen(suite: Path, listed: Path | None, only: str) -> list[Path]:
    if listed is None:
        found = sorted(suite.rglob("*.slt"))
    else:
        lines = (line.partition("#")[0].strip() for line in listed.read_text().splitlines())
        found = [suite / line for line in lines if line]
    missing = [str(path) for path in found if not path.exists()]
    if missing:
        raise typer.BadParameter(f"{listed} names {', '.join(missing)}: there is no such file")
    chosen = [path for path in found if only in str(path)]
    if not chosen:
        raise typer.BadParameter(f"there is no such file in {suite}")
    return chosen


def _checks(opened: Callable[[], SuiteSession], root: Path, path: Path, as_view: bool, limits: Limits) -> list[Check]:
    session = opened()
    try:
        return once(FileRun(session, root, path, as_view, limits).checks())
    finally:
        session.clear()
        session.close()


@contextmanager
def _sessions(engine: EngineName, rules: Rules, batch: int | None) -> Iterator[Callable[[], SuiteSession]]:
    """What opens an empty session for each file."""
    if engine is EngineName.MEMORY:
        yield lambda: MemorySession(rules, batch)
        return
    with ExitStack() as exits:
        folder = Path(exits.enter_context(TemporaryDirectory(prefix="suite-")))
        stack = exits.enter_context(temporary_stack(folder, COMPONENT_NAMES))
        yield lambda: ServicesSession.of(stack, rules)


if __name__ == "__main__":
    typer.run(sqllogictest)
