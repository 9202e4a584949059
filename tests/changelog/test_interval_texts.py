"""Intervals as texts: one form for each, as the engine writes it too."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from dovetail.changelog.formats.interval_texts import interval_text, maybe_otherwise, parsed, written
from dovetail.sql.expressions import engine
from dovetail.sql.expressions.evaluate import evaluate
from dovetail.sql.functions import interval_columns

_HOUR = 3_600_000_000
_MONTHS = st.integers(-3000, 3000) | st.integers(-(1 << 31) + 1, (1 << 31) - 1)
_TIMES = st.integers(-100 * _HOUR, 100 * _HOUR) | st.integers(-2_562_047 * _HOUR, 2_562_047 * _HOUR)
PARTS = st.tuples(_MONTHS, st.integers(-40, 40) | _MONTHS, _TIMES | st.sampled_from([0, 1, -1, 1_000_000]))


def of_engine(template: exp.Expr, texts: list[str]) -> list[object]:
    (found,) = evaluate(pa.table({"t": texts}), [engine.text(template)])
    return list(found.to_pylist())


@given(PARTS)
def test_a_text_is_the_interval_that_was_written(parts: tuple[int, int, int]) -> None:
    text = written(*parts)
    assert parsed(text) == parts
    assert interval_text(text) == text


@given(PARTS)
def test_the_engine_reads_and_writes_the_same_text(parts: tuple[int, int, int]) -> None:
    text = written(*parts)
    interval = interval_columns.read(exp.column("t"))
    assert of_engine(interval_columns.interval_text(interval), [text]) == [text]


@given(PARTS, PARTS)
def test_lengths_are_in_the_order_of_intervals(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    """The engine's own comparison has months of 30 days too."""
    found = of_engine(interval_columns.length(interval_columns.read(exp.column("t"))), [written(*one), written(*other)])
    months, days, micros = ([first - second] for first, second in zip(one, other, strict=True))
    difference = (months[0] * 30 + days[0]) * 24 * _HOUR + micros[0]
    first, second = (int(str(length)) for length in found)
    assert first - second == difference


@given(st.lists(PARTS.map(lambda parts: written(*parts)) | st.from_regex(r"[0-9:. daymons+-]{0,20}", fullmatch=True)))
def test_what_needs_no_closer_look_is_in_the_form(texts: list[str]) -> None:
    unclear = maybe_otherwise(pa.chunked_array([texts], pa.string())).to_pylist()
    for text, is_unclear in zip(texts, unclear, strict=True):
        assert is_unclear or interval_text(text) == text


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
        ("PT36H", "36:00:00"),
        ("P2W", "14 days"),
        ("@ 1 minute ago", "-00:01:00"),
        ("1.5 months", "1 mon 15 days"),
        ("- 1 year 2 hours", "-1 years +02:00:00"),
        ("90", "00:01:30"),
        ("14 months", "1 year 2 mons"),
    ],
)
def test_other_forms_are_read(text: str, form: str) -> None:
    assert interval_text(text) == form


@pytest.mark.parametrize("text", ["", "P", "PT", "P1", "P1H", "PT1D", "1 x", "ago", "1 day;", "3000000000 days", "1e5"])
def test_what_means_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        interval_text(text)


def test_an_interval_that_no_answer_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="2562048"):
        interval_text("2562048 hours")
