"""What the reader of RisingWave's dialect makes of expressions: nothing written is lost."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from dovetail.sql.syntax.dialect import QueryFault
from dovetail.sql.syntax.risingwave import RisingWaveQueries


def read(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read=RisingWaveQueries)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"'a\b'", "a\\b"),
        (r"'\d+'", r"\d+"),
        ("'it''s'", "it's"),
        (r"E'a\nb\'c'", "a\nb'c"),
        (r"E'\u00e9\x41\\'", "éA\\"),
        ("$$a'b$$", "a'b"),
        ("$tag$a$$b$tag$", "a$$b"),
    ],
)
def test_texts(written: str, meant: str) -> None:
    tree = read(written)
    assert isinstance(tree, exp.Literal)
    assert (tree.is_string, tree.this) == (True, meant)


@pytest.mark.parametrize("name", ["left", "length", "now", "log", "mod", "to_char", "unnest", "date_part", "coalesce"])
def test_calls_stay_as_they_are_written(name: str) -> None:
    tree = read(f"{name}(a, b)")
    assert isinstance(tree, exp.Anonymous)
    assert (tree.this, len(tree.expressions)) == (name, 2)


@pytest.mark.parametrize(
    ("written", "text", "unit"),
    [
        ("INTERVAL '1 day 02:30:00'", "1 day 02:30:00", None),
        ("INTERVAL '3' HOUR", "3", "HOUR"),
        ("INTERVAL '2 hours'", "2 hours", None),
        ("10s", "10", "SECOND"),
    ],
)
def test_intervals_stay_whole(written: str, text: str, unit: str | None) -> None:
    tree = read(written)
    assert isinstance(tree, exp.Interval)
    assert tree.this.this == text
    assert (tree.unit.name if tree.unit else None) == unit


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("a ~ 'x'", exp.RegexpLike), ("a ~* 'x'", exp.RegexpILike), ("a !~ 'x'", exp.Not), ("a ^ 2", exp.Pow),
        ("a # 2", exp.BitwiseXor), ("a @> b", exp.ArrayContainsAll), ("a <@ b", exp.ArrayContainedBy),
        ("a ? 'x'", exp.JSONBContains), ("a -> 'x'", exp.JSONExtract), ("a ->> 'x'", exp.JSONExtractScalar),
        ("a #> '{x}'", exp.JSONBExtract), ("a #>> '{x}'", exp.JSONBExtractScalar), ("a && b", exp.ArrayOverlaps),
        ("a SIMILAR TO 'x'", exp.SimilarTo), ("a LIKE 'x' ESCAPE '!'", exp.Escape), ("a = ANY(ARRAY[1])", exp.EQ),
        ("a IS DISTINCT FROM b", exp.NullSafeNEQ), ("a IS NOT DISTINCT FROM b", exp.NullSafeEQ),
        ("EXTRACT(hour FROM t)", exp.Extract), ("SUBSTRING(a FROM 1 FOR 2)", exp.Substring),
        ("POSITION('a' IN b)", exp.StrPosition), ("OVERLAY(a PLACING b FROM 1)", exp.Overlay),
        ("TRIM(LEADING 'x' FROM a)", exp.Trim), ("t AT TIME ZONE 'UTC'", exp.AtTimeZone), ("(x).f", exp.Dot),
        ("'1 hour'::interval", exp.Cast), ("count(*) FILTER (WHERE a)", exp.Filter), ("|/ 4", exp.Sqrt),
    ],
)  # fmt: skip
def test_operators_and_calls_with_words(written: str, kind: type[exp.Expr]) -> None:
    assert type(read(written)) is kind


def test_positions_stay_as_they_are_written() -> None:
    assert read("a[1]").expressions[0].this == "1"
    part = read("a[2:3]").expressions[0]
    assert (part.this.this, part.expression.this) == ("2", "3")


def test_a_path_stays_a_text() -> None:
    tree = read("a -> 'x' ->> 0 || 'y'")
    assert tree.sql(dialect="duckdb").count("JSONPath") == 0
    assert isinstance(tree.find(exp.JSONExtract).expression, exp.Literal)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("written", "method", "side", "kind"),
    [
        ("a ASOF LEFT JOIN b ON a.k = b.k", "ASOF", "LEFT", ""),
        ("a LEFT ASOF JOIN b ON a.k = b.k", "ASOF", "LEFT", ""),
        ("a LATEST JOIN b USING (k)", "LATEST", "", ""),
        ("a LEFT ANTI JOIN b USING (k)", "", "LEFT", "ANTI"),
    ],
)
def test_joins_have_the_form_of_the_other_dialect(written: str, method: str, side: str, kind: str) -> None:
    join = read(f"SELECT 1 FROM {written}").args["joins"][0]
    assert (join.method, join.side, join.kind) == (method, side, kind)


def test_time_travel_stands_before_or_after_the_alias() -> None:
    for written in ("b FOR SYSTEM_TIME AS OF PROCTIME() AS c", "b AS c FOR SYSTEM_TIME AS OF PROCTIME()"):
        table = read(f"SELECT 1 FROM a JOIN {written} ON a.k = c.k").args["joins"][0].this
        assert isinstance(table.args["version"], exp.Version)
        assert table.alias == "c"


@pytest.mark.parametrize("written", ["SELECT 1 FROM a JOIN b USING (a.k)", "1 +", "f(", "a AND"])
def test_what_is_no_query_is_refused(written: str) -> None:
    with pytest.raises(QueryFault):
        read(written)
