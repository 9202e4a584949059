"""CREATE FUNCTION in both dialects, and what is said of one that cannot be read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.changelog.errors import SqlError, SyntaxFault, UnknownName, Unsupported
from dovetail.sql.syntax.parse import complete, parse, parse_one
from dovetail.sql.syntax.statements import CreateFunction, Drop, Show, ShowCreate
from dovetail.sql.syntax.types import INSTANT, LOCAL

BODY = "AS $$\ndef f(a, b):\n    return a  # it's; $1\n$$"


def function(text: str) -> CreateFunction:
    statement = parse_one(text)
    assert isinstance(statement, CreateFunction)
    assert statement.text == text
    return statement


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE FUNCTION f(a int, b string) RETURNS int64 LANGUAGE PYTHON {BODY}",
        f"CREATE FUNCTION F(a integer, b varchar) RETURNS bigint LANGUAGE python IMMUTABLE {BODY}",
        f"create function f(int, text) returns int64 {BODY} language python called on null input",
    ],
)
def test_both_dialects_say_the_same(text: str) -> None:
    found = function(text)
    assert (found.name, [kind for _, kind in found.arguments]) == ("f", [pa.int32(), pa.string()])
    assert (found.returns, found.volatile, found.or_replace) == (pa.int64(), False, False)
    assert found.body == "\ndef f(a, b):\n    return a  # it's; $1\n"


def test_names_of_arguments_types_and_options() -> None:
    text = (
        "CREATE OR REPLACE FUNCTION f(date date, a array(int64), timestamptz, x timestamp without time zone) "
        "RETURNS decimal(10, 2) VOLATILE LANGUAGE python AS 'def f(*columns): return columns[0]'"
    )
    found = function(text)
    assert found.arguments == (("date", pa.date32()), ("a", pa.list_(pa.int64())), ("", INSTANT), ("x", LOCAL))
    assert (found.returns, found.volatile, found.or_replace) == (pa.decimal128(10, 2), True, True)


def test_a_body_that_is_indented_as_a_whole() -> None:
    assert function("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS $$\n  def f(a):\n    return a\n$$").body


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("CREATE FUNCTION f() RETURNS int LANGUAGE python AS $$def f(): pass$$", SqlError, "how many rows"),
        ("CREATE FUNCTION f(a int) RETURNS int AS $$def f(a): pass$$", SyntaxFault, "language"),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python", SyntaxFault, "no body"),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE javascript AS $$x$$", Unsupported, "javascript"),
        ("CREATE FUNCTION f(a int8) RETURNS int LANGUAGE python AS $$def f(a): pass$$", Unsupported, "int8"),
        ("CREATE FUNCTION f(float) RETURNS int LANGUAGE python AS $$def f(a): pass$$", Unsupported, "float"),
        ("CREATE FUNCTION f(a array(timestamp)) RETURNS int LANGUAGE python AS $$def f(a): pass$$", Unsupported, "tim"),
        ("CREATE FUNCTION f(a map(int, int)) RETURNS int LANGUAGE python AS $$def f(a): pass$$", Unsupported, "map"),
        ("CREATE FUNCTION f(a nothing) RETURNS int LANGUAGE python AS $$def f(a): pass$$", UnknownName, "nothing"),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS $$\ndef f(a) return a$$", SyntaxFault, "line 2"),
        (
            "CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS $$def g(a): pass$$",
            SyntaxFault,
            "does not define f",
        ),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS $$def f(a, b): pass$$", SyntaxFault, "1 argument,"),
        (
            "CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS $$def f(a, *, b): pass$$",
            SyntaxFault,
            "takes others",
        ),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS x", SyntaxFault, "between $$ and $$"),
        ("CREATE AGGREGATE f(a int) RETURNS int LANGUAGE python AS $$x$$", Unsupported, "AGGREGATE"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, kind: type[SqlError], said: str) -> None:
    with pytest.raises(kind) as refused:
        parse_one(text)
    assert said in refused.value.what


def test_the_other_statements() -> None:
    going = "DROP FUNCTION IF EXISTS F(int, x string) CASCADE"
    assert parse(f"{going}; SHOW FUNCTIONS LIKE 'a%'; SHOW CREATE FUNCTION F; DROP FUNCTION f") == [
        Drop("function", "f", if_exists=True, cascade=True, text=going),
        Show("functions", "a%", text="SHOW FUNCTIONS LIKE 'a%'"),
        ShowCreate("f", text="SHOW CREATE FUNCTION F"),
        Drop("function", "f", text="DROP FUNCTION f"),
    ]


def test_a_console_reads_on_until_the_body_ends() -> None:
    lines = f"CREATE FUNCTION f(a int, b int) RETURNS int LANGUAGE python {BODY};".split("\n")
    typed = ["\n".join(lines[:count]) for count in range(1, len(lines) + 1)]
    assert [complete(text) for text in typed] == [False] * (len(lines) - 1) + [True]
    assert not complete("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS $$ a = 1;")
