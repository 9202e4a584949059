"""What only the queries of others have: windows and WITHIN of ksqlDB, table functions and MATCH_RECOGNIZE of Flink.

Where something means the same as here it is read (``same_windows``). The rest is refused with the whole statement as it
is written here: each piece of ``foreign_pieces`` is an edit of its text, and all of them are made together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from sqlglot.tokenizer_core import Token

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.work.interruption import expect_wanted
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.hints.filled_forms import noted
from dovetail.sql.syntax.grammar.hints.foreign_names import LONGEST_FORM, with_own_names
from dovetail.sql.syntax.grammar.hints.foreign_pieces import PIECES
from dovetail.sql.syntax.grammar.hints.patterns import Found, found
from dovetail.sql.syntax.grammar.hints.words import Words

_ARGUMENTS = ("DATA", "TIMECOL", "SIZE", "SLIDE", "STEP", "GAP", "OFFSET")
"""What Flink calls the arguments of windows, in the order in which they stand without these names."""
_MOST_PIECES = 100


def refuse_foreign(cursor: Cursor) -> None:
    """Raises Unsupported for a query that has pieces of other systems, with the statement that runs in its place."""
    words = without_names(Words(cursor.script, cursor.tokens))
    first = next(_foreign(words, cursor.index), None)
    if first is not None:
        fix = noted(*_mended(words, cursor.index)) if _is_short(words) else ""
        cursor.fail(first.what, fix=fix, kind=Unsupported, offset=words.tokens[first.about].start)


def in_own_words(script: str, tokens: Sequence[Token]) -> tuple[str, str]:
    """A query on one line without what only others have, and what is to be known of that; ``..`` for a long one."""
    words = without_names(Words(script, tokens))
    return _mended(words, 0) if _is_short(words) else ("..", "")


def _is_short(words: Words) -> bool:
    return int(words.tokens[-1].end) - int(words.tokens[0].start) < LONGEST_FORM


def _foreign(words: Words, start: int) -> Iterator[Found]:
    for at in range(start, len(words)):
        if words.word(at) in PIECES:
            expect_wanted()
            if (piece := found(words, at, PIECES)) is not None:
                yield piece


def _mended(words: Words, start: int) -> tuple[str, str]:
    pieces = list(islice(_foreign(words, start), _MOST_PIECES))
    form = words.edited([edit for piece in pieces for edit in piece.edits])
    note = "; ".join(dict.fromkeys(piece.note for piece in pieces if piece.note))
    return with_own_names(form) or form, note


def same_windows(tokens: Sequence[Token]) -> list[Token]:
    """``TUMBLE(TABLE t, DESCRIPTOR(c), ..)`` and HOP as ``TUMBLE(t, c, ..)``, within TABLE(..) or not: the tokens
    that say nothing are left out, and the others stay where they are.
    """
    words = without_names(Words("", tokens))
    left_out: set[int] = set()
    singular: dict[int, Token] = {}
    read = 0
    for at in sorted([*words.places("TUMBLE"), *words.places("HOP")]):
        end, column = words.closing(at + 1), words.first("DESCRIPTOR", at)
        if not words.at(at + 1, "(", "TABLE") or column is None or column >= end or words.word(column + 3) != ")":
            continue
        left_out |= {at + 2, column, column + 1, column + 3}
        if words.at(at - 2, "TABLE", "("):
            left_out |= {at - 2, at - 1, end + 1}
        # A window within another is read with it.
        singular |= {place: one for place in range(max(column, read), end) if (one := _singular(words, place))}
        read = max(read, end)
    return [singular.get(place, token) for place, token in enumerate(words.tokens) if place not in left_out]


def without_names(words: Words) -> Words:
    """``TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(c), SIZE => ..)`` without the names of its arguments."""
    arrows = [place for place in words.places("=>") if words.word(place - 1) in _ARGUMENTS]
    named = {place for arrow in arrows for place in (arrow - 1, arrow)}
    kept = [token for place, token in enumerate(words.tokens) if place not in named]
    return Words(words.script, kept) if named else words


def _singular(words: Words, at: int) -> Token | None:
    """``MINUTES`` behind ``INTERVAL '10'`` as MINUTE, which both dialects read."""
    token, word = words.tokens[at], words.word(at)
    if words.word(at - 2) != "INTERVAL" or not word.endswith("S"):
        return None
    return Token(token.token_type, word[:-1], token.line, token.col, token.start, token.end, token.comments)
