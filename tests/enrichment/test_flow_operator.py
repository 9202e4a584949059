"""The flow over a dictionary in memory: what is asked, in which order rows come, what pads them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import InternalError, RecordRejected
from dovetail.changelog.lookup import Key, Lookup, Rows
from dovetail.changelog.schema import ARRIVAL
from dovetail.enrichment.lookup_join.flow_operator import FlowOperator
from dovetail.joins.dataflow.lookup import LookupFlow, LookupStage
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from tests.enrichment.flows import DictLookup, VBelowW, flow, stage

ROWS = {1: ((1, "a", 10), (1, "b", 20)), 2: ((2, "c", 30),)}


def left(*rows: tuple[int | None, str, int | None]) -> pa.Table:
    keys, ids, values = zip(*rows, strict=True) if rows else ((), (), ())
    count = len(rows)
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "id": pa.array(ids, pa.string()),
            "v": pa.array(values, pa.int64()),
            ARRIVAL: pa.array(np.arange(count) + 7),
            DELTA: pa.array(np.ones(count), pa.int64()),
        }
    )


def operator(*stages: LookupStage, lookup: Lookup) -> FlowOperator:
    made = flow(Ingest.APPEND, stages)
    return FlowOperator(made, dict.fromkeys(made.accesses, lookup))


def shown(rows: pa.Table) -> list[tuple[object, ...]]:
    names = [name for name in rows.column_names if name not in ("l.v", "r0.k")]
    return list(zip(*rows.select(names).to_pydict().values(), strict=True))


def test_distinct_keys_are_asked_once_and_null_not_at_all() -> None:
    lookup = DictLookup(ROWS)
    answered = operator(stage(0, ("k",), JoinKind.INNER), lookup=lookup).answer(
        left((2, "x", 0), (None, "y", 0), (1, "z", 0), (2, "u", 0), (9, "w", 0)), 0
    )
    assert (lookup.calls, lookup.key_count) == (1, 3)
    assert shown(answered) == [
        (2, "x", "c", 30, 7, 1),
        (1, "z", "a", 10, 9, 1),
        (1, "z", "b", 20, 9, 1),
        (2, "u", "c", 30, 10, 1),
    ]


def test_left_pads_null_keys_and_misses_in_their_places() -> None:
    answered = operator(stage(0, ("k",), JoinKind.LEFT), lookup=DictLookup(ROWS)).answer(
        left((None, "x", 0), (2, "y", 0), (9, "z", 0)), 0
    )
    assert shown(answered) == [(None, "x", "none", -1, 7, 1), (2, "y", "c", 30, 8, 1), (9, "z", "none", -1, 9, 1)]


def test_a_left_row_whose_matches_all_fail_the_condition_is_padded_once() -> None:
    joined = operator(stage(0, ("k",), JoinKind.LEFT, VBelowW()), lookup=DictLookup(ROWS))
    answered = joined.answer(left((1, "none", 99), (1, "one", 15), (1, "both", 0), (1, "null", None)), 0)
    assert [row[1:4] for row in shown(answered)] == [
        ("none", "none", -1),
        ("one", "b", 20),
        ("both", "a", 10),
        ("both", "b", 20),
        ("null", "none", -1),
    ]


def test_a_second_stage_is_asked_with_the_rows_of_the_first() -> None:
    lookup = DictLookup(ROWS)
    second = stage(1, ("k",), JoinKind.LEFT)
    second = replace(second, join=replace(second.join, keys=("r0.k",)))
    answered = operator(stage(0, ("k",), JoinKind.LEFT), second, lookup=lookup).answer(
        left((2, "x", 0), (9, "y", 0)), 0
    )
    assert answered.column("r1.id").to_pylist() == ["c", "none"]
    assert lookup.calls == 2
    assert lookup.key_count == 3


def test_a_batch_without_rows_asks_nothing_and_has_the_columns() -> None:
    lookup = DictLookup(ROWS)
    for kind in JoinKind.INNER, JoinKind.LEFT:
        answered = operator(stage(0, ("k",), kind, VBelowW()), lookup=lookup).answer(left(), 0)
        assert answered.num_rows == 0
        assert answered.column_names[-4:] == ["r0.id", "r0.v", ARRIVAL, DELTA]
    assert lookup.calls == 0


def test_a_join_may_add_no_column() -> None:
    made = stage(0, ("k",), JoinKind.INNER)
    bare = replace(made, join=replace(made.join, columns=(), schema=pa.schema([]), padding=()))
    answered = operator(bare, lookup=DictLookup(ROWS)).answer(left((1, "x", 0), (9, "y", 0)), 0)
    assert answered.column("l.id").to_pylist() == ["x", "x"]


def test_a_value_of_another_type_rejects_its_record() -> None:
    with pytest.raises(RecordRejected, match="a looked-up value is no int64") as fault:
        operator(stage(0, ("k",), JoinKind.INNER), lookup=DictLookup({1: ((1, "a", "ten"),)})).answer(
            left((1, "x", 0)), 0
        )
    assert "column v" in fault.value.where


@dataclass
class Short:
    """Forgets to answer."""

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        return []


def test_a_lookup_must_answer_every_key_and_every_access_needs_one() -> None:
    made = flow(Ingest.APPEND, [stage(0, ("k",), JoinKind.INNER)])
    with pytest.raises(InternalError, match="1 keys of r0, 0 answers"):
        FlowOperator(made, dict.fromkeys(made.accesses, Short())).answer(left((1, "x", 0)), 0)
    with pytest.raises(InternalError, match="no lookup was given for r0"):
        FlowOperator(made, {})


def test_the_flow_pickles() -> None:
    made: LookupFlow = flow(Ingest.UPSERT, [stage(0, ("k", "id"), JoinKind.LEFT, VBelowW())])
    assert pickle.loads(pickle.dumps(made)) == made
