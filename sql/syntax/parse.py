"""From text to statements.

``parse`` cuts a script at ``;`` and reads each statement; comments and blank statements vanish. Every error is a
``SqlError`` with line, column and clause, the line quoted, and the nearest thing that works.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeVar

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.changelog.errors import SqlError, SyntaxFault, TextPlace
from dovetail.sql.syntax.bounds.hints import refuse_hints
from dovetail.sql.syntax.bounds.statement_bounds import expect_flat_comments, expect_short
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.faults import fault_at, unforeseen_as_errors
from dovetail.sql.syntax.grammar import commands, rows
from dovetail.sql.syntax.grammar.alter import alter, explain_alter
from dovetail.sql.syntax.grammar.create import create
from dovetail.sql.syntax.grammar.hints.other_statements import refuse_other, same_explain
from dovetail.sql.syntax.grammar.hints.trial import tried
from dovetail.sql.syntax.grammar.queries import select
from dovetail.sql.syntax.grammar.waits import wait_for
from dovetail.sql.syntax.masked import masked, masked_unread
from dovetail.sql.syntax.parameters.binding import bound
from dovetail.sql.syntax.parameters.bound_literals import Arguments
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import (
    CreateStream,
    CreateView,
    Explain,
    ExplainAlter,
    ExplainAnalyze,
    ExplainView,
    Select,
    Statement,
)

T = TypeVar("T", bound=Statement)


def parse(text: str, rules: Rules = Rules.TIMEPLUS, arguments: Arguments | None = None) -> list[Statement]:
    """The statements of a script, in order, with the values of their parameters (``sql.syntax.parameters.binding``).

    Raises SqlError for the first that is none.
    """
    with unforeseen_as_errors("reading it"):
        try:
            return bound(text, _statements(text, rules), arguments, rules)
        except SyntaxFault as slip:
            raise tried(text, slip, partial(_statements, rules=rules)) from None


def mended(slip: SyntaxFault, rules: Rules) -> SyntaxFault:
    """``slip``, in a query that one dialect cannot read, with what helps."""

    def read(text: str) -> None:
        for statement in _statements(text, rules):
            if isinstance(statement, Select | CreateView) and statement.readings is not None:
                statement.readings.of(rules)

    return tried(slip.where.script, slip, read) if isinstance(slip.where, TextPlace) else slip


def _statements(text: str, rules: Rules) -> list[Statement]:
    return [_statement(text, tokens, rules) for tokens in _split(text)]


def parse_one(text: str, rules: Rules = Rules.TIMEPLUS, arguments: Arguments | None = None) -> Statement:
    """The one statement of ``text``; its expressions, as far as they are no query's, by ``rules``."""
    statements = parse(text, rules, arguments)
    if len(statements) != 1:
        raise SyntaxFault(f"one statement is expected here, not {len(statements)}")
    return statements[0]


def as_shown(text: str, rules: Rules = Rules.TIMEPLUS) -> str:
    """Statements as they may be shown: without passwords, and as they stand in all else."""
    try:
        cursors = [Cursor(text, tokens, rules=rules) for tokens in _split(text)]
        for cursor in cursors:
            _read(cursor)
    except (SqlError, RecursionError):
        return masked_unread(text)
    return masked(text, [one for cursor in cursors for one in cursor.settings])


def complete(text: str) -> bool:
    """Whether ``text`` ends with a ``;`` that is in no string and no comment: a console reads on until it is."""
    try:
        tokens = Dovetail().tokenize(text)
    except TokenError:
        return False
    return bool(tokens) and tokens[-1].token_type == TokenType.SEMICOLON


def awaited(text: str, rules: Rules = Rules.TIMEPLUS) -> list[str]:
    """The words that the last statement of ``text`` may go on with, as far as its grammar looks for them."""
    try:
        tokens = _tokens(text)
    except SqlError:
        return []
    ends = [index for index, token in enumerate(tokens) if token.token_type == TokenType.SEMICOLON]
    cursor = Cursor(text, tokens[ends[-1] + 1 :] if ends else tokens, rules=rules)
    with suppress(SqlError, RecursionError):
        _read(cursor)
    return [phrase for phrase in cursor.awaited if phrase.replace(" ", "").isalpha() and phrase.isupper()]


class ScriptPart(NamedTuple):
    """Where a statement of a script begins and ends, and where the next one may begin."""

    start: int
    end: int
    after: int


def pieces(text: str) -> list[ScriptPart]:
    """The statements of a script, whatever is in them; behind a quote that is never closed everything is one."""
    tokens, closed = _read_tokens(text)
    found: list[ScriptPart] = []
    start = end = 0
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            start, end = start if end else token.start, token.end + 1
        else:
            found += [ScriptPart(start, end, token.end + 1)] if end else []
            start, end = token.end + 1, 0
    if not closed:
        start, end = start if end else len(text) - len(text[start:].lstrip()), len(text)
    return [*found, ScriptPart(start, end, len(text) + 1)] if end else found


def _read_tokens(text: str) -> tuple[list[Token], bool]:
    """The tokens of ``text``, up to a quote or comment that is never closed; whether there is none."""
    tokenizer = Dovetail().tokenizer()
    try:
        return tokenizer.tokenize(text), True
    except TokenError:
        return tokenizer.tokens, False


def _split(text: str) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    expect_flat_comments(text)
    tokens = _tokens(text)
    refuse_hints(text, tokens)
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [tokens for tokens in statements if tokens]


def _tokens(text: str) -> list[Token]:
    try:
        return Dovetail().tokenize(text)
    except TokenError:
        place = _unclosed(text)
        if re.match(r"\$\d", text[place:]) is not None:
            what, fix = "a parameter has no number here", "? in its place, in the order of the values; or :name"
        else:
            what, fix = (
                "a quote or a comment that is opened here is never closed",
                "close it; a quote in a text is written ''",
            )
        raise fault_at(text, place, what, fix=fix) from None


def _unclosed(text: str) -> int:
    """Where the quote or comment begins that never ends: text before it can be read, text after it cannot."""
    tokens, _ = _read_tokens(text)
    start = tokens[-1].end + 1 if tokens else 0
    good, bad = start, len(text)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if readable(text[start:middle]) else (good, middle)
    return good


def readable(text: str) -> bool:
    """Whether every quote and comment in it is closed."""
    try:
        Dovetail().tokenize(text)
    except TokenError:
        return False
    return True


def _statement(script: str, tokens: list[Token], rules: Rules) -> Statement:
    expect_short(script, tokens)
    cursor = Cursor(script, tokens, rules=rules)
    statement = _read(cursor)
    cursor.end()
    return _with_text(statement, cursor, tokens[0].start)


def _with_text(statement: T, cursor: Cursor, start: int) -> T:
    """``statement`` with its text, which begins at ``start``, and what its parts have of that."""
    text = cursor.script[start : cursor.tokens[-1].end + 1]
    if not isinstance(statement, CreateStream | CreateView):
        return dataclasses.replace(statement, text=text)
    parts = cursor.elements if isinstance(statement, CreateStream) else cursor.settings
    return dataclasses.replace(statement, text=text, spans=tuple(part.moved(-start) for part in parts))


def _read(cursor: Cursor) -> Statement:
    reader = _READERS.get(cursor.word())
    if cursor.done:
        cursor.awaited.update(dict.fromkeys(STATEMENTS))
    elif reader is None:
        refuse_other(cursor)
    if reader is None:
        cursor.fail(
            f"no statement begins with {cursor.found}",
            fix=f"statements begin with {', '.join(STATEMENTS)}",
            guesses=cursor.guesses(STATEMENTS),
        )
    return reader(cursor)


def _is_named(cursor: Cursor) -> bool:
    """Whether a view is named here, and nothing else stands: more words are a statement, or meant to be one."""
    if cursor.done or cursor.word() in _READERS:
        return False
    alone = len(cursor.tokens) == cursor.index + 1
    return alone or cursor.word(1) == "." or bool(cursor.at("MATERIALIZED VIEW", "VIEW"))


def _explain(cursor: Cursor) -> Explain | ExplainAlter | ExplainAnalyze | ExplainView:
    cursor.clause = "EXPLAIN"
    cursor.expect("EXPLAIN")
    same_explain(cursor)
    if cursor.at("ANALYZE"):
        return commands.explain_analyze(cursor)
    if cursor.at("ALTER"):
        return ExplainAlter(explain_alter(cursor))
    if _is_named(cursor):
        if len(cursor.tokens) > cursor.index + 1:
            cursor.accept("MATERIALIZED VIEW", "VIEW")
        return ExplainView(cursor.path("SELECT, CREATE or the name of a view"))
    offset = cursor.offset
    statement = _read(cursor)
    if not isinstance(statement, Select | CreateView):
        cursor.fail(
            "EXPLAIN shows the plan of a query",
            fix="EXPLAIN SELECT .., EXPLAIN CREATE MATERIALIZED VIEW .., EXPLAIN v",
            offset=offset,
        )
    return Explain(_with_text(statement, cursor, offset))


_READERS: Mapping[str, Callable[[Cursor], Statement]] = {
    "SELECT": select,
    "WITH": select,
    "VALUES": select,
    "(": select,
    "CREATE": create,
    "ALTER": alter,
    "INSERT": rows.insert,
    "UPDATE": rows.update,
    "DELETE": rows.delete,
    "SHOW": commands.show,
    "LIST": commands.show,
    "DESCRIBE": commands.describe,
    "DESC": commands.describe,
    "DROP": commands.drop,
    "EXPLAIN": _explain,
    "PRINT": commands.print_topic,
    "PAUSE": commands.pause,
    "RESUME": commands.resume,
    "TERMINATE": commands.terminate,
    "KILL": commands.terminate,
    "CANCEL": commands.terminate,
    "REPLAY": commands.replay,
    "BACKUP": commands.backup,
    "RESTORE": commands.restore,
    "SYSTEM": commands.system,
    "WHY": commands.why,
    "WAIT": wait_for,
}
STATEMENTS = tuple(word for word in _READERS if word.isalpha())
"""The words that a statement can begin with."""
