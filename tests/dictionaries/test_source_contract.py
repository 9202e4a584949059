"""What every source must do, each against a real database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from threading import Thread

import pyarrow as pa
import pytest

from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.lookup import Row
from dovetail.changelog.schema import Column
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from dovetail.dictionaries.open import Checkable, open_source
from tests.dictionaries.backends import EMBEDDED, INSTANT, SERVERS, Backend

PRODUCTS = (
    Column("id", pa.int64()),
    Column("name", pa.string()),
    Column("price", pa.decimal128(10, 2)),
    Column("sold", pa.bool_()),
    Column("weight", pa.float64()),
    Column("since", pa.date32()),
    Column("at", INSTANT),
    Column("stock", pa.uint64()),
    Column("code", pa.binary()),
)
AT = datetime(2024, 7, 1, 10, 30, tzinfo=UTC)
FULL: Row = (1, "Äpfel", Decimal("1.50"), True, 0.25, date(2024, 2, 29), AT, 2**63 + 5, b"\x01a")
EMPTY: Row = (2, None, None, None, None, None, None, None, None)
_ALL = [
    *(pytest.param(name, id=name) for name in EMBEDDED),
    *(pytest.param(name, id=name, marks=pytest.mark.services) for name in SERVERS),
]


_UNTYPED = [param for param in _ALL if param.id != "keyed stream"]
"""The values of a keyed stream have the types of its columns already, and its defaults."""


@pytest.fixture(params=_ALL, scope="module")
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    made = {**EMBEDDED, **SERVERS}[request.param]
    with made(tmp_path_factory.mktemp("backend") / "server") as running:
        yield running


def declared(source: SourceSpec, columns: Sequence[Column], key: Sequence[str]) -> Definition:
    return define("d", columns, key, source, LayoutSpec("direct"))


def opened(backend: Backend, columns: Sequence[Column], key: Sequence[str], rows: Sequence[Row]) -> Checkable:
    source = backend.put("products", columns, key, rows)
    return open_source(declared(source, columns, key), backend.resources)


def test_values_have_the_declared_types(backend: Backend) -> None:
    source = opened(backend, PRODUCTS, ["id"], [FULL, EMPTY])
    source.check()
    found = source.fetch(["id"], [1, 2, 3])
    assert found == {1: (FULL,), 2: (EMPTY,)}
    for row in (FULL, EMPTY):
        [found_row] = found[row[0]]
        assert [type(value) for value in found_row] == [type(value) for value in row]
    columns = zip(PRODUCTS, zip(*(rows[0] for rows in found.values()), strict=True), strict=True)
    for column, values in columns:
        assert pa.array(values, column.type).to_pylist() == list(values)
    assert sorted(row for piece in source.load() for row in piece) == [FULL, EMPTY]
    source.close()


@pytest.mark.parametrize(
    ("column", "present", "absent"),
    [
        (Column("k", pa.string()), ["a", "b'\"\\%:x", "ä", ""], ["A", "a ", "b", "%", "' OR '1'='1", "a\0b", "ae"]),
        (Column("k", pa.int64()), [-5, 0, 2**62], [1, 2**63 - 1]),
        (Column("k", pa.uint64()), [0, 2**64 - 1], [2**63, 7]),
        (Column("k", pa.decimal128(10, 2)), [Decimal("1.50"), Decimal("-3.00")], [Decimal("1.51")]),
        (Column("k", pa.date32()), [date(2024, 2, 29)], [date(2024, 3, 1)]),
        (Column("k", INSTANT), [AT], [AT.replace(second=1), AT.replace(microsecond=1)]),
        (Column("k", pa.bool_()), [True], [False]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, Column) else "",
)
def test_keys_of_every_type_are_found_and_no_others(
    backend: Backend, column: Column, present: list[object], absent: list[object]
) -> None:
    columns = (column, Column("n", pa.int32()))
    source = opened(backend, columns, ["k"], [(key, number) for number, key in enumerate(present)])
    found = source.fetch(["k"], [*present, *absent])
    assert found == {key: ((key, number),) for number, key in enumerate(present)}
    source.close()


def test_a_key_of_several_columns(backend: Backend) -> None:
    columns = (Column("a", pa.int64()), Column("b", pa.string()), Column("v", pa.int32()))
    rows = [(1, "x", 10), (1, "y", 11), (2, "x", 12)]
    source = opened(backend, columns, ["a", "b"], rows)
    source.check()
    assert source.fetch(["a", "b"], [(1, "y"), (2, "x"), (2, "y"), (1, "X")]) == {
        (1, "y"): (rows[1],),
        (2, "x"): (rows[2],),
    }
    assert source.fetch(["b", "a"], [("y", 1), ("x", 3)]) == {("y", 1): (rows[1],)}
    source.close()


def test_all_rows_of_a_key_that_is_not_unique(backend: Backend) -> None:
    columns = (Column("id", pa.int64()), Column("kind", pa.string()))
    rows = [(1, "a"), (2, "b"), (3, "a"), (4, None)]
    source = opened(backend, columns, ["id"], rows)
    found = source.fetch(["kind"], ["a", "c"])
    assert {key: sorted(under) for key, under in found.items()} == {"a": [rows[0], rows[2]]}
    source.close()


def test_more_keys_than_one_statement_takes(backend: Backend) -> None:
    columns = (Column("id", pa.int64()), Column("v", pa.string()))
    rows = [(number, f"v{number}") for number in range(1200)]
    source = opened(backend, columns, ["id"], rows)
    found = source.fetch(["id"], list(range(600, 1800)))
    assert found == {row[0]: (row,) for row in rows[600:]}
    assert sum(len(piece) for piece in source.load()) == len(rows)
    assert source.fetch(["id"], []) == {}
    source.close()


def test_a_source_is_asked_by_several_threads(backend: Backend) -> None:
    columns = (Column("id", pa.int64()), Column("v", pa.string()))
    rows = [(number, f"v{number}") for number in range(300)]
    source = opened(backend, columns, ["id"], rows)
    wrong: list[int] = []

    def ask(start: int) -> None:
        keys = range(start, 300, 30)
        wrong.extend(key for key in keys if source.fetch(["id"], [key, key + 1000]) != {key: (rows[key],)})

    threads = [Thread(target=ask, args=(start,)) for start in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    source.close()


@pytest.mark.parametrize("backend", _UNTYPED, indirect=True)
def test_null_becomes_the_default_and_is_refused_where_none_may_be(backend: Backend) -> None:
    columns = (Column("id", pa.int64()), Column("v", pa.int32()))
    source = backend.put("products", columns, ["id"], [(1, None), (2, 5)])
    with_default = (columns[0], Column("v", pa.int32(), default="-1"))
    by_default = open_source(declared(source, with_default, ["id"]), backend.resources)
    assert by_default.fetch(["id"], [1, 2]) == {1: ((1, -1),), 2: ((2, 5),)}
    not_null = (columns[0], Column("v", pa.int32(), nullable=False))
    strict = open_source(declared(source, not_null, ["id"]), backend.resources)
    with pytest.raises(RecordRejected, match=r'"v" is NULL'):
        strict.fetch(["id"], [1])
    by_default.close()
    strict.close()


@pytest.mark.parametrize("backend", _UNTYPED, indirect=True)
def test_a_value_too_great_for_its_type_is_named(backend: Backend) -> None:
    columns = (Column("id", pa.int64()), Column("v", pa.int64()))
    source = backend.put("products", columns, ["id"], [(1, 2**40), (2, 7)])
    narrow = (columns[0], Column("v", pa.int32()))
    narrowed = open_source(declared(source, narrow, ["id"]), backend.resources)
    with pytest.raises(RecordRejected, match=r'column "v": int \'1099511627776\' is no int32|str \'1099511627776\''):
        narrowed.fetch(["id"], [1, 2])
    assert narrowed.fetch(["id"], [2]) == {2: ((2, 7),)}
    narrowed.close()
