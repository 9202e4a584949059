"""Work of one thread ends when another says so."""

from __future__ import annotations

from threading import Event, Thread

import pyarrow as pa
import pytest

from dovetail.changelog.errors import Interrupted
from dovetail.changelog.work.interruption import Interruption, ended_by, expect_wanted
from dovetail.sql.expressions.evaluate import run

ENDLESS = "SELECT count(*) FROM t AS a, t AS b, t AS c, t AS d, t AS e, t AS f, t AS g"


def test_work_of_no_statement_is_always_wanted() -> None:
    expect_wanted()
    with ended_by(pytest.fail):
        expect_wanted()


def test_work_ends_where_it_asks() -> None:
    interruption = Interruption()
    with interruption.of_this_thread():
        expect_wanted()
        interruption.ask()
        with pytest.raises(Interrupted):
            expect_wanted()
        with pytest.raises(Interrupted), ended_by(pytest.fail):
            pytest.fail("nothing begins any more")
    expect_wanted()


def test_a_call_is_ended_by_its_own_means_while_it_runs() -> None:
    interruption, ended = Interruption(), []
    with interruption.of_this_thread():
        with ended_by(lambda: ended.append("first")):
            interruption.ask()
        interruption.ask()
    assert ended == ["first"]


def test_duckdb_ends_and_computes_on_afterwards() -> None:
    interruption, began = Interruption(), Event()
    outcomes: list[object] = []
    table = {"t": pa.table({"x": range(1000)})}

    def work() -> None:
        with interruption.of_this_thread():
            began.set()
            try:
                run(ENDLESS, table)
            except Interrupted as fault:
                outcomes.append(fault)
        outcomes.append(run("SELECT count(*) AS n FROM t", table).to_pylist())

    thread = Thread(target=work)
    thread.start()
    began.wait()
    while len(outcomes) < 1:
        interruption.ask()
        thread.join(0.05)
    thread.join()
    assert isinstance(outcomes[0], Interrupted)
    assert outcomes[1:] == [[{"n": 1000}]]
