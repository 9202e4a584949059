"""CREATE FUNCTION: a scalar function in Python.

``CREATE [OR REPLACE] FUNCTION f(a int, b string) RETURNS int [LANGUAGE python] [IMMUTABLE | VOLATILE] AS $$ .. $$``.
The parts after RETURNS stand in any order, as PostgreSQL has it; arguments need no names, as RisingWave writes them.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from dovetail.changelog.errors import SqlError, SyntaxFault, Unsupported
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateFunction
from dovetail.sql.syntax.type_names import TypeName, type_name
from dovetail.sql.syntax.types import arrow_type

_OF_TWO_MEANINGS = {
    "int8": "tinyint for one byte, bigint for eight",
    "float": "real for four bytes, double for eight",
    "timestamp": "timestamptz for an instant, timestamp without time zone for a time of day and year",
}
"""Types that are one thing under Timeplus' rules and another under RisingWave's; a function is for both."""


def create_function(cursor: Cursor, or_replace: bool) -> CreateFunction:
    """What follows CREATE FUNCTION."""
    cursor.clause = "CREATE FUNCTION"
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    start = cursor.offset
    name = cursor.path("the name of a function").lower()
    arguments = function_arguments(cursor)
    if not arguments:
        cursor.fail("a function of no columns does not know how many rows there are", fix=f"{name}(x int)")
    cursor.expect("RETURNS")
    returns = _type(cursor)
    said = _Said()
    while not cursor.done:
        _part(cursor, said)
    if not said.language:
        cursor.fail("the language of the function is not said", fix="LANGUAGE python", kind=SyntaxFault, offset=start)
    if said.body is None:
        cursor.fail("the function has no body", fix=f"AS $$ def {name}(x): .. $$", kind=SyntaxFault, offset=start)
    _expect_definition(cursor, name, len(arguments), said)
    return CreateFunction(
        name, arguments, returns, said.body, said.volatile, if_not_exists=if_not_exists, or_replace=or_replace
    )


def function_arguments(cursor: Cursor) -> tuple[tuple[str, pa.DataType], ...]:
    """``(a int, b array(string))``, or the types alone."""
    cursor.expect("(")
    if cursor.accept(")"):
        return ()
    arguments = cursor.listed(lambda: _argument(cursor))
    cursor.expect(")")
    return arguments


def _argument(cursor: Cursor) -> tuple[str, pa.DataType]:
    start = cursor.index
    try:
        kind = _type(cursor)
        if cursor.at(",", ")"):
            return "", kind
    except SqlError:
        # It is no type, or one that is known by another name in each dialect: as the name of an argument it may stand.
        if cursor.tokens[start + 1 : start + 2] and cursor.tokens[start + 1].text in (",", ")"):
            raise
    cursor.index = start
    return cursor.name("the name of an argument"), _type(cursor)


def _type(cursor: Cursor) -> pa.DataType:
    written = type_name(cursor)
    _refuse_two_meanings(cursor, written)
    kind = arrow_type(cursor, written, Rules.TIMEPLUS)
    inner = kind
    while pa.types.is_list(inner):
        inner = inner.value_type
    if pa.types.is_nested(inner):
        cursor.fail(
            f"a function takes and gives plain values and arrays of them, and no {written.name}",
            fix="a column for each part, or JSON as a string",
            kind=Unsupported,
            offset=written.offset,
        )
    return kind


def _refuse_two_meanings(cursor: Cursor, written: TypeName) -> None:
    if written.name in _OF_TWO_MEANINGS:
        cursor.fail(
            f"{written.name} is one thing in Timeplus and another in RisingWave, and a function is for both",
            fix=_OF_TWO_MEANINGS[written.name],
            kind=Unsupported,
            offset=written.offset,
        )
    for _, member in written.members:
        _refuse_two_meanings(cursor, member)


@dataclass
class _Said:
    """What is said of a function after its type; ``at`` is the place of its body."""

    language: str = ""
    body: str | None = None
    volatile: bool = False
    at: int = 0


def _part(cursor: Cursor, said: _Said) -> None:
    if cursor.accept("LANGUAGE"):
        start = cursor.offset
        said.language = cursor.name("a language").lower()
        if said.language not in ("python", "plpython3u"):
            cursor.fail(
                f"functions in {said.language} are not taken", fix="LANGUAGE python", kind=Unsupported, offset=start
            )
    elif cursor.accept("AS"):
        said.at = cursor.offset
        said.body = textwrap.dedent(_body(cursor))
    elif cursor.accept("CALLED ON NULL INPUT"):
        pass
    else:
        said.volatile = cursor.expect("LANGUAGE", "AS", "IMMUTABLE", "VOLATILE", "CALLED ON NULL INPUT") == "VOLATILE"


def _body(cursor: Cursor) -> str:
    token = cursor.current
    if token is None or token.token_type not in (TokenType.HEREDOC_STRING, TokenType.STRING):
        cursor.fail(f"expected the body of the function between $$ and $$, found {cursor.found}")
    return str(cursor.advance().text)


def _expect_definition(cursor: Cursor, name: str, arguments: int, said: _Said) -> None:
    """Raises SyntaxFault where the body is no Python, or defines no such function."""
    try:
        tree = ast.parse(said.body or "")
    except SyntaxError as slip:
        cursor.fail(
            f"line {slip.lineno} of the body is no Python: {slip.msg}: {(slip.text or '').strip()}", offset=said.at
        )
    defined = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    found = next((one for one in reversed(defined) if one.name.lower() == name), None)
    if found is None:
        cursor.fail(f"the body does not define {name}", fix=f"def {name}(..):", offset=said.at)
    if not _takes(found.args, arguments):
        cursor.fail(
            f"{found.name} is declared with {arguments} argument{'s' * (arguments > 1)}, and its def takes others",
            fix=f"def {found.name}({', '.join(f'column{place}' for place in range(1, arguments + 1))}):",
            offset=said.at,
        )


def _takes(written: ast.arguments, count: int) -> bool:
    """Whether a def can be called with so many arguments."""
    places = len(written.posonlyargs) + len(written.args)
    named = [default is None for default in written.kw_defaults]
    return (
        places - len(written.defaults) <= count and (count <= places or written.vararg is not None) and not any(named)
    )
