"""What a streaming query says, as DuckDB computes its plan before any rule, is what the cases expect."""

from __future__ import annotations

from collections import Counter

from dovetail.sql.engines import Engine
from dovetail.sql.planner import plan_query, recompute
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView, Select
from tests.conformance.case import Case, Delete, Insert, Mode, Pause, Update
from tests.conformance.compare import Values, rows_net, values
from tests.conformance.load import load
from tests.conformance.memory import MemoryHost
from tests.conformance.sql_engine import SqlEngine, with_settings
from tests.paths import CASES

NO_BATCH = ("late-dropped", "exact-watermark")
"""Tags of cases whose rows hang on when records came."""
OPEN = "own-windows-close-with-delay"
"""Its last window is yet to close."""
ENOUGH = 100
"""Cases that are compared."""


def _select(case: Case) -> Select:
    statement = parse_one(with_settings(case.query, case.settings))
    assert isinstance(statement, Select)
    return statement


def _is_checked_by_content(case: Case) -> bool:
    """Whether what the tables hold in the end is all that the answer hangs on."""
    if case.expect.mode is Mode.ERROR or case.may_refuse or case.id == OPEN or set(case.tags) & set(NO_BATCH):
        return False
    if case.lookup_tables or not all(isinstance(step, Insert | Delete | Update | Pause) for step in case.steps):
        return False
    if case.id.startswith("record-") or "SYSTEM_TIME" in case.query:
        # Records have keys and headers, and rows have versions, that no content has.
        return False
    # Another query would have to run for a view.
    return not any(isinstance(parse_one(statement), CreateView) for statement in case.ddl)


def test_the_plans_of_the_cases_as_batches() -> None:
    outcomes = {case.id: _answers_as_expected(case) for case in filter(_is_checked_by_content, load(CASES).cases)}
    assert [name for name, right in outcomes.items() if right is False] == []
    assert len([name for name, right in outcomes.items() if right]) >= ENOUGH


def _answers_as_expected(case: Case) -> bool | None:
    """None where each row is answered once, from what is there when it comes."""
    engine = SqlEngine(MemoryHost())
    try:
        for statement in case.ddl:
            engine.create(statement)
        _fill(engine, case)
        plan = plan_query("q", _select(case), engine.catalog)
        if any(part.engine is Engine.FAUST or part.dataflow.answers_once for part in plan.fragments):
            return None
        columns = [name for name in case.expect.columns if name != "_tp_delta"]
        found = engine._answered(recompute("q", _select(case), engine.catalog))  # noqa: SLF001
        return rows_net(found, columns) == _expected(case, columns)
    finally:
        engine.close()


def _fill(engine: SqlEngine, case: Case) -> None:
    for step in case.steps:
        match step:
            case Insert(table, rows):
                engine.insert(table, rows)
            case Delete(table, rows):
                engine.delete(table, rows)
            case Update(table, pairs):
                engine.update(table, pairs)


def _expected(case: Case, columns: list[str]) -> Counter[Values]:
    """The rows that are there in the end."""
    if case.expect.mode is not Mode.CHANGELOG:
        return rows_net(case.expect.rows, columns)
    net = Counter[Values]()
    for row in case.expect.rows:
        net[values(row, columns)] += int(str(row["_tp_delta"]))
    return Counter({row: count for row, count in net.items() if count})
