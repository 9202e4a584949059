"""Guesses of what was meant, tried before they are offered."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.changelog.errors import SqlError, SyntaxFault
from dovetail.changelog.suggest import Guess
from dovetail.changelog.work.interruption import expect_wanted
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.grammar.hints.slips import edits
from dovetail.sql.syntax.grammar.hints.words import Words

_MOST_TEXT = 10_000
"""Characters of a script whose slips are mended: each try reads it as a whole."""
_MOST_TRIES = 100


def tried(script: str, slip: SyntaxFault, read: Callable[[str], object]) -> SyntaxFault:
    """``slip`` with the best of its guesses as its fix, or an edit that helps, or the form of what it is in.

    read   raises SqlError for a script that cannot be read
    """
    guess = None
    if len(script) <= _MOST_TEXT:
        guess = _furthest(script, slip, read) or (None if slip.fix else repair(script, slip, read))
    return SyntaxFault(slip.what, where=slip.where, fix=guess.offer if guess else slip.fix or slip.form)


def _furthest(script: str, slip: SyntaxFault, read: Callable[[str], object]) -> Guess | None:
    """Of the words that may be meant that with which ``read`` gets furthest, if that is further than without it, and
    past the word itself.
    """
    best, least = None, len(script) - (slip.offset or 0)
    for guess in islice(slip.guesses, _MOST_TRIES):
        unread = _unread(applied(script, guess), read)
        if unread < min(least, len(script) - guess.end):
            best, least = guess, unread
    return best


def _unread(script: str, read: Callable[[str], object]) -> int:
    """How much of the script stands behind its first error; below 0 if it has none."""
    expect_wanted()
    try:
        read(script)
    except SqlError as fault:
        return len(script) - (fault.offset or 0)
    return -1


def repair(script: str, slip: SyntaxFault, read: Callable[[str], object]) -> Guess | None:
    """The first edit by which the statement of ``slip`` can be read, to its end."""
    try:
        tokens = Dovetail().tokenize(script)
    except TokenError:
        return None
    here = _statement_at(tokens, slip.offset)
    if not here or slip.offset is None:
        return None
    # What comes behind it may be wrong in its turn.
    text = script[: here[-1].end + 1]
    index = sum(token.start < slip.offset for token in here)
    tries = islice(edits(Words(text, here), index), _MOST_TRIES)
    return next((guess for guess in tries if _unread(applied(text, guess), read) < 0), None)


def _statement_at(tokens: list[Token], offset: int | None) -> list[Token]:
    """The tokens of the statement that an error is in, which may be at its end."""
    found: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            found.append(token)
        elif offset is not None and offset <= token.start:
            return found
        else:
            found = []
    return found


def applied(script: str, guess: Guess) -> str:
    """``script`` as the guess has it."""
    return script[: guess.start] + guess.word + script[guess.end :]
