"""A step of a delta join against its reference: random streams in random batches, with restarts between them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.delta_joins.delta_step import DeltaProbe, DeltaStepSpec, EqualColumns, KeptPart
from dovetail.joins.operators.delta_joins.on_path import PATH, OnPath
from dovetail.joins.operators.multiway import ResidualCondition
from dovetail.joins.reference.delta_step import ReferenceDeltaStep
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.state import blocks
from tests.joins.alone import Alone
from tests.joins.harness import INPUTS, VALUES, decoded, net, poor_hashes, port, records, side
from tests.joins.test_multiway import Below, Measured, batches, of_floats, schema
from tests.tries import tries

PROBES = ((0, 1, False), (1, 0, True), (2, 1, True))
"""The paths of a and b meet each other, that of c meets b as well: what is kept of b serves two of them."""


def step(ports: tuple[Port, ...], null_safe: bool) -> DeltaStepSpec:
    kept = (KeptPart(0, (null_safe,)), KeptPart(1, (null_safe,)), KeptPart(2, (null_safe,)))
    probes = tuple(DeltaProbe(asks, of, after, number) for number, (asks, of, after) in enumerate(PROBES))
    columns = pa.schema([field for one in ports for field in one.schema])
    return DeltaStepSpec(ports, kept, probes, columns, numbered=True)


@settings(max_examples=tries(25))
@given(
    ingests=st.tuples(*[st.sampled_from(INPUTS)] * 3),
    null_safe=st.booleans(),
    poor=st.booleans(),
    data=st.data(),
)
def test_it_is_the_reference(ingests: tuple[Ingest, ...], null_safe: bool, poor: bool, data: st.DataObject) -> None:
    ports = tuple(port(schema(name), ingest) for name, ingest in zip("abc", ingests, strict=True))
    spec = step(ports, null_safe)
    reference = ReferenceDeltaStep([side(one) for one in ingests], (3, 3, 3), PROBES, (null_safe,))
    drawn = [records(one, *VALUES) for one in ingests]
    with poor_hashes(poor):
        alone = Alone(spec)
        for parts, restart in data.draw(batches(*drawn)):
            assert alone.on_batch(*parts) == reference.on_batch(*parts)
            if restart:
                alone.restart()


@settings(max_examples=tries(20))
@given(ingests=st.tuples(*[st.sampled_from(INPUTS)] * 2), null_safe=st.booleans(), data=st.data())
def test_paths_of_two_inputs_are_the_symmetric_join(
    ingests: tuple[Ingest, Ingest], null_safe: bool, data: st.DataObject
) -> None:
    """Also of keys that are NaN, -0.0 or NULL."""
    ports = [port(schema(name, pa.float64()), ingest) for name, ingest in zip("ab", ingests, strict=True)]
    columns = pa.schema([field for one in ports for field in one.schema])
    kept = KeptPart(0, (null_safe,)), KeptPart(1, (null_safe,))
    probes = DeltaProbe(0, 1, after=False), DeltaProbe(1, 0, after=True)
    alone = Alone(DeltaStepSpec(tuple(ports), kept, probes, columns))
    chain = Alone(BidirectionalSpec(JoinKind.INNER, ports[0], ports[1], null_safe=(null_safe,)))
    for parts, restart in data.draw(batches(*map(of_floats, ingests))):
        assert alone.on_batch(*parts) == chain.on_batch(*parts)
        if restart:
            alone.restart()


A, B = (port(schema(name), Ingest.CHANGES) for name in "ab")
BOTH = pa.schema([*A.schema, *B.schema])


def rows(*values: Row) -> list[Record]:
    return [(one, 1) for one in values]


def test_rows_of_a_part_that_is_not_kept_go_through() -> None:
    spec = DeltaStepSpec((A, B), (KeptPart(1),), (DeltaProbe(0, 0, after=True),), BOTH)
    alone = Alone(spec)
    assert alone.on_batch(rows((1, "a", 1)), rows((1, "b", 2))) == Counter({(1, "a", 1, 1, "b", 2): 1})
    assert alone.on_batch([], rows((1, "b", 3))) == Counter()
    assert alone.held() == 2
    assert alone.on_batch([((1, "a", 1), -1)], []) == Counter({(1, "a", 1, 1, "b", 2): -1, (1, "a", 1, 1, "b", 3): -1})


def test_what_is_equal_besides_the_key_is_tested() -> None:
    for null_safe in (False, True):
        equal = (EqualColumns("a.v", "b.v", null_safe),)
        spec = DeltaStepSpec((A, B), (KeptPart(1),), (DeltaProbe(0, 0, after=True, equal=equal),), BOTH)
        found = Alone(spec).on_batch(rows((1, "a", None), (1, "c", 2)), rows((1, "b", None), (1, "d", 2)))
        expected = Counter({(1, "c", 2, 1, "d", 2): 1})
        assert found == (expected + Counter({(1, "a", None, 1, "b", None): 1}) if null_safe else expected)


def test_a_hot_key_is_paired_and_tested_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "PAIRS", 64)
    measured = Measured(Below("a", "b"))
    probe = DeltaProbe(0, 0, after=True, conditions=(ResidualCondition(("a.v", "b.v"), measured),))
    alone = Alone(DeltaStepSpec((A, B), (KeptPart(1),), (probe,), BOTH))
    found = alone.on_batch(rows(*((1, "a", n) for n in range(30))), rows(*((1, "b", n) for n in range(20))))
    assert sum(found.values()) == sum(one < other for one in range(30) for other in range(20))
    assert max(measured.sizes) <= 64
    assert sum(measured.sizes) == 600


def test_what_leaves_is_told_apart_by_path() -> None:
    with_path = pa.schema([*A.schema, pa.field(PATH, pa.int8())])
    made = decoded(with_path, rows((1, "a", 1, 0), (2, "b", None, 1)), 0)
    assert net(OnPath(1, ("a.v", "a.k"))(made)) == Counter({(None, 2): 1})
    assert OnPath(1, ("a.v",)).of(with_path) == pa.schema([A.schema.field("a.v")])
