"""Texts that are decimals of millions of digits: what Arrow makes of them by itself ends the process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from dovetail.changelog.formats import decimal_text
from tests.paths import ROOT
from tests.test_layers import PRESENT, sources

KIND = pa.decimal128(38, 10)
FAR = ("1e-999999999", "0e-999999999", "1E-3000000", "1e-77", "0." + "0" * 3_000_000 + "1", "1" + "0" * 3_000_000)
READ = {
    "1.50": "1.5",
    "-.5": "-0.5",
    "1e-10": "1e-10",
    "15e-1": "1.5",
    "0." + "10".ljust(90, "0"): "0.1",
    "0" * 90 + "7": "7",
}


@pytest.mark.parametrize("text", FAR, ids=lambda text: text[:14])
@pytest.mark.parametrize("carrier", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()], ids=str)
def test_a_text_that_no_decimal_holds_is_refused(text: str, carrier: pa.DataType) -> None:
    given = pa.array([text if pa.types.is_string(carrier) else text.encode()], pa.binary())
    with pytest.raises(pa.ArrowInvalid):
        _unless_zero(decimal_text.cast(given.cast(carrier), KIND))


def _unless_zero(cast: pa.Array) -> None:
    """Zero is zero, whatever its exponent."""
    if cast.to_pylist() == [0]:
        raise pa.ArrowInvalid("it is 0")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([["1", FAR[0]]]), pa.list_(KIND)),
        (pa.array([{"a": FAR[0]}]), pa.struct([("a", KIND)])),
        (pa.array([[("a", FAR[0])]], pa.map_(pa.string(), pa.string())), pa.map_(pa.string(), KIND)),
        (pa.array(["1", FAR[0]]).dictionary_encode(), KIND),
        (pa.chunked_array([["1"], [FAR[0]]]), KIND),
    ],
    ids=["list", "struct", "map", "dictionary", "chunks"],
)
def test_at_any_depth(values: pa.Array, kind: pa.DataType) -> None:
    with pytest.raises(pa.ArrowInvalid):
        decimal_text.cast(values, kind)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([{"a": "1.5", "b": "any text"}]), pa.struct([("a", KIND), ("b", pa.string())])),
        (pa.array([[("any text", "1.5")]], pa.map_(pa.string(), pa.string())), pa.map_(pa.string(), KIND)),
        (pa.array([[{"a": 1, "b": "any"}]]), pa.list_(pa.struct([("a", KIND), ("b", pa.string())]))),
    ],
    ids=["struct", "map", "list of structs"],
)
def test_texts_beside_decimals_stay(values: pa.Array, kind: pa.DataType) -> None:
    cast = decimal_text.cast(values, kind)
    assert cast.type == kind
    assert "any" in str(cast.to_pylist())


def test_those_that_fit_are_read_to_the_last_digit() -> None:
    cast = decimal_text.cast(pa.array([*READ, None]), KIND)
    assert cast.to_pylist() == [*map(Decimal, READ.values()), None]


_PATHS = """
broker/reader.py changelog/dead_letter.py changelog/decode.py changelog/encodings/avro/conversions.py
changelog/encodings/avro/decimals.py changelog/encodings/avro/reader.py changelog/encodings/avro/writer.py
changelog/encodings/avro_format.py changelog/encodings/schema_id_framing/plain_values.py
changelog/encodings/protobuf/builders.py changelog/encodings/protobuf/writer.py changelog/encodings/text_cells.py
changelog/event_times.py changelog/formats/decimal_text.py changelog/formats/json_batch.py
changelog/formats/record_parts.py changelog/rows.py dictionaries/sources/sql_database.py
enrichment/lookup_join/distinct_keys.py enrichment/lookup_join/looked_up_columns.py
enrichment/stream_rows/sqlite_values.py services/cli/demo/clickthrough.py services/cli/following/current_rows.py
services/session/frames/fitted_columns.py services/session/rows.py services/session/typed_rows.py
services/session/verification/verify.py services/worker/lane/fetches.py sql/datagen/fields.py
sql/expressions/group_calls.py sql/expressions/engine_calls/python_calls.py
sql/expressions/partitions/partition_calls.py sql/trace/grouped_rows.py sql/trace/history.py sql/trace/near_misses.py
sql/trace/walk.py sql/transforms/static_join_step.py sql/transforms/version_step.py sql/transforms/window_step.py
"""
CASTS_OF_NO_TEXTS = frozenset(_PATHS.split())
"""Where Arrow casts to a type that is not written there: columns that are of it but for their digits or their unit."""
READERS = {"read_json": "changelog/formats/json_batch.py", "read_csv": "changelog/encodings/csv_format.py"}
OPERATORS = "joins"
"""Their rows have the types of their own schemas."""


def test_no_other_cast_may_meet_a_text_that_is_to_be_a_decimal() -> None:
    files = {path for path, call in _calls() if call.func.attr == "cast" and _is_open(call)}  # type: ignore[attr-defined]
    assert files == CASTS_OF_NO_TEXTS, "call dovetail.changelog.formats.decimal_text.cast where a text may come"


def test_no_other_parser_of_arrow_makes_decimals() -> None:
    found = {(call.func.attr, path) for path, call in _calls() if call.func.attr in READERS}  # type: ignore[attr-defined]
    assert found == set(READERS.items())


def _calls() -> Iterator[tuple[str, ast.Call]]:
    """The calls of methods in the product, and where."""
    for layer in PRESENT:
        for path in () if layer == OPERATORS else sources(layer):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    yield path.relative_to(ROOT).as_posix(), node


def _is_open(call: ast.Call) -> bool:
    """Whether the type may be a decimal, as far as the call tells."""
    assert isinstance(call.func, ast.Attribute)
    of = ast.unparse(call.func.value)
    target = ast.unparse(call.args[1] if of == "pc" else call.args[0])
    engine = of in ("decimal_text", "exp", "dialect") or of.endswith((".base", ".dialect"))
    other = target.isupper() or target.startswith("pl.") or (target.startswith("pa.") and "decimal" not in target)
    return not (engine or other)
