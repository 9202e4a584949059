"""A statement with the names of Dovetail in place of those of ``foreign_calls``."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from dovetail.changelog.work.interruption import expect_wanted
from dovetail.sql.syntax.cursor import Cursor, is_name
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.grammar.hints.foreign_calls import CALLS
from dovetail.sql.syntax.grammar.hints.patterns import found
from dovetail.sql.syntax.grammar.hints.words import Edit, Words
from dovetail.sql.syntax.rules import Rules

_BEHIND = ("AS", "FROM", "WHERE", "ON", "AND", "OR", "GROUP BY", "HAVING", "ORDER BY")
"""Words behind what a lambda says of its argument first."""
_FAR = 50
"""How many tokens behind an arrow are looked at, and how many members of members a chain of them may have."""
_MOST_PASSES = 8
LONGEST_FORM = 10_000
"""A longer text is refused without what is to be written in its place."""


def with_own_names(text: str, rules: Rules = Rules.TIMEPLUS, passes: int = _MOST_PASSES) -> str:
    """The statement; '' where it has no foreign name, or is long. ``rules`` say of whose functions calls are made."""
    if len(text) > LONGEST_FORM or not passes:
        return ""
    expect_wanted()
    try:
        words = Words(text, Dovetail().tokenize(text))
    except TokenError:
        return ""
    edits = [edit for place in range(len(words)) for edit in _edits(words, place, rules)]
    if not edits:
        return ""
    # What a call is made of may have such names as well.
    form = words.edited(edits)
    return with_own_names(form, rules, passes - 1) or form


def _edits(words: Words, place: int, rules: Rules) -> Iterator[Edit]:
    call = found(words, place, CALLS[rules])
    if call is not None:
        yield from call.edits
    elif words.tokens[place].token_type == TokenType.ARROW and _is_member(words, place):
        yield from _member(words, place)


def _is_member(words: Words, place: int) -> bool:
    """Whether ``a->b`` is a member of a, and no lambda: that has its argument again behind the arrow."""
    names = words.tokens[place - 1 : place + 2 : 2]
    if len(names) < 2 or not all(map(is_name, names)):
        return False
    cursor = Cursor(words.script, list(words.tokens[place + 1 : place + 1 + _FAR]))
    return all(token.text != names[0].text for token in cursor.nested_until(*_BEHIND))


def _member(words: Words, place: int) -> Iterator[Edit]:
    """``a->b->c`` as ``(a.b).c``: a member of a member stands in brackets."""
    first, before = place - 1, (TokenType.ARROW, TokenType.DOT)
    deeper = first > 0 and words.tokens[first - 1].token_type == TokenType.ARROW
    while first > max(1, place - 2 * _FAR) and words.tokens[first - 1].token_type in before:
        first -= 2
    if deeper:
        yield Edit(first, first + 1, f"({words.text(first, first + 1)}")
    yield Edit(place, place + 1, ")." if deeper else ".")
