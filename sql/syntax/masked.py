"""Statements as they may be shown: the very text, with ``'***'`` in the place of each secret.

Where a statement is read, its grammar says which tokens are values of settings and options (``Cursor.settings``). Where
it is not, as it has an error, a value is what stands after a name that is one of a secret.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.redact import has_secrets, is_secret, redacted, without_logins
from dovetail.sql.syntax.statements import Span

_MASK = "'***'"
_SIGNS = ("=", "==", ":", "=>")
_PLACES = ("ENV", "FILE")
_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
_ENDS = (",", ";", *_CLOSE)
_LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.HEX_STRING,
        TokenType.NUMBER,
        TokenType.IDENTIFIER,
    }
)
Part = tuple[int, int, str]
"""Where it begins and ends, and what is shown there."""


def masked(text: str, settings: Iterable[Span]) -> str:
    """A text whose statements could be read, with the values that they give."""
    parts = [_shown(text, one) for one in settings]
    return MaskedText.of(text, sorted([*parts, *_comments(text)]), without_logins).shown


def masked_unread(text: str) -> str:
    """A text that is no statement, or not yet."""
    return unread(text).shown


@lru_cache(maxsize=4)
def unread(text: str) -> MaskedText:
    """As ``masked_unread``, with the places of its characters: many errors and columns ask for places of one script."""
    if not has_secrets(text):
        return MaskedText.of(text, (), str)
    try:
        tokens = Dovetail().tokenize(text)
    except TokenError:
        return MaskedText.of(text, (), redacted)
    return MaskedText.of(text, list(_guessed(text, tokens)), redacted)


@dataclass(frozen=True)
class MaskedText:
    """A text as it may be shown, and where the characters of the text stand in it.

    pieces  of the text, in order: where each begins in the text, where in what is shown, what is written and shown
    """

    shown: str
    pieces: tuple[tuple[int, int, str, str], ...]

    @staticmethod
    def of(text: str, parts: Sequence[Part], others: Callable[[str], str]) -> MaskedText:
        """``text`` with ``parts``, which are in order, in place, and with ``others`` of what stands between them."""
        pieces: list[tuple[int, int, str, str]] = []
        begin = length = 0

        def add(end: int, shown: str) -> None:
            nonlocal begin, length
            pieces.append((begin, length, text[begin:end], shown))
            begin, length = end, length + len(shown)

        for start, end, instead in parts:
            if start >= begin:
                add(start, others(text[begin:start]))
                add(end, instead)
        add(len(text), others(text[begin:]))
        return MaskedText("".join(shown for *_, shown in pieces), tuple(pieces))

    def place(self, offset: int) -> int:
        """Where the character at ``offset`` of the text stands in what is shown; behind a mask where that hides it."""
        begin, at, written, shown = self.pieces[bisect_right(self.pieces, offset, key=itemgetter(0)) - 1]
        if written == shown or offset == begin:
            return at + offset - begin
        return at + min(len(shown), len(redacted(written[: offset - begin])))


def _shown(text: str, given: Span) -> Part:
    written = text[given.start : given.end]
    return given.start, given.end, _MASK if is_secret(given.name) else redacted(written)


def _comments(text: str) -> Iterator[Part]:
    """What stands between the tokens, with its own secrets masked."""
    at = 0
    for token in Dovetail().tokenize(text):
        if text[at : token.start].strip():
            yield at, token.start, redacted(text[at : token.start])
        at = token.end + 1
    yield at, len(text), redacted(text[at:])


def _guessed(text: str, tokens: Sequence[Token]) -> Iterator[Part]:
    depth, at = 0, 0
    while at < len(tokens):
        depth += (tokens[at].text == "(") - (tokens[at].text == ")")
        value = _value_at(text, tokens, at, depth)
        if value is not None:
            yield tokens[value.start].start, tokens[value.stop - 1].end + 1, _MASK
            at = value.stop
        else:
            at += 1


def _value_at(text: str, tokens: Sequence[Token], at: int, depth: int) -> range | None:
    """The tokens of the secret that the name at ``at`` gives."""
    name = tokens[at]
    dotted = at > 1 and tokens[at - 1].text == "."
    written = f"{tokens[at - 2].text}.{name.text}" if dotted else name.text
    value = at + 1
    while value < len(tokens) and tokens[value].text in _SIGNS:
        value += 1
    signed = value > at + 1
    if not is_secret(written) or value >= len(tokens) or (name.token_type == TokenType.STRING and not signed):
        return None
    if tokens[value].text.upper() in _PLACES:
        return None
    end = _end_of_value(tokens, value)
    bare = tokens[value].token_type == TokenType.VAR and (signed or depth > 0)
    given = any(token.token_type in _LITERALS for token in tokens[value:end])
    return range(value, end) if bare or given else None


def _end_of_value(tokens: Sequence[Token], at: int) -> int:
    """Behind a literal or word, and what is in its brackets, joined to it by ``||``, or stuck to it as in ``E'x'``."""
    if tokens[at].text == "-" and at + 1 < len(tokens):
        at += 1
    end = _closed(tokens, at)
    while end < len(tokens) and _goes_on(tokens[end - 1], tokens[end]):
        end = _closed(tokens, end)
    return end


def _goes_on(before: Token, token: Token) -> bool:
    joined = "||" in (before.text, token.text)
    stuck = token.start == before.end + 1 and token.text not in _ENDS
    return joined or stuck or (before.token_type in _LITERALS and token.token_type == TokenType.STRING)


def _closed(tokens: Sequence[Token], at: int) -> int:
    """Behind a token, or behind the bracket that closes where it opens one."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at].text in _OPEN) - (tokens[at].text in _CLOSE)
        at += 1
        if depth <= 0:
            break
    return at
