"""Functions in Python as the engine calls them: what they see, what becomes of what they give."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import FunctionFault
from dovetail.joins.dataflow.failed_calls import taken
from dovetail.sql.expressions import engine
from dovetail.sql.expressions.evaluate import Condition, RowMap, evaluate, readable
from dovetail.sql.expressions.python_functions import PythonFunction, called_in
from dovetail.sql.syntax.types import INSTANT

COLUMN = engine.parsed('"x"')


INT = pa.int64()


def function(body: str, *, takes: pa.DataType = INT, gives: pa.DataType = INT) -> PythonFunction:
    return PythonFunction("f", (takes,), gives, f"import pyarrow as pa\ndef f(x):\n    {body}")


def computed(made: PythonFunction, values: Sequence[object], around: str = "{}") -> list[object]:
    rows = pa.table({"x": pa.array(values, made.takes[0])})
    found: list[object] = evaluate(rows, [around.format(engine.text(made.over([COLUMN])))])[0].to_pylist()
    return found


@given(name=st.text(min_size=1, max_size=20), body=st.text(max_size=200), volatile=st.booleans())
def test_a_definition_is_read_from_its_call(name: str, body: str, volatile: bool) -> None:
    made = PythonFunction(name, (pa.int8(), pa.list_(INSTANT), pa.decimal128(9, 2)), pa.binary(), body, volatile)
    call = made.over([COLUMN])
    again = engine.text(engine.parsed(engine.text(call)))
    assert called_in(f"1 + {engine.text(call)}") == called_in(again) == (made,)


def test_people_read_its_name() -> None:
    call = engine.text(function("return x").over([COLUMN]))
    assert readable(f"{call} + {call}") == "f(x) + f(x)"


@pytest.mark.parametrize(
    "definition", ["5", '["f"]', '["f", 1, "int", "", false]', '["f", ["no_type"], "int", "", false]', "x"]
)
def test_what_only_looks_like_a_call_is_none(definition: str) -> None:
    spelled = base64.b32encode(definition.encode()).decode().rstrip("=")
    assert called_in(f"python_{spelled}(\"x\") + 'python_mzxw6(' + python_(1)") == ()


def test_it_travels_within_the_plan() -> None:
    """As the steps of a query do: to a process that has no catalog."""
    made = function("return [None if n is None else n * 2 for n in x.to_pylist()]")
    text = engine.text(made.over([COLUMN]))
    step = pickle.loads(pickle.dumps(RowMap((("y", text),), pa.schema([("y", pa.int64())]), f"{text} > 2")))
    rows = pa.table({"x": [1, 2, None], "delta": pa.array([1, 1, 1], pa.int32())})
    assert step(rows).column("y").to_pylist() == [4]
    assert Condition(f"{text} = 2")(rows).tolist() == [True, False, False]


@pytest.mark.parametrize("length", [0, 1, 2047, 2048, 5000])
def test_it_sees_whole_columns_with_their_nulls(length: int) -> None:
    values = [None if n % 3 == 0 else n for n in range(length)]
    made = function("assert isinstance(x, pa.Array); return pa.array([-1 if n is None else n for n in x.to_pylist()])")
    assert computed(made, values) == [-1 if n is None else n for n in values]


@pytest.mark.parametrize(
    ("body", "gives", "values", "expected"),
    [
        ("return [n for n in x.to_pylist()]", pa.int32(), [1, None], [1, None]),
        ("return x.to_numpy(zero_copy_only=False)", pa.float64(), [1, 2], [1.0, 2.0]),
        ("return pa.chunked_array([x.slice(0, 1), x.slice(1)])", pa.int64(), [1, 2, 3], [1, 2, 3]),
        ("return x.cast(pa.string()).dictionary_encode()", pa.string(), [7, None], ["7", None]),
        ("return pa.nulls(len(x))", pa.string(), [1, 2], [None, None]),
        ("return (n for n in x.to_pylist())", pa.int64(), [1, 2], [1, 2]),
        ("return [[n, None] for n in x.to_pylist()]", pa.list_(pa.int32()), [1, 2], [[1, None], [2, None]]),
        ("return x.cast(pa.float64())", pa.int8(), [1, 2], [1, 2]),
    ],
)
def test_it_may_give_what_can_be_its_column(
    body: str, gives: pa.DataType, values: list[object], expected: list[object]
) -> None:
    assert computed(function(body, gives=gives), values) == expected


KINDS = [
    *(INSTANT, pa.timestamp("us"), pa.date32(), pa.time64("us"), pa.bool_(), pa.binary(), pa.uint64(), pa.float32()),
    *(pa.decimal128(38, 4), pa.list_(pa.string())),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_type_comes_and_goes_as_it_is_declared(kind: pa.DataType) -> None:
    made = function(f"return x if str(x.type) == {str(kind)!r} else None", takes=kind, gives=kind)
    rows = pa.table({"x": pa.nulls(3, kind)})
    (found,) = evaluate(rows, [engine.text(made.over([COLUMN]))])
    assert found.to_pylist() == [None] * 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return x.slice(1)", "gives 2 values for 3 rows"),
        ("return x.drop_null()", "gives 2 values for 3 rows"),
        ("return ['a'] * len(x)", "gives string, and is declared to give int64"),
        ("return [[1]] * len(x)", "is declared to give int64"),
        ("return [1, 'a', 2]", "gives what is no column"),
        ("return 5", "gives one int, and no column"),
        ("return 'abc'", "gives one str, and no column"),
        ("pass", "gives one NoneType, and no column"),
    ],
)
@pytest.mark.parametrize("around", ["{}", "TRY({})", "CASE WHEN {} IS NULL THEN 1 ELSE 2 END"])
def test_what_breaks_its_declaration_ends_the_query(body: str, said: str, around: str) -> None:
    with pytest.raises(FunctionFault) as fault:
        computed(function(body), [1, None, 2], around)
    assert said in fault.value.what
    # It is not told of the next one.
    assert computed(function("return x"), [1]) == [1]


def test_code_that_cannot_be_loaded_ends_the_query() -> None:
    made = PythonFunction("f", (pa.int64(),), pa.int64(), "import no_such_module\ndef f(x): return x")
    with pytest.raises(FunctionFault, match="No module named 'no_such_module'"):
        computed(made, [1])


@given(st.lists(st.none() | st.integers(-3, 3), max_size=30))
def test_a_row_that_fails_is_null_and_no_other(values: list[int | None]) -> None:
    made = function("return [12 // n for n in x.to_pylist()]")
    taken()
    assert computed(made, values) == [12 // n if n else None for n in values]
    assert taken() == sum(not n for n in values)


def test_a_value_that_its_type_does_not_hold_is_null() -> None:
    made = function("return [n * 100 for n in x.to_pylist()]", gives=pa.int8())
    assert computed(made, [1, 2]) == [100, None]
    assert computed(function("return [10 ** (10 * n) for n in x.to_pylist()]"), [1, 2]) == [10**10, None]
