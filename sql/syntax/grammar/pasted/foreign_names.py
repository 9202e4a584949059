"""Functions and columns of ksqlDB and Flink that go by another name here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token

from sql.syntax.cursor import Cursor, is_name
from sql.syntax.dialect import Dovetail
from sql.syntax.grammar.pasted.text_edits import Edit, applied

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
COLUMNS: Mapping[str, str] = {"ROWTIME": "_tp_time", "WINDOWSTART": "window_start", "WINDOWEND": "window_end"}


def with_own_names(text: str) -> str:
    """A statement with the names of Dovetail in place of those of others; '' where it has none of these."""
    try:
        tokens = Dovetail().tokenize(text)
    except TokenError:
        return ""
    edits = list(_renamed_tokens(text, tokens))
    if not edits:
        return ""
    # An argument that has changed its place may have such names as well.
    form = applied(text, tokens, edits)
    return with_own_names(form) or form


def _renamed_tokens(script: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    for place, token in enumerate(tokens):
        word = token.text.upper() if is_name(token) else ""
        called = place + 1 < len(tokens) and tokens[place + 1].text == "("
        ours = CALLS.get(word) if called else COLUMNS.get(word)
        if ours is not None:
            yield Edit(token.start, token.end + 1, ours)
        elif called and word in TURNED:
            yield from _turned(script, tokens, place)


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
