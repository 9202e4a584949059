"""The judgement: what came out of an engine against what a case expects, as lines of difference.

Rows are multisets compared by column name. Numbers compare by value (1 = 1.0 = true), floats with a relative tolerance
of 1e-9, NULL with NULL only, text exactly; a fraction of a second without its trailing zeros.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, zip_longest

from tests.conformance.case import Case, Mode, Pause, Row, Wait
from tests.conformance.engine import Change

TOLERANCE = 1e-9
FRACTION = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.(\d*?)0*")
SHOWN = 6
"""Rows shown of a long difference; the rest is counted."""

Values = tuple[object, ...]
Emitted = Sequence[Sequence[Change]]
"""The changes of each step; those at index 0 came before step 1."""


def differences(case: Case, emitted: Emitted) -> Iterator[str]:
    """A line for each way in which the output is not the expected one; none if the case passes."""
    columns = case.expect.columns
    changes = [change for step in emitted for change in step]
    foreign = next((row for row in (change.row for change in changes) if set(row) != set(columns)), None)
    if foreign is not None:
        yield f"columns {sorted(foreign)} instead of {sorted(columns)}"
        return
    if case.expect.mode is Mode.CHANGELOG:
        yield from _steps(case, emitted)
        yield from order_faults(changes, columns, case.expect.key)
    elif case.expect.mode is Mode.TABLE:
        yield from order_faults(changes, columns, None)
        yield from _unequal(_net(changes, columns), rows_net(case.expect.rows, columns))
    else:
        yield from _retractions(changes)
        yield from _unequal(_net(changes, columns), rows_net(case.expect.rows, columns))
    for check in case.checks:
        so_far = [change for step in emitted[: check.after_step + 1] for change in step]
        for line in _unequal(_net(so_far, columns), rows_net(check.rows, columns)):
            yield f"after step {check.after_step}: {line}"


def table_differences(actual: Iterable[Row], expected: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
    """The answer of a bounded query against the expected rows."""
    answer = list(actual)
    foreign = next((row for row in answer if set(row) != set(columns)), None)
    if foreign is not None:
        yield f"columns {sorted(foreign)} instead of {sorted(columns)}"
    else:
        yield from _unequal(rows_net(answer, columns), rows_net(expected, columns))


def order_faults(changes: Iterable[Change], columns: Sequence[str], key: Sequence[str] | None) -> Iterator[str]:
    """In the order of emission: rows whose sum falls below zero, and rows that share ``key`` while both are there."""
    sums, held = Counter[Values](), Counter[Values]()
    for change in changes:
        row = values(change.row, columns)
        sums[row] += change.delta
        if sums[row] < 0:
            yield f"retracted while it is not there: {_shown(row)}"
        if key is not None:
            held[values(change.row, key)] += change.delta
            if change.delta > 0 and held[values(change.row, key)] > 1:
                yield f"inserted while its key {_shown(values(change.row, key))} is taken: {_shown(row)}"


def _steps(case: Case, emitted: Emitted) -> Iterator[str]:
    columns = case.expect.columns
    expected: list[Counter[Values]] = [Counter() for _ in range(len(case.steps) + 1)]
    for row in case.expect.rows:
        expected[int(str(row["_step"]))][values(row, columns)] += int(str(row["_tp_delta"]))
    actual = [_net(step, columns) for step in _by_emission(case, emitted)]
    for number, (mine, theirs) in enumerate(zip_longest(actual, expected, fillvalue=Counter[Values]())):
        for line in _unequal(mine, theirs):
            yield f"step {number}: {line}"


def _by_emission(case: Case, emitted: Emitted) -> list[list[Change]]:
    """The changes of each step; with ``wait: emit`` steps, all since the last such step under the next one."""
    emits = [number for number, step in enumerate(case.steps, 1) if step == Pause(Wait.EMIT)]
    steps: list[list[Change]] = [[] for _ in range(max(len(emitted), len(case.steps) + 1))]
    for number, changes in enumerate(emitted):
        steps[next((emit for emit in emits if emit >= number), number)] += changes
    return steps


def _retractions(changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        if change.delta < 0:
            yield f"a retraction in an append output: {_shown(tuple(change.row.values()))}"


def rows_net(rows: Iterable[Row], columns: Sequence[str]) -> Counter[Values]:
    return Counter(values(row, columns) for row in rows)


def _net(changes: Iterable[Change], columns: Sequence[str]) -> Counter[Values]:
    """The sum of the counts of each row, without the rows whose sum is zero."""
    sums = Counter[Values]()
    for change in changes:
        sums[values(change.row, columns)] += change.delta
    return Counter({row: count for row, count in sums.items() if count != 0})


def _unequal(actual: Counter[Values], expected: Counter[Values]) -> Iterator[str]:
    excess = {row: actual[row] - expected[row] for row in [*expected, *(row for row in actual if row not in expected)]}
    wrong = _without_near_pairs({row: count for row, count in excess.items() if count})
    for row in wrong[:SHOWN]:
        yield f"{actual[row]:+d} instead of {expected[row]:+d} of {_shown(row)}"
    if len(wrong) > SHOWN:
        yield f"and {len(wrong) - SHOWN} rows more"


def _without_near_pairs(excess: dict[Values, int]) -> list[Values]:
    """The rows left when those that differ in the last digits of their floats alone have made up for each other."""
    for row, other in combinations(list(excess), 2):
        if excess[row] * excess[other] < 0 and _near(row, other):
            paired = min(abs(excess[row]), abs(excess[other]))
            excess[row] -= int(math.copysign(paired, excess[row]))
            excess[other] -= int(math.copysign(paired, excess[other]))
    return [row for row, count in excess.items() if count]


def _near(row: Values, other: Values) -> bool:
    return all(_close(one, two) for one, two in zip(row, other, strict=True))


def _close(one: object, two: object) -> bool:
    if isinstance(one, int | float) and isinstance(two, int | float):
        return math.isclose(one, two, rel_tol=TOLERANCE)
    return one == two


def values(row: Row, columns: Sequence[str]) -> Values:
    return tuple(normal(row[name]) for name in columns)


def normal(value: object) -> object:
    """The value in the form in which equal values are equal objects with equal hashes."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, str) and (match := FRACTION.fullmatch(value)):
        return f"{match[1]}.{match[2]}" if match[2] else match[1]
    if isinstance(value, list):
        return tuple(normal(item) for item in value)
    return value


def _shown(row: Values) -> str:
    return "(" + ", ".join("NULL" if value is None else repr(value) for value in row) + ")"
