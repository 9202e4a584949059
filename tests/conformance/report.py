"""Outcomes as text for people and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.conformance.runner import Outcome


def show_failure(outcome: Outcome, console: Console) -> None:
    """One line: the case and the difference."""
    text = f"[red]FAILED[/red] {escape(outcome.id)} [dim]({escape(outcome.feature)})[/dim] "
    console.print(text + escape("; ".join(outcome.faults)), soft_wrap=True, highlight=False)


def show_refusals(outcomes: Sequence[Outcome], expected: Mapping[str, str], console: Console) -> None:
    """The errors that were asked for, each beside what it had to be about."""
    for outcome in outcomes:
        if outcome.passed and outcome.refusal:
            console.print(f"[green]refused[/green] {escape(outcome.id)}", highlight=False)
            console.print(f"  expected: {escape(expected.get(outcome.id, ''))}", soft_wrap=True, highlight=False)
            console.print(f"  error:    {escape(outcome.refusal)}", soft_wrap=True, highlight=False)


def show_features(outcomes: Sequence[Outcome], console: Console) -> None:
    table = Table("feature", "passed", "failed", "seconds", title="Conformance by feature")
    for column in table.columns[1:]:
        column.justify = "right"
    for feature in sorted({outcome.feature for outcome in outcomes}):
        of_feature = [outcome for outcome in outcomes if outcome.feature == feature]
        passed = sum(outcome.passed for outcome in of_feature)
        failed = len(of_feature) - passed
        seconds = sum(outcome.seconds for outcome in of_feature)
        table.add_row(escape(feature), str(passed), f"[red]{failed}[/red]" if failed else "0", f"{seconds:.1f}")
    console.print(table)


def summary(outcomes: Sequence[Outcome]) -> str:
    passed = sum(outcome.passed for outcome in outcomes)
    return f"{passed} passed, {len(outcomes) - passed} failed"


def write_json(outcomes: Sequence[Outcome], engine: str, file: Path) -> None:
    content = {
        "engine": engine,
        "passed": sum(outcome.passed for outcome in outcomes),
        "failed": sum(not outcome.passed for outcome in outcomes),
        "cases": [{**asdict(outcome), "passed": outcome.passed} for outcome in outcomes],
    }
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
