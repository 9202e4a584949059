"""How long a statement may be, and how deeply nested, before it is read."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.faults import fault_at

MOST_TEXT = 256 << 10
"""Characters of a statement."""
MOST_TEXT_OF_ROWS = 1 << 20
"""Those of an INSERT, whose text is mostly values."""
MOST_TOKENS = 50_000
"""Words and signs of a statement that is no INSERT."""
MOST_BRACKETS = 200
"""Brackets within brackets."""
LONGEST_NUMBER = 1_000
"""Characters of a number: none of any type has so many."""
MOST_COMMENTS = 100
"""Comments within comments."""

_NUMBERS = (TokenType.NUMBER, TokenType.HEX_STRING, TokenType.BIT_STRING)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def expect_short(script: str, tokens: Sequence[Token]) -> None:
    """Raises SqlError for a statement of ``script`` that is too long, or nested too deeply."""
    first, last = tokens[0], tokens[-1]
    inserts = first.text.upper() == "INSERT"
    most = MOST_TEXT_OF_ROWS if inserts else MOST_TEXT
    if last.end + 1 - first.start > most:
        raise _too_much(
            script, first, f"the statement has {last.end + 1 - first.start} characters, and no more than {most}"
        )
    if len(tokens) > MOST_TOKENS and not inserts:
        raise _too_much(
            script, first, f"the statement has {len(tokens)} words and signs, and no more than {MOST_TOKENS}"
        )
    depth = 0
    for token in tokens:
        if token.token_type in _NUMBERS and token.end - token.start >= LONGEST_NUMBER:
            what = f"a number has more than {LONGEST_NUMBER} characters"
            raise fault_at(script, token.start, what, fix="write it as a text, if it is no number", kind=SqlError)
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > MOST_BRACKETS:
            raise _too_much(
                script,
                token,
                f"the statement is nested too deeply: more than {MOST_BRACKETS} brackets within each other",
            )


def expect_flat_comments(script: str) -> None:
    """Raises SqlError where comments stand in comments more than ``MOST_COMMENTS`` deep."""
    depth = at = 0
    while depth <= MOST_COMMENTS:
        opened, closed = script.find("/*", at), script.find("*/", at)
        if opened < 0:
            return
        inner = closed < 0 or opened < closed
        depth = depth + 1 if inner else max(depth - 1, 0)
        at = (opened if inner else closed) + 2
    what = f"more than {MOST_COMMENTS} comments within each other"
    raise fault_at(script, at - 2, what, fix="close them", kind=SqlError)


def _too_much(script: str, token: Token, what: str) -> SqlError:
    fix = "write less: rows belong into a stream, FROM table(x), and long scripts into several statements"
    return fault_at(script, token.start, what, fix=fix, kind=SqlError)
