"""A query inside a statement: SELECT or WITH .. SELECT, then EMIT and SETTINGS in either order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NoReturn

from sqlglot import Dialect, exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.changelog.errors import SqlError
from dovetail.changelog.suggest import Guess, ranked
from dovetail.sql.syntax.cursor import Cursor, is_name
from dovetail.sql.syntax.dialect import Dovetail, QueryFault, keep_spelling
from dovetail.sql.syntax.faults import SCRIPT, fault_at
from dovetail.sql.syntax.grammar.emit import at_emit, emit_clause, emit_within
from dovetail.sql.syntax.grammar.gaps import check_gaps, check_parts
from dovetail.sql.syntax.grammar.hints.pasted_selects import refuse_foreign, same_windows
from dovetail.sql.syntax.grammar.query_clauses import BEGINNINGS, clause_of
from dovetail.sql.syntax.grammar.settings import at_settings, settings_clause
from dovetail.sql.syntax.risingwave import RisingWaveQueries
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Emit, OnDemand, Readings, Select, Settings

READERS: Mapping[Rules, Dialect] = {Rules.TIMEPLUS: Dovetail(), Rules.RISINGWAVE: RisingWaveQueries()}
"""What reads a query, by whose meaning its expressions have."""

_OF_PARAMETERS = ("?", ":")
WORDS = (
    *sorted(BEGINNINGS),
    *("LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "NATURAL", "ASOF", "LATEST", "ANTI", "SEMI"),
    *(
        "EMIT",
        "SETTINGS",
        "AND",
        "BETWEEN",
        "DISTINCT",
        "EXCEPT",
        "INTERVAL",
        "DESC",
        "LIKE",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
    ),
)
"""The words of a query, to be offered for one that is like them."""


@dataclass(frozen=True)
class Tail:
    """What follows a query."""

    emit: Emit | None
    settings: Settings


def select(cursor: Cursor) -> Select:
    """A whole SELECT statement, to the end of the cursor."""
    readings, tail = query_with_tail(cursor)
    return Select(first_of(readings), tail.emit, tail.settings, readings=readings)


def first_of(readings: Readings) -> exp.Query:
    """The query of the first dialect that can read it. Raises what Timeplus says where none can."""
    found = next((query for query in readings.by_rules.values() if isinstance(query, exp.Query)), None)
    return found or readings.of(Rules.TIMEPLUS)


def query_with_tail(cursor: Cursor) -> tuple[Readings, Tail]:
    refuse_foreign(cursor)
    start = cursor.offset
    readings, emit = _query(cursor)
    end = cursor.offset
    settings: Settings = {}
    while not cursor.done:
        if emit is None and at_emit(cursor):
            emit = emit_clause(cursor)
        elif not settings and at_settings(cursor):
            settings = settings_clause(cursor)
        else:
            fix = _limited_first(cursor, start, end) if cursor.at("LIMIT") else ""
            cursor.fail(f"a query ends with EMIT and SETTINGS, once each, found {cursor.found}", fix=fix)
    return readings, Tail(emit, settings)


def _limited_first(cursor: Cursor, start: int, end: int) -> str:
    """The query between two places of the script with its LIMIT before EMIT, where ksqlDB has it last."""
    query, emit = cursor.script[start:end], cursor.script[end : cursor.offset]
    limit = cursor.script[cursor.offset : int(cursor.tokens[-1].end) + 1]
    return " ".join(f"{query} {limit} {emit}".split())


def _query(cursor: Cursor) -> tuple[Readings, Emit | None]:
    """The query up to its EMIT or SETTINGS clause outside of all brackets, and the EMIT within the brackets around it.

    A subquery hands on its changes as they come, whatever its own EMIT says of when.
    """
    tokens: list[Token] = []
    emit, depth, around = None, 0, 0
    while not cursor.done:
        if at_emit(cursor) and depth == 0 and emit is not None:
            cursor.fail("a query has one EMIT", fix="leave one of the two out")
        if depth == 0 and (at_emit(cursor) or at_settings(cursor)):
            break
        if at_emit(cursor):
            within = emit_within(cursor)
            emit = within if depth == around and _ends(cursor, depth) else emit
            continue
        depth += (cursor.word() == "(") - (cursor.word() == ")")
        tokens.append(cursor.advance())
        # So many brackets are open that have been since the first token.
        around = depth if len(tokens) == depth else min(around, depth)
    if not tokens:
        cursor.fail(f"expected SELECT or WITH, found {cursor.found}")
    readings = Readings(OnDemand(partial(_read, cursor.copy(), tokens)))
    first_of(readings)
    if any(token.text in _OF_PARAMETERS for token in tokens):
        # The places of parameters are those of both dialects.
        dict(readings.by_rules)
    return readings, emit


def _ends(cursor: Cursor, depth: int) -> bool:
    """Whether the query ends behind the brackets that are open."""
    return all(cursor.word(ahead) == ")" for ahead in range(depth)) and cursor.word(depth) in ("", "SETTINGS", "EMIT")


def _read(at: Cursor, tokens: list[Token], rules: Rules) -> exp.Query | SqlError:
    dialect, cursor = READERS[rules], at.copy()
    try:
        again = tokens if rules is Rules.TIMEPLUS else _tokens_again(cursor.script, tokens, dialect)
        parsed = expression(cursor, same_windows(again), "SELECT or WITH", dialect)
        if isinstance(parsed, exp.Values):
            parsed = _select_from(parsed)
        if not isinstance(parsed, exp.Query):
            cursor.fail("expected SELECT or WITH", offset=tokens[0].start)
        check_parts(cursor, parsed, tokens[0].start)
        keep_spelling(parsed, cursor.script)
        return parsed
    except SqlError as fault:
        return fault


def _select_from(values: exp.Values) -> exp.Select:
    """VALUES that stand alone, as the SELECT that they are, with the names that PostgreSQL gives to their columns."""
    query = exp.select("*")
    for clause in ("order", "limit", "offset"):
        query.set(clause, values.args.get(clause))
        values.set(clause, None)
    width = max(len(row.expressions) if isinstance(row, exp.Tuple) else 1 for row in values.expressions)
    names = [exp.to_identifier(f"column{place}") for place in range(1, width + 1)]
    values.set("alias", exp.TableAlias(this=exp.to_identifier("values", quoted=True), columns=names))
    return query.from_(values)


def readable_expression(cursor: Cursor, tokens: list[Token]) -> exp.Expr:
    """An expression in the dialect of the cursor, or in the other one where that cannot read it."""
    at, clause = cursor.index, cursor.clause
    try:
        return _expression_in(cursor, tokens, cursor.rules)
    except SqlError as fault:
        for rules in Rules:
            cursor.index, cursor.clause = at, clause
            try:
                return _expression_in(cursor, tokens, rules)
            except SqlError:
                continue
        raise fault from None


def _expression_in(cursor: Cursor, tokens: list[Token], rules: Rules) -> exp.Expr:
    dialect = READERS[rules]
    again = _tokens_again(cursor.script, tokens, dialect) if tokens and rules is not Rules.TIMEPLUS else tokens
    return expression(cursor, again, dialect=dialect)


def _tokens_again(script: str, tokens: list[Token], dialect: Dialect) -> list[Token]:
    """The text of ``tokens`` as another dialect cuts it, at the same places of the script; what was taken out from
    between them stays blank.
    """
    start, end = tokens[0].start, tokens[-1].end + 1
    text = list(script[start:end])
    for before, after in pairwise(tokens):
        if re.match(r"\s*EMIT\b", between := script[before.end + 1 : after.start], re.IGNORECASE):
            text[before.end + 1 - start : after.start - start] = " " * len(between)
    try:
        again = dialect.tokenize("".join(text))
    except TokenError:
        what = "a quote or a comment here is never closed for tables"
        raise fault_at(script, start, what, fix="close it; a quote in a text is written ''") from None
    return [_moved(token, start) for token in again]


def _moved(token: Token, by: int) -> Token:
    """A token so many characters further on; its line and column, which nothing reads, stay."""
    start, end = token.start + by, token.end + by
    return Token(token.token_type, token.text, token.line, token.col, start, end, token.comments)


def expression(
    cursor: Cursor, tokens: list[Token], expected: str = "an expression", dialect: Dialect | None = None
) -> exp.Expr:
    """What ``tokens`` of the cursor's statement say, as sqlglot reads it; its errors are told as ours."""
    if not tokens:
        cursor.fail(f"expected {expected}, found {cursor.found}")
    cursor.clause = clause_of(tokens, tokens[0])
    check_gaps(cursor, tokens)
    try:
        parsed = (dialect or READERS[Rules.TIMEPLUS]).parser().parse(tokens, cursor.script)
    except QueryFault as fault:
        _tell(cursor, fault, tokens)
    except ParseError:
        # Raised where sqlglot builds a function from its arguments, which knows no place.
        cursor.fail("a call here has arguments that cannot be read", offset=tokens[0].start)
    if len(parsed) != 1 or parsed[0] is None:
        cursor.fail(f"expected {expected}", offset=tokens[0].start)
    for name in parsed[0].find_all(exp.Identifier, exp.Star):
        name.meta[SCRIPT] = cursor.script
    return parsed[0]


def _tell(cursor: Cursor, fault: QueryFault, tokens: list[Token]) -> NoReturn:
    """Raises the error as one of the statement."""
    token = fault.token
    text = cursor.written(token)
    found = f"the end after {text}" if fault.at_end else text
    cursor.clause = clause_of(tokens, token)
    offset = token.end + 1 if fault.at_end else token.start
    if fault.fix is not None:
        cursor.fail(fault.description, fix=fault.fix, offset=offset)
    cursor.fail(_plainly(fault.description, found), guesses=_likely(tokens, token), offset=offset)


_NO_QUERY = "expected SELECT behind WITH, found {found}"
_PLAIN = (
    (re.compile("Expected table name"), "expected the name of a stream, found {found}"),
    (re.compile("Expected (?i:type)"), "expected a type, found {found}"),
    (re.compile("Expected FROM or comma"), "expected FROM, found {found}"),
    (re.compile(r"Expect(?:ed|ing) ([A-Z]+|[^\w\s]+)(?!\S)"), 'expected "{0}", found {found}'),
    (re.compile("Required keyword"), "something is missing before {found}"),
    (re.compile("Failed to parse any statement following CTE"), _NO_QUERY),
    (re.compile("does not support CTE"), _NO_QUERY),
    (re.compile(r"The number of provided arguments \((\d+)\)"), "a call before {found} takes fewer than {0} arguments"),
)
"""What a message of sqlglot has in it, and what it is in our own words; any other is about unexpected text."""


def _plainly(description: str, found: str) -> str:
    for pattern, plain in _PLAIN:
        if (match := pattern.search(description)) is not None:
            return plain.format(*match.groups(), found=found)
    return f"unexpected {found}"


def _likely(tokens: list[Token], token: Token) -> list[Guess]:
    """The words that may be meant: in the place of the error, or near it, where one was taken for an alias."""
    index = next(index for index, other in enumerate(tokens) if other.start == token.start)
    return [
        Guess(suspect.start, suspect.end + 1, word, f"did you mean {word} instead of {suspect.text}?")
        for place in (index, index - 1, index + 1, index - 2)
        if 0 <= place < len(tokens)
        for suspect in [tokens[place]]
        if is_name(suspect) and suspect.token_type == TokenType.VAR and suspect.text.upper() not in WORDS
        for word in ranked(suspect.text, WORDS)
    ]
