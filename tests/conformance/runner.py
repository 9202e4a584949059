"""A case driven through an engine, and judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dovetail.changelog.errors import Domain, DovetailError
from dovetail.sql.query_settings import Value
from tests.conformance.case import (
    Case,
    Delete,
    Insert,
    Mode,
    Pause,
    Restart,
    Run,
    Source,
    Start,
    Step,
    Update,
)
from tests.conformance.compare import Emitted, differences, table_differences
from tests.conformance.engine import Change, Engine, NotRunnable

NOT_YET = "this release"
"""An error that speaks of it says that a query is not run yet, and not what is wrong with it."""


@dataclass(frozen=True)
class Outcome:
    """``faults``: a line per difference, none if the case passed. ``refusal``: the error that was asked for."""

    id: str
    feature: str
    faults: tuple[str, ...]
    refusal: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.faults


@dataclass
class _Run:
    """A case on its way through an engine."""

    case: Case
    engine: Engine
    emitted: list[list[Change]] = field(default_factory=lambda: [[]])
    planned: bool = False
    """The query was planned, so what fails now fails while it runs."""

    def go(self) -> None:
        if not self.case.starts_by_step:
            self.start()
        for step in self.case.steps:
            self.emitted.append([])
            self.take(step)
            self.drain()

    def start(self) -> None:
        self.engine.start(self.case.query, self.settings())
        self.planned = True
        self.drain()

    def settings(self) -> dict[str, Value]:
        """Those of the case; an append output is asked for by the sink option."""
        implied: dict[str, Value] = {"output": "append"} if self.case.expect.mode is Mode.ROWS else {}
        return {**self.case.settings, **implied}

    def drain(self) -> None:
        if self.planned:
            self.emitted[-1] += self.engine.drain()

    def take(self, step: Step) -> None:
        match step:
            case Insert(table, rows):
                self.engine.insert(table, rows)
            case Delete(table, rows):
                self.engine.delete(table, rows)
            case Update(table, pairs):
                self.engine.update(table, pairs)
            case Source(table, rows, deleted):
                self.engine.source(table, rows, deleted)
            case Run(sql):
                self.engine.run(sql)
            case Pause(kind):
                self.engine.wait(kind)
            case Start():
                self.start()
            case Restart():
                self.engine.restart()


def run_case(case: Case, engine_for: Callable[[Case], Engine]) -> Outcome:
    """Run ``case`` through an engine of its own. Whatever an engine raises fails the case, never the run."""
    begun = time.monotonic()
    try:
        faults, refusal = _judged(case, engine_for)
    except DovetailError as error:
        faults, refusal = [one_line(error)], ""
    except Exception as crash:  # noqa: BLE001 - a crash of the engine is the result of the case
        faults, refusal = [f"crash: {type(crash).__name__}: {one_line(crash)}"], ""
    return Outcome(case.id, case.feature, tuple(faults), refusal, time.monotonic() - begun)


def _judged(case: Case, engine_for: Callable[[Case], Engine]) -> tuple[list[str], str]:
    engine = engine_for(case)
    try:
        for statement in case.ddl:
            engine.create(statement)
        run = _Run(case, engine)
        try:
            run.go()
        except DovetailError as error:
            return _refused(case, error, run.planned)
        if case.expect.mode is Mode.ERROR:
            return [f"no error, expected: {case.expect.about}"], ""
        return list(_output_faults(case, run.emitted, engine)), ""
    finally:
        engine.close()


def _refused(case: Case, error: DovetailError, planned: bool) -> tuple[list[str], str]:
    """An error is what the case asks for, if it is the user's and comes when it may come."""
    text = one_line(error)
    if isinstance(error, NotRunnable):
        return [text], ""
    if error.domain is not Domain.USER:
        return [f"crash: {text}"], ""
    if case.may_refuse and not planned and NOT_YET not in text:
        return [], text
    if case.expect.mode is not Mode.ERROR:
        return [text], ""
    if planned and not case.steps:
        return [f"refused only after it was planned: {text}"], ""
    if NOT_YET in text:
        return [f"refused for another reason than {case.expect.about!r}: {text}"], ""
    return [], text


def _output_faults(case: Case, emitted: Emitted, engine: Engine) -> Iterator[str]:
    yield from differences(case, emitted)
    for number, then in enumerate(case.then, 1):
        for line in table_differences(engine.snapshot(then.query), then.rows, then.columns):
            yield f"then {number}: {line}"


def one_line(error: Exception) -> str:
    """The kind of the error and its text, its lines joined."""
    kind = f"{type(error).__name__}: " if isinstance(error, DovetailError) else ""
    return kind + " | ".join(line.strip() for line in str(error).splitlines() if line.strip())
