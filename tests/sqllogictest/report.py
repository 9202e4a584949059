"""The outcome of a suite: counts, a table by folder, the checks of some statuses, and a JSON file."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from rich.console import Console
from rich.table import Table

from tests.sqllogictest.check import Check, Status


def summary(files: int, seconds: float, checks: Sequence[Check]) -> str:
    counts = Counter(check.status for check in checks)
    each = ", ".join(f"{counts[status]} {status.value}" for status in Status)
    return f"{files} files, {len(checks)} checks: {each}; {seconds:.0f} s"


def by_folder(checks: Sequence[Check]) -> Table:
    counts: dict[str, Counter[Status]] = defaultdict(Counter)
    for check in checks:
        place = PurePosixPath(check.entry).parent
        counts[f"{place}{' as views' if check.mode else ''}"][check.status] += 1
    table = Table("folder", *Status)
    for folder, of_folder in sorted(counts.items()):
        table.add_row(folder, *(f"{of_folder[status] or ''}" for status in Status))
    return table


def show(checks: Sequence[Check], statuses: Collection[Status], console: Console) -> None:
    for check in checks:
        if check.status not in statuses:
            continue
        record = check.record
        head = f"{check.status.upper()} {record.file}:{record.line}{' as a view' if check.mode else ''}  {check.detail}"
        console.print(head, record.sql, sep="\n", markup=False, highlight=False)
        for sign, rows in (("want", check.want), ("got ", check.got)):
            console.print(*(f"  {sign} {row}" for row in rows), sep="\n", markup=False, highlight=False)


def write_json(suite: Path, seconds: float, checks: Sequence[Check], file: Path) -> None:
    outcome = {"suite": str(suite), "seconds": seconds, "checks": [check.as_json() for check in checks]}
    file.write_text(json.dumps(outcome, indent=1) + "\n")
