"""Queries: the forms that ClickHouse's dialect lacks."""

from decimal import Decimal

import pytest
from sqlglot import exp

from dovetail.changelog.errors import SqlError, SyntaxFault, Unsupported
from dovetail.sql.syntax.intervals import milliseconds
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import Select


def query(text: str) -> exp.Select:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    assert isinstance(statement.query, exp.Select)
    return statement.query


def join(words: str, rest: str = "r ON l.k = r.k") -> exp.Join:
    (found,) = query(f"SELECT * FROM l {words} {rest}").args["joins"]
    assert isinstance(found, exp.Join)
    return found


@pytest.mark.parametrize(
    ("words", "method", "side", "kind"),
    [
        ("JOIN", "", "", ""),
        ("INNER JOIN", "", "", "INNER"),
        ("ALL INNER JOIN", "", "", "INNER"),
        ("left outer join", "", "LEFT", "OUTER"),
        ("FULL JOIN", "", "FULL", ""),
        ("LATEST JOIN", "LATEST", "", ""),
        ("INNER LATEST JOIN", "LATEST", "", "INNER"),
        ("LEFT LATEST JOIN", "LATEST", "LEFT", ""),
        ("ASOF LATEST JOIN", "LATEST", "", ""),
        ("LEFT ASOF LATEST JOIN", "LATEST", "LEFT", ""),
        ("ASOF JOIN", "ASOF", "", ""),
        ("ASOF LEFT JOIN", "ASOF", "LEFT", ""),
        ("LEFT ASOF JOIN", "ASOF", "LEFT", ""),
        ("LEFT ANTI JOIN", "", "LEFT", "ANTI"),
        ("LEFT SEMI JOIN", "", "LEFT", "SEMI"),
        ("CROSS JOIN", "", "", "CROSS"),
        ("ANY LEFT JOIN", "ANY", "LEFT", ""),
    ],
)
def test_a_join_has_one_form_whatever_the_order_of_its_words(words: str, method: str, side: str, kind: str) -> None:
    found = join(words)
    assert (found.method, found.side, found.kind) == (method, side, kind)
    assert query(f"SELECT * FROM l {words} r ON l.k = r.k").args["from_"].this.alias == ""


def test_join_words_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(SyntaxFault, match="LEFT and RIGHT"):
        join("LEFT RIGHT JOIN")


@pytest.mark.parametrize(
    ("words", "side"), [("ARRAY JOIN", ""), ("INNER ARRAY JOIN", ""), ("LEFT ARRAY JOIN", "LEFT"), ("array join", "")]
)
def test_array_joins_have_their_arrays(words: str, side: str) -> None:
    joins = query(f"SELECT * FROM l {words} a, f(',', b) AS x, [1] y LATEST JOIN r ON r.k = x").args["joins"]
    assert [(one.method, one.side, one.kind) for one in joins] == [("", side, "ARRAY"), ("LATEST", "", "")]
    arrays = (joins[0].this, *joins[0].expressions)
    assert [(type(one.unalias()), one.alias) for one in arrays] == [
        (exp.Column, ""), (exp.Anonymous, "x"), (exp.Array, "y")
    ]  # fmt: skip
    assert query(f"SELECT * FROM l {words} a").args["from_"].this.alias == ""


@pytest.mark.parametrize("words", ["RIGHT ARRAY", "FULL ARRAY", "ASOF ARRAY", "ANY ARRAY", "ARRAY LEFT", "ARRAY ARRAY"])
def test_other_words_do_not_stand_before_array_join(words: str) -> None:
    with pytest.raises(SyntaxFault, match=f"there is no {words} JOIN"):
        query(f"SELECT * FROM l {words} JOIN a")


def test_array_is_a_name_where_no_join_follows() -> None:
    found = query("SELECT array.k FROM array AS array JOIN array ON true WHERE array.array = 1")
    assert [table.name for table in found.find_all(exp.Table)] == ["array", "array"]
    assert found.args["joins"][0].kind == ""


def test_a_join_word_can_be_a_name_elsewhere() -> None:
    found = query("SELECT latest.asof AS any FROM t AS latest WHERE latest.k = 1")
    assert found.args["from_"].this.alias == "latest"


def test_natural_and_using() -> None:
    natural = join("NATURAL FULL OUTER JOIN", "r")
    assert (natural.method, natural.side, natural.kind) == ("NATURAL", "FULL", "OUTER")
    assert [name.name for name in join("JOIN", "r USING (k, m)").args["using"]] == ["k", "m"]


def test_using_takes_bare_names() -> None:
    with pytest.raises(SqlError, match=r"USING takes bare column names, not l\.k"):
        join("JOIN", "r USING (l.k)")


@pytest.mark.parametrize(
    "table", ["host FOR SYSTEM_TIME AS OF PROCTIME() AS h", "host AS h FOR SYSTEM_TIME AS OF PROCTIME()"]
)
def test_system_time_stands_before_or_after_the_alias(table: str) -> None:
    found = join("LEFT JOIN", f"{table} ON l.k = h.k").this
    assert found.alias == "h"
    assert found.args["version"].expression.name == "PROCTIME"


def test_system_time_of_an_event_time_column() -> None:
    version = join("JOIN", "fx FOR SYSTEM_TIME AS OF l.at AS f ON l.k = f.k").this.args["version"]
    assert version.expression.sql() == "l.at"


@pytest.mark.parametrize(
    ("written", "expected_ms"),
    [
        ("10s", 10_000),
        ("2m", 120_000),
        ("1h", 3_600_000),
        ("250ms", 250),
        ("3d", 259_200_000),
        ("INTERVAL '5 SECONDS'", 5_000),
        ("INTERVAL '20' SECOND", 20_000),
        ("interval 5 minute", 300_000),
        ("INTERVAL '1 minute'", 60_000),
        ("INTERVAL '1.5' SECOND", 1_500),
        ("-(30s)", -30_000),
    ],
)
def test_lengths_of_time(written: str, expected_ms: int) -> None:
    (length,) = query(f"SELECT date_diff_within({written}) FROM t").find(exp.Anonymous).expressions  # type: ignore[union-attr]
    assert milliseconds(length) == Decimal(expected_ms)


@pytest.mark.parametrize("written", ["1M", "INTERVAL '1 month'", "7", "x"])
def test_what_has_no_fixed_length_is_none(written: str) -> None:
    (length,) = query(f"SELECT f({written}) FROM t").find(exp.Anonymous).expressions  # type: ignore[union-attr]
    assert milliseconds(length) is None


def test_star_except_table_function_and_null_safe_equality() -> None:
    found = query("SELECT * except(a, b), _tp_delta FROM table(x) AS t JOIN changelog(y, k) AS c ON t.k <=> c.k")
    star, delta = found.expressions
    assert [column.name for column in star.args["except_"]] == ["a", "b"]
    assert delta.name == "_tp_delta"
    assert found.args["from_"].this.this.name == "table"
    assert [argument.name for argument in found.args["joins"][0].this.this.expressions] == ["y", "k"]
    assert isinstance(found.args["joins"][0].args["on"], exp.NullSafeEQ)
    assert isinstance(join("JOIN", "r ON l.k IS NOT DISTINCT FROM r.k").args["on"], exp.NullSafeEQ)


@pytest.mark.parametrize("word", ["ALTER TABLE t", "PRAGMA x", "ATTACH DATABASE d", "OPTIMIZE TABLE x", "SET a = 1"])
def test_what_is_no_statement_is_never_taken_for_one(word: str) -> None:
    with pytest.raises((SyntaxFault, Unsupported), match=word.partition(" ")[0]):
        parse_one(word)


def test_nothing_is_parsed_as_an_opaque_command() -> None:
    with pytest.raises(SyntaxFault):
        parse_one("WITH x AS (ANALYZE TABLE t) SELECT * FROM x")
    with pytest.raises(SyntaxFault):
        parse_one("CREATE MATERIALIZED VIEW v AS SHOW TABLES")
