"""The rows of generated streams: what options and expressions make, and that rows are a function of their numbers."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import DovetailError
from dovetail.sql.datagen.fields import Moment
from dovetail.sql.datagen.row_generator import RowGenerator
from dovetail.sql.stream_settings import expect_settings
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream

NOON = 1_767_268_800_000_000
MOMENT = Moment(now_us=NOON, created_us=NOON - 3_600_000_000)
EVERY_TYPE = """
    CREATE TABLE s (a smallint, b int, c bigint, d real, e double, f decimal(12, 3), g numeric, h varchar, i bytea,
        j boolean, k timestamp, l timestamptz, m date, n int[], o struct<x int, y varchar[]>) WITH (connector='datagen')
"""
RANDOM = """
    CREATE RANDOM STREAM s (a string DEFAULT 'device' || to_string(rand() % 4), b float64 DEFAULT rand_uniform(-1, 1),
        c float64 DEFAULT rand_normal(10, 2), d int DEFAULT random_in_type('int', 10), e string DEFAULT uuid(),
        f uint64 DEFAULT rand64(), g string DEFAULT ['red', 'blue'][rand() % 2 + 1], h datetime64(3) DEFAULT now64(),
        i float64 DEFAULT rand_exponential(2), j uint64 DEFAULT rand_bernoulli(0.5), k string DEFAULT random_string(5),
        l int8, m string DEFAULT if(rand() % 10 = 0, NULL, 'x'), n float64 DEFAULT rand_canonical())
"""


def stream(text: str) -> CreateStream:
    made = parse_one(text)
    assert isinstance(made, CreateStream)
    expect_settings(made)
    return made


def rows(text: str, count: int = 1000, first: int = 0) -> pa.Table:
    return RowGenerator.of(stream(text)).rows(first, count, MOMENT)


def with_options(kind: str, options: str) -> str:
    return f"CREATE TABLE s (x {kind}) WITH (connector = 'datagen', {options})"


@pytest.mark.parametrize("text", [EVERY_TYPE, RANDOM])
@given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=6), first=st.integers(0, 2**40))
def test_rows_do_not_depend_on_how_they_are_cut(text: str, cuts: list[int], first: int) -> None:
    generator = RowGenerator.of(stream(text))
    parts, at = [], first
    for count in cuts:
        parts.append(generator.rows(at, count, MOMENT))
        at += count
    whole = generator.rows(first, sum(cuts), MOMENT)
    assert pa.concat_tables(parts).equals(whole)
    whole.validate(full=True)


@pytest.mark.parametrize("text", [EVERY_TYPE, RANDOM])
def test_the_columns_have_their_declared_types(text: str) -> None:
    made = stream(text)
    assert rows(text).schema == pa.schema([(column.name, column.type) for column in made.columns])


@pytest.mark.parametrize(
    ("kind", "options", "least", "most"),
    [
        ("int", "fields.x.min = -3, fields.x.max = 3", -3, 3),
        ("smallint", "fields.x.seed = 5", 0, 32_767),
        ("bigint", f"fields.x.min = '{-(2**63)}', fields.x.max = '{2**63 - 1}'", -(2**63), 2**63 - 1),
        ("double", "fields.x.min = '1.5', fields.x.max = '2.5'", 1.5, 2.5),
        ("decimal(6, 2)", "fields.x.min = '-0.05', fields.x.max = '0.05'", Decimal("-0.05"), Decimal("0.05")),
        ("int", "fields.x.min = 7, fields.x.max = 7", 7, 7),
    ],
)
def test_random_numbers_are_within_their_bounds(kind: str, options: str, least: object, most: object) -> None:
    values = rows(with_options(kind, options), 5000)["x"]
    found = pc.min_max(values).as_py()
    assert least <= found["min"]
    assert found["max"] <= most
    if kind in ("int", "decimal(6, 2)"):
        # So few values that all of them come up.
        assert (found["min"], found["max"]) == (least, most)


@pytest.mark.parametrize(
    ("kind", "options", "expected", "last"),
    [
        ("int", "fields.x.start = 5, fields.x.end = 9", [5, 6, 7, 8], 4),
        ("double", "fields.x.start = '1.5', fields.x.end = 3", [1.5, 2.5, 3.5, 4.5], 1),
        ("decimal(8, 2)", "fields.x.start = '1.56'", [Decimal(f"{n}.56") for n in range(1, 5)], 2**60),
        ("int[]", "fields.x.length = 2, fields.x._.kind = 'sequence', fields.x._.end = 6", [[0, 1], [2, 3]], 2),
        ("struct<y int>", "fields.x.y.kind = 'sequence', fields.x.y.end = 3", [{"y": 0}, {"y": 1}], 3),
    ],
)
def test_sequences_count_and_end(kind: str, options: str, expected: list[object], last: int) -> None:
    nested = "._." in options or "x.y." in options
    text = with_options(kind, options if nested else f"fields.x.kind = 'sequence', {options}")
    generator = RowGenerator.of(stream(text))
    assert rows(text, len(expected))["x"].to_pylist() == expected
    assert generator.last is not None
    if last < 2**60:
        assert generator.last == last
        assert generator.due(last - 1, 10) == 2
        assert generator.due(last + 1, 10) == 0


def test_a_number_of_rows_ends_a_stream() -> None:
    generator = RowGenerator.of(stream(with_options("int", "'number-of-rows' = 12")))
    assert [generator.due(first, 10) for first in (0, 10, 12, 99)] == [10, 2, 0, 0]


def test_texts_times_and_choices() -> None:
    text = """
        CREATE SOURCE s (a varchar, b varchar, c timestamptz, d timestamp, e int DEFAULT 7, f timestamptz DEFAULT now(),
            Mixed int, g int)
        WITH (connector = 'datagen', fields.a.length = 4, fields.b.values = 'paid, open, paid',
            fields.c.max_past = '2h', fields.c.max_past_mode = 'relative', fields.d.max_past = '1 day',
            fields.Mixed.max = 0, fields.g.values = '3, 5')
        FORMAT PLAIN ENCODE JSON
    """
    found = rows(text)
    assert set(pc.utf8_length(found["a"]).to_pylist()) == {4}
    assert len(set(found["a"].to_pylist())) > 900
    assert set(found["b"].to_pylist()) == {"paid", "open"}
    assert set(found["g"].to_pylist()) == {3, 5}
    since = found["c"].cast(pa.int64()).to_numpy()
    assert NOON - 7_200_000_000 <= since.min() < since.max() <= NOON
    local = found["d"].cast(pa.int64()).to_numpy()
    assert local.max() <= MOMENT.created_us
    assert local.min() >= MOMENT.created_us - 86_400_000_000
    assert found["e"].to_pylist() == [7] * 1000
    assert set(found["f"].cast(pa.int64()).to_pylist()) == {NOON}
    assert set(found["Mixed"].to_pylist()) == {0}


def test_calls_differ_from_each_other_and_from_row_to_row() -> None:
    found = rows(RANDOM, 2000)
    assert set(found["a"].to_pylist()) == {f"device{n}" for n in range(4)}
    assert -1 <= pc.min(found["b"]).as_py() < pc.max(found["b"]).as_py() < 1
    assert 9 < pc.mean(found["c"]).as_py() < 11
    assert set(found["d"].to_pylist()) == set(range(10))
    assert len(set(found["e"].to_pylist())) == 2000
    assert {uuid[14] for uuid in found["e"].to_pylist()} == {"4"}
    assert {uuid[19] for uuid in found["e"].to_pylist()} == set("89ab")
    assert {"red", "blue"} == set(found["g"].to_pylist())
    assert found["m"].null_count > 100
    assert set(found["j"].to_pylist()) == {0, 1}
    # A column's calls are not those of another.
    both = rows("CREATE RANDOM STREAM s (a uint32 DEFAULT rand(), b uint32 DEFAULT rand())", 50)
    assert both["a"].to_pylist() != both["b"].to_pylist()


def test_seeds_make_other_values() -> None:
    same, other = (rows(with_options("int", f"fields.x.seed = {seed}"))["x"].to_pylist() for seed in (3, 4))
    assert same == rows(with_options("int", "fields.x.seed = '3'"))["x"].to_pylist()
    assert same != other


@pytest.mark.parametrize(
    ("text", "rate", "every_s"),
    [
        ("CREATE RANDOM STREAM s (a int DEFAULT 1)", 1000, 0.1),
        ("CREATE RANDOM STREAM s (a int DEFAULT 1) SETTINGS eps = 0.5, interval_time = 200", 0.5, 0.2),
        ("CREATE TABLE s (a int) WITH (connector = 'datagen')", 10, 0.1),
        ("CREATE TABLE s (a int) WITH (connector = 'datagen', datagen.rows.per.second = '15')", 15, 0.1),
        ("CREATE STREAM s (a int) WITH (connector = 'datagen', 'rows-per-second' = 20)", 20, 0.1),
        ("CREATE STREAM s (a int) SETTINGS connector = 'datagen', eps = 20", 20, 0.1),
    ],
)
def test_rates(text: str, rate: float, every_s: float) -> None:
    generator = RowGenerator.of(stream(text))
    assert (generator.rate, generator.every_s) == (rate, every_s)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (with_options("int", "fields.y.max = 1"), '"s" has no column "y"'),
        (with_options("int", "fields.x.maximum = 1"), 'the values of "x" have no option "maximum"'),
        (with_options("int", "fields.x.length = 1"), 'the values of "x" have no option "length"'),
        (with_options("int", "fields.x.max = 'many'"), "fields.x.max = 'many' is no number"),
        (with_options("int", "fields.x.max = 'nan'"), "fields.x.max = 'nan' is no number"),
        (with_options("int", "fields.x.min = 5, fields.x.max = 4"), "leaves nothing from 5 to 4"),
        (with_options("int", "fields.x.max = 1e300"), "is no whole number from"),
        (with_options("smallint", "fields.x.max = 40000"), "is no whole number from -32768 to 32767"),
        (with_options("decimal(4, 2)", "fields.x.max = 100"), "is beyond decimal(4, 2)"),
        (with_options("varchar", "fields.x.length = 0"), "is no whole number from 1 to 10,000"),
        (with_options("varchar", "fields.x.length = 1e9"), "is no whole number from 1 to 10,000"),
        (with_options("varchar", "fields.x.kind = 'sequence'"), "a sequence is of numbers"),
        (with_options("int", "fields.x.kind = 'serial'"), "is no way to make values"),
        (with_options("int", "fields.x.values = '1, two'"), "are not all int32"),
        (with_options("timestamptz", "fields.x.max_past = 'long'"), "is no length of time"),
        (with_options("timestamptz", "fields.x.basetime = 'noon'"), "is no time"),
        (with_options("timestamptz", "fields.x.max_past_mode = 'other'"), "is no mode"),
        (with_options("map(varchar, int)", "fields.x.length = 3"), "cannot be generated"),
        (with_options("int", "datagen.rows.per.second = 0"), "datagen.rows.per.second cannot be 0"),
        (with_options("int", "eps = 'fast'"), "eps cannot be 'fast'"),
        (with_options("int", "eps = 1e400"), "eps cannot be"),
        (with_options("int", "'number-of-rows' = -1"), "number-of-rows cannot be"),
        ("CREATE TABLE s (x int) WITH (eps = 5)", "eps is for rows that are generated"),
        ("CREATE STREAM s (x int) SETTINGS connector = 'kafka'", "a stream has no connector kafka"),
        ("CREATE RANDOM STREAM s (x int DEFAULT y, y int)", 'reads "y", and no column is made of another'),
        ("CREATE RANDOM STREAM s (x int DEFAULT 'a')", "is string, and the column is int32"),
        ("CREATE RANDOM STREAM s (x int DEFAULT sum(1))", "an aggregate makes one row of many"),
        ("CREATE RANDOM STREAM s (x int DEFAULT rand(rand()))", "has an argument that is no constant"),
        ("CREATE RANDOM STREAM s (x int DEFAULT rand_uniform(1))", "rand_uniform takes the least, the greatest"),
        ("CREATE RANDOM STREAM s (x string DEFAULT random_string(1e9))", "random_string takes a number from 1 to"),
        ("CREATE RANDOM STREAM s (x int DEFAULT random_in_type('number'))", 'there is no type "number"'),
        ("CREATE RANDOM STREAM s (x int DEFAULT (SELECT max(a) FROM t))", '"a"'),
    ],
)
def test_what_makes_no_rows_is_refused(text: str, message: str) -> None:
    with pytest.raises(DovetailError) as raised:
        stream(text)
    assert message in str(raised.value)
