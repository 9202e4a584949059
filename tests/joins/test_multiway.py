"""The n-way join against its reference, and against the chain of symmetric joins that it stands for: random streams in
random batches, with restarts between them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.errors import CountOverflow, InternalError
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Pad, Port
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.multiway import MultiwaySpec, ResidualCondition
from dovetail.joins.reference.bidirectional import ReferenceMultiwayJoin
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.state import blocks
from tests.joins.alone import Alone
from tests.joins.harness import INPUTS, KEYED, VALUES, poor_hashes, port, records, side
from tests.nasty import FLOATS, NOT_A_NUMBER
from tests.tries import tries

Batch = tuple[list[list[Record]], bool]
"""The records of each input, and whether a restart follows them."""
NAMES = "abcd"


def schema(name: str, key: pa.DataType | None = None) -> pa.Schema:
    return pa.schema([(f"{name}.k", key or pa.int64()), (f"{name}.id", pa.string()), (f"{name}.v", pa.int64())])


@dataclass(frozen=True)
class Below:
    """``<first>.v < <second>.v``; picklable."""

    first: str
    second: str

    @property
    def columns(self) -> tuple[str, str]:
        return f"{self.first}.v", f"{self.second}.v"

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        assert rows.column_names == list(self.columns)
        pairs = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        return np.array([a is not None and b is not None and a < b for a, b in pairs], dtype=np.bool_)

    def of_rows(self, rows: Sequence[Row]) -> bool:
        first, second = (rows[NAMES.index(name)][2] for name in (self.first, self.second))
        return isinstance(first, int) and isinstance(second, int) and first < second


def batches(*inputs: st.SearchStrategy[list[Record]]) -> st.SearchStrategy[list[Batch]]:
    return st.lists(st.tuples(st.tuples(*inputs).map(list), st.booleans()), max_size=7)


@settings(max_examples=tries(30))
@given(
    ingests=st.lists(st.sampled_from(INPUTS), min_size=3, max_size=4),
    optional=st.sets(st.integers(1, 3)),
    null_safe=st.booleans(),
    tested=st.lists(st.sampled_from([Below("a", "b"), Below("b", "c"), Below("c", "a")]), unique=True, max_size=2),
    poor=st.booleans(),
    data=st.data(),
)
def test_it_is_the_reference(
    ingests: list[Ingest],
    optional: set[int],
    null_safe: bool,
    tested: list[Below],
    poor: bool,
    data: st.DataObject,
) -> None:
    count = len(ingests)
    places = tuple(sorted(place for place in optional if place < count))
    spec = MultiwaySpec(
        tuple(port(schema(name), ingest) for name, ingest in zip(NAMES, ingests, strict=False)),
        places,
        (null_safe,),
        tuple(ResidualCondition(one.columns, one) for one in tested),
    )
    reference = ReferenceMultiwayJoin(
        [side(ingest) for ingest in ingests],
        (3,) * count,
        places,
        (null_safe,),
        lambda rows: all(one.of_rows(rows) for one in tested),
    )
    content: Counter[Row] = Counter()
    with poor_hashes(poor):
        alone = Alone(spec)
        for parts, restart in data.draw(batches(*(records(ingest, *VALUES) for ingest in ingests))):
            changes = alone.on_batch(*parts)
            assert changes == reference.on_batch(*parts)
            content.update(changes)
            assert min(content.values(), default=0) >= 0
            if restart:
                alone.restart()


@dataclass
class Measured:
    """``Below`` that notes of how many combinations it was asked at once."""

    below: Below
    sizes: list[int] = field(default_factory=list)

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        self.sizes.append(rows.num_rows)
        return self.below(rows)


@pytest.mark.parametrize("optional", [(), (2,)])
def test_a_key_that_is_hot_in_all_inputs_is_combined_in_blocks(
    optional: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 x 30 x 25 rows of one key are 15,000 combinations: made and tested 64 at a time, whoever comes last."""
    monkeypatch.setattr(blocks, "PAIRS", 64)
    measured = [Measured(Below("a", "b")), Measured(Below("b", "c"))]
    ports = tuple(port(schema(name), Ingest.CHANGELOG) for name in "abc")
    conditions = tuple(ResidualCondition(one.below.columns, one) for one in measured)
    alone = Alone(MultiwaySpec(ports, optional, (), conditions))
    reference = ReferenceMultiwayJoin(
        [side(Ingest.CHANGELOG) for _ in "abc"],
        (3, 3, 3),
        optional,
        (),
        lambda rows: all(one.below.of_rows(rows) for one in measured),
    )
    a, b, c = (
        [((1, f"{name}{n}", n % 9), 1) for n in range(count)] for name, count in (("a", 20), ("b", 30), ("c", 25))
    )
    for parts in ([a, [], c[:20]], [[], b, c[20:]], [[(a[0][0], -1)], [], [(c[0][0], -1)]]):
        changes = alone.on_batch(*parts)
        assert changes == reference.on_batch(*parts)
    assert [max(one.sizes) <= 64 for one in measured] == [True, True]
    assert sum(measured[0].sizes) >= 20 * 30


def stored(value: object) -> object:
    """A value of ``canonical`` as a column takes it."""
    return math.nan if value is NOT_A_NUMBER else value


@dataclass
class Chain:
    """Symmetric joins in a row, each over what the one before has changed, and the next input."""

    kinds: Sequence[JoinKind]
    ports: Sequence[Port]
    null_safe: tuple[bool, ...] = ()
    joins: list[Alone] = field(init=False)

    def __post_init__(self) -> None:
        self.joins, left = [], self.ports[0]
        for kind, right in zip(self.kinds, self.ports[1:], strict=True):
            self.joins.append(Alone(BidirectionalSpec(kind, left, right, self.null_safe)))
            both = pa.schema([column.with_nullable(True) for column in [*left.schema, *right.schema]])
            left = Port(both, left.keys, Ingest.CHANGES)

    def on_batch(self, *parts: list[Record]) -> Counter[Row]:
        first, *others = parts
        changes: Counter[Row] = Counter()
        for join, right in zip(self.joins, others, strict=True):
            changes = join.on_batch(first, right)
            first = sorted(((tuple(map(stored, row)), delta) for row, delta in changes.items()), key=lambda one: one[1])
        return changes

    def held(self) -> int:
        return sum(join.held() for join in self.joins)

    def restart(self) -> None:
        for join in self.joins:
            join.restart()


@settings(max_examples=tries(15))
@given(
    ingests=st.lists(st.sampled_from(INPUTS), min_size=3, max_size=4),
    left=st.sets(st.integers(1, 3)),
    null_safe=st.booleans(),
    key=st.sampled_from([pa.int64(), pa.float64()]),
    data=st.data(),
)
def test_it_is_the_chain(
    ingests: list[Ingest], left: set[int], null_safe: bool, key: pa.DataType, data: st.DataObject
) -> None:
    """Also of keys that are NaN, -0.0 or NULL."""
    ports = tuple(port(schema(name, key), ingest) for name, ingest in zip(NAMES, ingests, strict=False))
    kinds = [JoinKind.LEFT if place in left else JoinKind.INNER for place in range(1, len(ports))]
    optional = tuple(place for place, kind in enumerate(kinds, start=1) if kind is JoinKind.LEFT)
    alone, chain = Alone(MultiwaySpec(ports, optional, (null_safe,))), Chain(kinds, ports, (null_safe,))
    drawn = [records(ingest, *VALUES) if key == pa.int64() else of_floats(ingest) for ingest in ingests]
    for parts, restart in data.draw(batches(*drawn)):
        changes = alone.on_batch(*parts)
        assert changes == chain.on_batch(*parts)
        if restart:
            alone.restart()
            chain.restart()


def of_floats(ingest: Ingest) -> st.SearchStrategy[list[Record]]:
    """As ``records``, by keys that go wrong."""
    key = FLOATS if ingest in KEYED else st.none() | FLOATS
    delta = st.just(1) if ingest is Ingest.APPEND else st.sampled_from([1, 1, -1])
    rows = st.tuples(key, *VALUES)
    return st.lists(st.tuples(rows, delta), max_size=6)


def three(ingest: Ingest = Ingest.APPEND, optional: tuple[int, ...] = ()) -> MultiwaySpec:
    return MultiwaySpec(tuple(port(schema(name), ingest) for name in "abc"), optional)


def test_each_input_is_kept_once() -> None:
    """Of three streams of n rows under different keys the chain keeps the pairs of the first two besides."""
    n = 300
    parts: list[list[Record]] = [[((key, name, key), 1) for key in range(n)] for name in "abc"]
    alone, chain = Alone(three()), Chain([JoinKind.INNER] * 2, three().parts)
    assert alone.on_batch(*parts) == chain.on_batch(*parts)
    assert {name: alone.held(name) for name in alone.store.runs} == {f"0.part{place}": n for place in range(3)}
    assert (alone.held(), chain.held()) == (3 * n, 4 * n)


def test_rows_that_meet_often_are_kept_once_all_the_same() -> None:
    parts: list[list[Record]] = [[((1, name, value), 1) for value in range(20)] for name in "abc"]
    alone, chain = Alone(three()), Chain([JoinKind.INNER] * 2, three().parts)
    assert alone.on_batch(*parts) == chain.on_batch(*parts)
    assert (alone.held(), chain.held()) == (60, 60 + 400)


def test_nothing_is_put_together_under_a_key_that_one_input_lacks() -> None:
    """30,000 rows beside 30,000 would be 900 million pairs, wherever the input that lacks the key stands."""
    many: list[Record] = [((1, "x", value), 1) for value in range(30_000)]
    for place in range(3):
        parts = [many, many]
        parts.insert(place, [((2, "y", 1), 1)])
        assert Alone(three()).on_batch(*parts) == Counter()


def test_a_condition_is_tested_before_the_next_input_is_added() -> None:
    """Of 1,000 pairs one is left: a million combinations are never made."""
    tests = (ResidualCondition(("a.v", "b.v"), Below("a", "b")),)
    spec = MultiwaySpec(three().parts, (), (), tests)
    alone = Alone(spec)
    alone.on_batch([], [((1, "b", value), 1) for value in range(1_000)], [((1, "c", value), 1) for value in range(9)])
    changes = alone.on_batch([((1, "a", 998), 1)], [], [])
    assert changes == Counter({(1, "a", 998, 1, "b", 999, 1, "c", value): 1 for value in range(9)})


@pytest.mark.parametrize(("pad", "padding"), [(Pad.NULL, (None, None, None)), (Pad.DEFAULT, (0, "", 0))])
def test_a_padded_row_stands_where_an_optional_input_has_none(pad: Pad, padding: Row) -> None:
    parts = tuple(port(schema(name), Ingest.CHANGELOG) for name in "abc")
    alone = Alone(MultiwaySpec(parts, (1, 2), pad=pad))
    a, b, c = (1, "a", 1), (1, "b", 2), (1, "c", 3)
    assert alone.on_batch([(a, 1)], [], []) == Counter({a + padding + padding: 1})
    assert alone.on_batch([], [(b, 2)], []) == Counter({a + padding + padding: -1, a + b + padding: 2})
    assert alone.on_batch([], [(b, -1)], [(c, 1)]) == Counter({a + b + padding: -2, a + b + c: 1})
    alone.restart()
    assert alone.on_batch([], [(b, -1)], [(c, -1)]) == Counter({a + b + c: -1, a + padding + padding: 1})


def test_a_row_without_a_key_is_padded_and_is_not_kept() -> None:
    row = (None, "a", 1)
    alone = Alone(three(Ingest.APPEND, (1, 2)))
    assert alone.on_batch([(row, 1)], [((None, "b", 1), 1)], []) == Counter({row + (None,) * 6: 1})
    assert alone.held() == 0


def test_combinations_are_counted_as_often_as_they_are_there() -> None:
    alone = Alone(three(Ingest.CHANGELOG))
    rows: list[Row] = [(1, name, 1) for name in "abc"]
    together = rows[0] + rows[1] + rows[2]
    assert alone.on_batch(*([(row, 10_000)] for row in rows)) == Counter({together: 10_000**3})
    assert alone.on_batch([(rows[0], -10_000)], [], []) == Counter({together: -(10_000**3)})
    with pytest.raises(CountOverflow):
        alone.on_batch([(rows[0], 2**40)], [], [])


def test_retractions_that_are_dangling_are_left_out() -> None:
    alone = Alone(three(Ingest.CHANGELOG, (2,)))
    assert alone.on_batch([((1, "a", 1), -1)], [((1, "b", 1), -1)], [((1, "c", 1), 1)]) == Counter()
    assert alone.operator.dangling == 2


def test_the_first_input_is_never_optional() -> None:
    with pytest.raises(InternalError, match="the first input"):
        three(optional=(0,))
