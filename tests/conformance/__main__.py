"""``python -m tests.conformance --cases DIR``: run a folder of cases through an engine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from tests.conformance.case import CaseFault, Suite
from tests.conformance.engines import running
from tests.conformance.load import load
from tests.conformance.report import show_failure, show_features, show_refusals, summary, write_json
from tests.conformance.runner import Outcome
from tests.conformance.selection import Selection
from tests.paths import CASES


class EngineName(StrEnum):
    """The choices of ``--engine``."""

    MEMORY = "memory"
    SERVICES = "services"


def conformance(
    cases: Annotated[Path, typer.Option(help="A folder of cases, or one file of them.", exists=True)] = CASES,
    engine: Annotated[EngineName, typer.Option(help="In this process, or Kafka and Spark.")] = EngineName.MEMORY,
    feature: Annotated[list[str] | None, typer.Option(help="Cases of this feature only; may be repeated.")] = None,
    tier: Annotated[int | None, typer.Option(help="Cases of this tier only.", min=1, max=2)] = None,
    sample: Annotated[int | None, typer.Option(help="So many cases, drawn at random.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="The seed of the sample.")] = 0,
    case: Annotated[list[str] | None, typer.Option(help="The case of this id only; may be repeated.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the outcomes to this file.")] = None,
) -> None:
    """Run conformance cases (tests/cases/README.md); the exit code is 1 if any fails.

    Example: python -m tests.conformance --cases tests/cases --feature bidirectional-inner
    """
    console = Console()
    suite = _loaded(cases)
    chosen = Suite(Selection(feature or (), case or (), tier, sample, seed).of(suite.cases), suite.misfits)
    if not chosen.cases and not chosen.misfits:
        raise typer.BadParameter("no case has these features, ids and tier")
    outcomes = _run(chosen, engine, console)
    show_refusals(outcomes, {each.id: each.expect.about for each in chosen.cases}, console)
    show_features(outcomes, console)
    if json is not None:
        write_json(outcomes, engine, json)
    print(summary(outcomes))
    raise typer.Exit(0 if all(outcome.passed for outcome in outcomes) else 1)


def _loaded(folder: Path) -> Suite:
    try:
        return load(folder)
    except CaseFault as fault:
        raise typer.BadParameter(str(fault)) from fault


def _run(suite: Suite, engine: EngineName, console: Console) -> list[Outcome]:
    """All outcomes in the order of the cases; failures are shown as they come."""
    outcomes = [Outcome(misfit.id, misfit.feature, (misfit.fault,)) for misfit in suite.misfits]
    for outcome in outcomes:
        show_failure(outcome, console)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(f"cases ({engine})", total=len(suite.cases))
        for outcome in running(engine, suite.cases):
            if not outcome.passed:
                show_failure(outcome, progress.console)
            outcomes.append(outcome)
            progress.advance(bar)
    return outcomes


if __name__ == "__main__":
    typer.run(conformance)
