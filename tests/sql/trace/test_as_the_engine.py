"""A trace makes the rows that the operators make, of joins that a batch does not compute as they are computed here."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping

import pytest

from tests.conformance.case import Case
from tests.conformance.load import load
from tests.conformance.memory import MemoryHost
from tests.conformance.runner import _Run
from tests.conformance.sql_engine import SqlEngine, with_settings
from tests.paths import CASES
from tests.sql.trace.traced_world import Question
from tests.sql.world import World

QUERIED_COLUMNS = {
    "rw-asof-ge-tie-and-fallback": "lsym",
    "rw-asof-left-gt-churn": "lsym",
    "fl-temporal-event-left": "did",
    "s003-semi-join-exists": "id",
    "own-mark-under-or": "id",
    "s003-interval-join": "user_id",
    "anti-left-mutable": "n",
}
"""Case → the column that is asked."""
RowValues = tuple[tuple[str, object], ...]


@pytest.mark.parametrize("name", QUERIED_COLUMNS)
def test_every_value_gives_the_rows_of_the_engine(name: str) -> None:
    case, column = next(case for case in load(CASES).cases if case.id == name), QUERIED_COLUMNS[name]
    question, emitted = played(case)
    values = {dict(row)[column] for row in emitted} - {None}
    assert values
    for value in values:
        text = f"'{value}'" if isinstance(value, str) else str(value)
        found = question.answered(f'"{column}" = {text}')
        made = Counter(row_values(row) for row in found.rows.to_pylist())
        assert made == Counter({row: count for row, count in emitted.items() if dict(row)[column] == value})
        assert found.behind.num_rows


def played(case: Case) -> tuple[Question, Counter[RowValues]]:
    """The query of a case over what its steps have written, and what the operators made of that."""
    engine = SqlEngine(MemoryHost())
    for statement in case.ddl:
        engine.create(statement)
    run = _Run(case, engine)
    run.go()
    net: Counter[RowValues] = Counter()
    for step in run.emitted:
        for change in step:
            net[row_values(change.row)] += change.delta
    question = Question.of(World(engine), with_settings(case.query, run.settings()))
    return question, Counter({row: count for row, count in net.items() if count})


def row_values(row: Mapping[str, object]) -> RowValues:
    """The row without its times, which a case writes as texts."""
    return tuple((name, value) for name, value in row.items() if not is_time(value))


def is_time(value: object) -> bool:
    return isinstance(value, dt.datetime) or (isinstance(value, str) and value[:2] == "20" and ":" in value)
