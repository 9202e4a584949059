"""A budget of rows for each key: a join of budgeted inputs is the join of the records that were not refused."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.dataflow.specification import RejectsRows
from dovetail.joins.inputs.row_budget import BUDGETED, REASON
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.multiway import MultiwaySpec
from dovetail.joins.reference.bidirectional import ReferenceJoin, ReferenceMultiwayJoin
from dovetail.joins.reference.row_budget import ReferenceBudget
from dovetail.joins.reference.rows import Record, Row, difference
from tests.joins.alone import Alone
from tests.joins.harness import LEFT, RIGHT, VALUES, LeftBelowRight, agree, left_below_right, port, records, side, steps
from tests.joins.hosted import Hosted
from tests.tries import tries

BUDGETS = st.integers(1, 3)


def budget(ingest: Ingest, most: int, null_safe: bool) -> ReferenceBudget:
    return ReferenceBudget(ingest, most, (0,), (0, 1), null_safe)


def budgeted(schema: pa.Schema, ingest: Ingest, most: int) -> Port:
    return replace(port(schema, ingest), max_rows_per_key=most)


def refused_by(alone: Alone) -> Sequence[pa.Table | None]:
    assert isinstance(alone.operator, RejectsRows)
    return alone.operator.refused()


@dataclass
class BudgetedReference:
    """A reference join of what budgets let through; ``refused`` by side."""

    join: ReferenceJoin
    budgets: tuple[ReferenceBudget, ReferenceBudget]
    refused: tuple[list[Record], list[Record]] = field(default_factory=lambda: ([], []))

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        counting = []
        for one, given_records, refused in zip(self.budgets, (left, right), self.refused, strict=True):
            count, left_out = one.judged(given_records)
            counting.append(count)
            refused.extend(left_out)
        return self.join.on_batch(*counting)


def refused_records(hosted: Hosted, edge: int, schema: pa.Schema) -> Counter[Record]:
    found: Counter[Record] = Counter()
    for one in hosted.query.refused:
        if one.edge == edge:
            columns = [one.rows.column(name).to_pylist() for name in (*schema.names, DELTA)]
            found.update((tuple(row), delta) for *row, delta in zip(*columns, strict=True))
    return found


@settings(max_examples=tries(75))
@given(
    kind=st.sampled_from(BidirectionalSpec.kinds),
    kinds=st.tuples(st.sampled_from(BUDGETED), st.sampled_from(BUDGETED)),
    most=BUDGETS,
    null_safe=st.booleans(),
    residual=st.booleans(),
    data=st.data(),
)
def test_it_is_the_join_of_the_records_that_were_not_refused(
    kind: JoinKind,
    kinds: tuple[Ingest, Ingest],
    most: int,
    null_safe: bool,
    residual: bool,
    data: st.DataObject,
) -> None:
    left, right = kinds
    left_port, right_port = budgeted(LEFT, left, most), budgeted(RIGHT, right, most)
    condition = LeftBelowRight() if residual else None
    hosted = Hosted(BidirectionalSpec(kind, left_port, right_port, (null_safe,), condition))
    join = ReferenceJoin(kind, side(left), side(right), (3, 3), (null_safe,))
    if residual:
        join.condition = left_below_right
    reference = BudgetedReference(join, (budget(left, most, null_safe), budget(right, most, null_safe)))
    drawn = data.draw(steps(records(left, *VALUES), records(right, *VALUES)))
    agree(hosted, reference, [(to_left, to_right, False) for to_left, to_right, _ in drawn])
    for edge, (schema, refused) in enumerate(zip((LEFT, RIGHT), reference.refused, strict=True)):
        assert refused_records(hosted, edge, schema) == Counter(refused)


@settings(max_examples=tries(40))
@given(
    ingest=st.sampled_from(BUDGETED),
    most=BUDGETS,
    cuts=st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1),
    data=st.data(),
)
def test_what_is_refused_does_not_depend_on_where_batches_are_cut(
    ingest: Ingest, most: int, cuts: list[tuple[int, bool]], data: st.DataObject
) -> None:
    """Nor on restarts."""
    given_records = list(itertools.chain(*data.draw(st.lists(records(ingest, *VALUES), max_size=6))))
    spec = BidirectionalSpec(JoinKind.LEFT, budgeted(LEFT, ingest, most), port(RIGHT, Ingest.APPEND))
    expected, whole = budget(ingest, most, False).judged(given_records)
    alone, total, refused = Alone(spec), Counter[Row](), list[pa.Table]()
    rest = given_records
    for size, restart in itertools.cycle(cuts):
        if not rest:
            break
        total.update(alone.on_batch(rest[:size], []))
        rest = rest[size:]
        refused += [one for one in refused_by(alone) if one is not None]
        if restart:
            alone.restart()
    held = side(ingest)
    held.take(expected)
    assert difference(total, Counter()) == Counter(
        {(*row, None, None, None): count for row, count in held.content.items()}
    )
    columns = [
        list(itertools.chain(*(one.column(name).to_pylist() for one in refused))) for name in (*LEFT.names, DELTA)
    ]
    assert [(tuple(row), delta) for *row, delta in zip(*columns, strict=True)] == whole


@settings(max_examples=tries(20))
@given(kinds=st.lists(st.sampled_from(BUDGETED), min_size=3, max_size=3), most=BUDGETS, data=st.data())
def test_an_n_way_join_has_a_budget_for_each_input(kinds: list[Ingest], most: int, data: st.DataObject) -> None:
    schemas = [
        pa.schema([(f"{name}.k", pa.int64()), (f"{name}.id", pa.string()), (f"{name}.v", pa.int64())]) for name in "abc"
    ]
    ports = [budgeted(schema, one, most) for schema, one in zip(schemas, kinds, strict=True)]
    alone = Alone(MultiwaySpec(tuple(ports), (2,)))
    reference = ReferenceMultiwayJoin([side(one) for one in kinds], (3, 3, 3), (2,))
    budgets = [budget(one, most, False) for one in kinds]
    for parts in data.draw(st.lists(st.tuples(*(records(one, *VALUES) for one in kinds)), max_size=6)):
        judged = [one.judged(part) for one, part in zip(budgets, parts, strict=True)]
        assert alone.on_batch(*parts) == reference.on_batch(*(count for count, _ in judged))
        refused = [0 if one is None else one.num_rows for one in refused_by(alone)]
        assert refused == [len(left_out) for _, left_out in judged]


def test_the_reason_says_what_is_full_and_what_takes_back_what_was_refused() -> None:
    left = budgeted(LEFT, Ingest.CHANGELOG, 1)
    alone = Alone(BidirectionalSpec(JoinKind.INNER, left, port(RIGHT, Ingest.APPEND)))
    first, second = (7, "a", 1), (7, "b", 2)
    assert alone.on_batch([(first, 1), (second, 1), (second, -1), ((8, "a", 1), 1)], []) == Counter()
    refused, _ = refused_by(alone)
    assert refused is not None
    assert refused.column(REASON).to_pylist() == [
        "max_fan_out = 1: as many rows of the key (k) = (7) stand on this side of the join",
        "max_fan_out = 1: takes back a row of the key (k) = (7) that was refused",
    ]
    assert refused_by(alone) == (None, None)
    assert alone.held("0.left.refused") == 0
    assert alone.operator.dangling == 0
    assert alone.on_batch([(first, -1), (second, 1)], [((7, "x", 1), 1)]) == Counter({(*second, 7, "x", 1): 1})


@pytest.mark.parametrize("ingest", [Ingest.CHANGES, Ingest.CHANGELOG_KV])
def test_rows_that_are_no_records_of_their_own_have_no_budget(ingest: Ingest) -> None:
    left = budgeted(LEFT, ingest, 1)
    with pytest.raises(InternalError, match="have no budget"):
        Alone(BidirectionalSpec(JoinKind.INNER, left, port(RIGHT, Ingest.APPEND)))
