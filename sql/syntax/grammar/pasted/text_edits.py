"""Pieces of a statement's text, replaced all together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlglot.tokenizer_core import Token


class Edit(NamedTuple):
    """``text`` stands in place of what stands from ``start`` to before ``end``; places are of the whole script."""

    start: int
    end: int
    text: str


def applied(script: str, tokens: Sequence[Token], edits: Iterable[Edit]) -> str:
    """The statement of ``tokens`` on one line and without its comments, with ``edits``; one within another that is made
    already is left out.
    """
    made: list[Edit] = []
    done = int(tokens[0].start)
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if edit.start >= done:
            made.append(edit)
            done = edit.end
    kept = (Edit(token.start, token.end + 1, script[token.start : token.end + 1]) for token in _outside(tokens, made))
    text, end = "", int(tokens[0].start)
    for piece in sorted([*made, *kept], key=lambda piece: (piece.start, piece.end)):
        apart = piece.start > end and bool(piece.text) and bool(text)
        text += f" {piece.text}" if apart and not text.endswith(" ") else piece.text
        # What is taken out together with the blanks before it and behind it leaves none.
        end = piece.end if piece.text or piece.start == end else min(end, piece.start)
    return text


def _outside(tokens: Sequence[Token], made: Sequence[Edit]) -> Iterator[Token]:
    """The tokens that begin in no edit; both stand in the order of the text."""
    waiting = iter(made)
    edit = next(waiting, None)
    for token in tokens:
        while edit is not None and edit.end <= token.start:
            edit = next(waiting, None)
        if edit is None or token.start < edit.start:
            yield token
