"""Functions and columns of ksqlDB and Flink that go by another name here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.changelog.work.interruption import expect_wanted
from dovetail.sql.syntax.cursor import Cursor, is_name
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.grammar.pasted.foreign_calls import SHAPED, called_as_here
from dovetail.sql.syntax.grammar.pasted.text_edits import Edit, applied
from dovetail.sql.syntax.rules import Rules

CALLS: Mapping[str, str] = {
    "LATEST_BY_OFFSET": "latest",
    "EARLIEST_BY_OFFSET": "earliest",
    "COLLECT_LIST": "group_array",
    "COLLECT_SET": "group_uniq_array",
    "EXTRACTJSONFIELD": "json_value",
    "IFNULL": "if_null",
    "LEN": "length",
    "INSTR": "position",
    "LISTAGG": "string_agg",
}
TURNED: Mapping[str, str] = {"SPLIT": "split_by_string", "REGEXP_SPLIT_TO_ARRAY": "split_by_regexp"}
"""Of two arguments, which stand the other way round here."""
_BEHIND = ("AS", "FROM", "WHERE", "ON", "AND", "OR", "GROUP BY", "HAVING", "ORDER BY")
"""Words behind what a lambda says of its argument first."""
_FAR = 50
"""How many tokens behind an arrow are looked at, and how many members of members a chain of them may have."""
_MOST_PASSES = 5
LONGEST_FORM = 10_000
"""A longer text is refused without what is to be written in its place."""
COLUMNS: Mapping[str, str] = {"ROWTIME": "_tp_time", "WINDOWSTART": "window_start", "WINDOWEND": "window_end"}


def with_own_names(text: str, rules: Rules = Rules.TIMEPLUS, passes: int = _MOST_PASSES) -> str:
    """A statement with the names of Dovetail in place of those of others; '' where it has none of these, or is long.
    ``rules`` say of whose functions calls of another shape are made.
    """
    if len(text) > LONGEST_FORM or not passes:
        return ""
    expect_wanted()
    try:
        tokens = Dovetail().tokenize(text)
    except TokenError:
        return ""
    edits = list(_renamed_tokens(text, tokens, rules))
    if not edits:
        return ""
    # An argument that has changed its place may have such names as well.
    form = applied(text, tokens, edits)
    return with_own_names(form, rules, passes - 1) or form


def _renamed_tokens(script: str, tokens: Sequence[Token], rules: Rules) -> Iterator[Edit]:
    for place, token in enumerate(tokens):
        word = token.text.upper() if is_name(token) else ""
        called = place + 1 < len(tokens) and tokens[place + 1].text == "("
        ours = CALLS.get(word) if called else COLUMNS.get(word)
        if ours is not None:
            yield Edit(token.start, token.end + 1, ours)
        elif called and word in TURNED:
            yield from _turned(script, tokens, place)
        elif token.token_type == TokenType.ARROW and _is_member(script, tokens, place):
            yield from _member(tokens, place)
        elif called and word in SHAPED:
            yield from _reshaped(script, tokens, place, rules)


def _is_member(script: str, tokens: Sequence[Token], place: int) -> bool:
    """Whether ``a->b`` is a member of a, and no lambda: that has its argument again behind the arrow."""
    names = tokens[place - 1 : place + 2 : 2]
    if len(names) < 2 or not all(map(is_name, names)):
        return False
    cursor = Cursor(script, list(tokens[place + 1 : place + 1 + _FAR]))
    return all(token.text != names[0].text for token in cursor.nested_until(*_BEHIND))


def _member(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """``a->b->c`` as ``(a.b).c``: a member of a member stands in brackets."""
    arrow, first = tokens[place], place - 1
    deeper = first > 0 and tokens[first - 1].token_type == TokenType.ARROW
    while first > max(1, place - 2 * _FAR) and tokens[first - 1].token_type in (TokenType.ARROW, TokenType.DOT):
        first -= 2
    if deeper:
        yield Edit(tokens[first].start, tokens[first].start, "(")
    yield Edit(arrow.start, arrow.end + 1, ")." if deeper else ".")


def _turned(script: str, tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """``split(text, ',')`` as ``split_by_string(',', text)``."""
    cursor = Cursor(script, list(tokens))
    cursor.index = place + 2
    first = cursor.nested()
    if not cursor.accept(","):
        return
    second = cursor.nested()
    if first and second and cursor.word() == ")":
        one, other = (script[part[0].start : part[-1].end + 1] for part in (first, second))
        start, end = tokens[place].start, second[-1].end + 1
        yield Edit(start, end, f"{TURNED[tokens[place].text.upper()]}({other}, {one}")


def _reshaped(script: str, tokens: Sequence[Token], place: int, rules: Rules) -> Iterator[Edit]:
    """``TOPK(n, 3)`` as ``max_k(n, 3)``, and the like."""
    cursor = Cursor(script, list(tokens))
    cursor.index = place + 2
    parts = [cursor.nested()]
    while cursor.accept(","):
        parts.append(cursor.nested())
    if cursor.word() != ")" or not all(parts):
        return
    arguments = [script[part[0].start : part[-1].end + 1] for part in parts]
    if made := called_as_here(tokens[place].text, arguments, rules):
        yield Edit(tokens[place].start, int(tokens[cursor.index].end) + 1, made)
