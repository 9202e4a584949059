"""What others write, found by a pattern among the words of a statement, with the edits that make it what is meant here.

A pattern is made of words and of what is kept under a name: ``{size}`` is what stands up to a comma, ``{keys*}`` up to
the end of the list or the bracket, ``{step.1}`` one word. What is in square brackets may be missing; an error is about
the place of ``@``, or the first word; ``$`` is the end of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from dovetail.sql.syntax.grammar.hints.spellings import SPELLINGS
from dovetail.sql.syntax.grammar.hints.words import NEXT, Edit, Words

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_PART = re.compile(r"\{\w+[*]?\}|\{\w+\.\d\}|(?:ORDER|PARTITION) BY|\S+")
_KEPT = re.compile(r"\{(\w+)([*.]?)(\d?)\}")
Table = Mapping[str, Sequence["Piece"]]
"""Pieces by the first word of their patterns. The first that fits, and all of whose places there are, counts."""


@dataclass(frozen=True)
class Piece:
    """What others write.

    texts   what stands here in its place, ``here``, and in other ``_PLACES``; one with a question mark may be missing,
            ``F()`` is each call of F
    note    what is to be known of the statement that is made
    when    one of ``_WHEN``, about what stands before it
    """

    pattern: str
    what: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    when: str = ""


@dataclass(frozen=True)
class Found:
    """A piece that is there: ``about`` is the token that an error is about."""

    what: str
    about: int
    edits: Sequence[Edit]
    note: str


def table(pieces: Iterable[Piece]) -> Table:
    by_word: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_word.setdefault(_forms(piece.pattern)[0][0], []).append(piece)
    return by_word


def found(words: Words, at: int, pieces: Table) -> Found | None:
    for piece in pieces.get(words.word(at), ()):
        for parts in _forms(piece.pattern) if _WHEN[piece.when](words, at) else ():
            match = _match(words, at, parts)
            edits = None if match is None else _edits(words, match, piece.texts)
            if match is not None and edits is not None:
                return Found(piece.what, match.about, edits, _written(piece.note, _names(words, match)) or "")
    return None


@cache
def _forms(pattern: str) -> tuple[tuple[str, ...], ...]:
    """The parts of a pattern, with and without what may be missing."""
    if (optional := _OPTIONAL.search(pattern)) is None:
        return (tuple(_PART.findall(pattern)),)
    before, after = pattern[: optional.start()], pattern[optional.end() :]
    return _forms(before + optional[1] + after) + _forms(before + after)


@dataclass(frozen=True)
class _Match:
    start: int
    end: int
    about: int
    kept: Mapping[str, str]


def _match(words: Words, at: int, parts: tuple[str, ...]) -> _Match | None:
    place, about, closing, kept = at, at, list[int](), dict[str, str]()
    for part, following in zip(parts, (*parts[1:], ""), strict=True):
        if part == "@":
            about = place
        elif (named := _KEPT.fullmatch(part)) is not None:
            end = _end(words, place, named, following, closing[-1] if closing else words.end(place))
            if end > len(words) or (end <= place and named[2] != "*"):
                return None
            kept[named[1]], place = words.text(place, end), end
        elif part == "$":
            if place < len(words):
                return None
        elif words.word(place) != part:
            return None
        else:
            closing += [words.closing(place)] if part == "(" else []
            closing[-1:] = [] if part == ")" else closing[-1:]
            place += 1
    return _Match(at, place, about, kept)


def _end(words: Words, place: int, named: re.Match[str], following: str, last: int) -> int:
    """Where what is kept ends: before the next word of the pattern, a comma, or the end of the list."""
    if named[3]:
        return place + int(named[3])
    stops = [words.first(following, place)] if following.isupper() else []
    stops += [] if named[2] else [words.comma(place)]
    return min([last, *(stop for stop in stops if stop is not None)])


class _Kept(str):
    def __format__(self, spec: str) -> str:
        """Raises LookupError where it cannot be spelled so."""
        return SPELLINGS[spec](self) if spec else str(self)


def _names(words: Words, match: _Match) -> Mapping[str, str]:
    """What texts may use: what is kept, and what stands around the piece."""
    names: dict[str, str] = {name: _Kept(text) for name, text in match.kept.items()}
    names["first"] = words.text(match.start, match.start + 1)
    names["under"] = "" if words.word(match.end) not in ("", *NEXT) else f" AS {match.kept.get('t', '')}"
    if (source := words.source(match.start)) is not None:
        names["source"] = name = words.text(source[0], source[0] + 1)
        names["as"] = f" AS {name}" * (source[0] == source[1])
    joined = words.last("JOIN", match.start)
    if joined is not None and joined + 1 < match.start and (left := words.source(joined)) is not None:
        names |= {"left": words.text(left[1], left[1] + 1), "right": words.text(match.start - 1, match.start)}
    return names


def _written(text: str, names: Mapping[str, str]) -> str | None:
    try:
        return text.format_map(names)
    except LookupError:
        return None


def _edits(words: Words, match: _Match, texts: Mapping[str, str]) -> list[Edit] | None:
    """None where there is no such place, or a name of a text stands for nothing."""
    names, made = _names(words, match), list[Edit]()
    for name, text in texts.items():
        written = _written(text, names)
        places = _calls(words, name) if name.endswith("()") else [_PLACES[name.rstrip("?")](words, match)]
        if written is None or (None in places and not name.endswith("?")):
            return None
        made += [Edit(*place, written) for place in places if place is not None]
    return made


_Range = tuple[int, int] | None


def _calls(words: Words, name: str) -> list[_Range]:
    called = (place for place in words.places(name[:-2]) if words.word(place + 1) == "(")
    return [(place, words.closing(place + 1) + 1) for place in called]


def _keys(words: Words, match: _Match) -> _Range:
    group = words.first("GROUP BY", match.start)
    group = words.last("GROUP BY", match.start) if group is None else group
    return None if group is None else (words.end(group + 1),) * 2


def _final(words: Words, match: _Match) -> _Range:
    emit = words.first("EMIT", match.end)
    return (emit + 1, emit + 2) if emit is not None and words.word(emit + 1) == "FINAL" else None


def _from_select(words: Words, match: _Match, start: int, end: int) -> _Range:
    select = words.last("SELECT", match.start)
    return None if select is None else (select + start, max(select + start, end))


_PLACES: Mapping[str, Callable[[Words, _Match], _Range]] = {
    "here": lambda words, match: (match.start, match.end),
    "name": lambda words, match: (match.start, match.start + 1),
    "source": lambda words, match: (at := words.source(match.start)) and (at[0], at[0] + 1),
    "behind SELECT": lambda words, match: _from_select(words, match, 1, 0),
    "from SELECT": lambda words, match: _from_select(words, match, 0, words.end(match.end)),
    "behind ON": lambda words, match: (words.end(match.end + 1),) * 2 if words.word(match.end) == "ON" else None,
    "behind GROUP BY": _keys,
    "FINAL": _final,
}
_WHEN: Mapping[str, Callable[[Words, int], bool]] = {
    "": lambda words, at: True,
    "a key": lambda words, at: words.clause(at) == "GROUP BY",
    "in FROM": lambda words, at: words.word(at - 1) in ("FROM", "JOIN"),
    "without groups": lambda words, at: words.grouping >= at,
    "outside": lambda words, at: words.depth(at) == 0 and words.last("FROM", at) is not None,
    "no call": lambda words, at: words.word(at + 1) != "(",
}
