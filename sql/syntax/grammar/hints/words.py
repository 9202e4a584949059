"""The words of a statement, with what is looked up among them: each search takes the logarithm of their number."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from sqlglot.tokenizer_core import Token

from dovetail.sql.syntax.cursor import word_of
from dovetail.sql.syntax.dialect import AGGREGATES

_JOINING = ("LEFT", "RIGHT", "FULL", "INNER", "OUTER", "JOIN", "CROSS")
_CLAUSES = ("WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "EMIT", "WINDOW", "PARTITION BY", "SETTINGS")
_BEGUN = ("GROUP BY", "FROM", "SELECT")
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
NEXT = frozenset((*_JOINING, *_CLAUSES, ")"))
"""What may follow a list of keys or a condition of a join."""


class Edit(NamedTuple):
    """``text`` in the place of the tokens from ``start`` to before ``end``; of none of them, behind the one before."""

    start: int
    end: int
    text: str


class Words:
    """The tokens of a statement of ``script`` as words in upper case: '' for quoted names, literals, and both ends."""

    def __init__(self, script: str, tokens: Sequence[Token]) -> None:
        self.script = script
        self.tokens = tokens
        self._words = [word_of(token) for token in tokens]

    def __len__(self) -> int:
        return len(self._words)

    def word(self, at: int) -> str:
        return self._words[at] if 0 <= at < len(self._words) else ""

    def at(self, place: int, *words: str) -> bool:
        """Whether these words stand at a place."""
        return all(self.word(place + ahead) == word for ahead, word in enumerate(words))

    def places(self, word: str) -> Sequence[int]:
        return self._places.get(word, ())

    def first(self, word: str, start: int) -> int | None:
        """The first place of a word from ``start`` on."""
        places = self.places(word)
        index = bisect_left(places, start)
        return places[index] if index < len(places) else None

    def last(self, word: str, end: int) -> int | None:
        """The last place of a word up to ``end``, that included."""
        places = self.places(word)
        index = bisect_right(places, end)
        return places[index - 1] if index else None

    def depth(self, at: int) -> int:
        """How many brackets are open before a token."""
        return self._depths[at]

    def closing(self, at: int) -> int:
        """The place of the bracket that closes the one at ``at``; the last token where none does."""
        return self._closing.get(at, len(self) - 1)

    def end(self, at: int) -> int:
        """Where a list or a condition ends that begins at a token."""
        ends = self._ends[self._depths[min(at, len(self))]]
        index = bisect_left(ends, at)
        return ends[index] if index < len(ends) else len(self)

    def comma(self, at: int) -> int | None:
        """The first comma from a token on, outside of all brackets that begin there."""
        commas = self._commas[self._depths[min(at, len(self))]]
        index = bisect_left(commas, at)
        return commas[index] if index < len(commas) else None

    def text(self, start: int, end: int) -> str:
        """What is written from a token to before another, on one line and without comments."""
        made, last = "", 0
        for token in self.tokens[start:end]:
            made += " " * (bool(made) and token.start > last) + self.script[token.start : token.end + 1]
            last = token.end + 1
        return made

    def clause(self, at: int) -> str:
        """Which of SELECT, FROM and GROUP BY stands last before a token."""
        begun = {word: -1 if (place := self.last(word, at)) is None else place for word in _BEGUN}
        return max(begun, key=begun.__getitem__)

    def source(self, at: int) -> tuple[int, int] | None:
        """The first name in FROM before a token, and its alias, which is the name where it has none."""
        begin = self.last("FROM", at)
        if begin is None or begin + 1 >= len(self) or self.word(begin + 1) == "(" or self.word(begin + 2) in ("(", "."):
            return None
        alias = begin + 3 if self.word(begin + 2) == "AS" else begin + 2
        unnamed = alias >= len(self) or self.word(alias) in (*NEXT, "", "WITHIN", "MATCH_RECOGNIZE", ",", ";")
        return begin + 1, begin + 1 if unnamed else alias

    def edited(self, edits: Iterable[Edit]) -> str:
        """The statement with ``edits``, on one line and without its comments; one within another is left out."""
        text, at, last = "", 0, int(self.tokens[0].start)
        for edit in (*sorted(edits, key=lambda edit: (edit.start, edit.end > edit.start, -edit.end)), None):
            if edit is not None and edit.start < at:
                continue
            for token in self.tokens[at : edit.start if edit else len(self)]:
                text += " " * (token.start > last) + self.script[token.start : token.end + 1]
                last = token.end + 1
            if edit is not None and edit.start < edit.end:
                text += " " * bool(edit.text and self.tokens[edit.start].start > last)
                last = int(self.tokens[edit.end - 1].end) + 1
            if edit is not None:
                text, at = text + edit.text, edit.end
        return text

    @cached_property
    def grouping(self) -> int:
        """The first place where rows are taken together: GROUP BY, or an aggregate; the end where they are not."""
        calls = (place - 1 for place in self.places("(") if self.word(place - 1) in AGGREGATES)
        return min((*self.places("GROUP BY")[:1], *islice(calls, 1)), default=len(self))

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(self._words):
            places[word].append(place)
        return dict(places)

    @cached_property
    def _depths(self) -> list[int]:
        depths = [0]
        for word in self._words:
            depths.append(depths[-1] + (word in _OPEN) - (word in _CLOSE))
        return depths

    @cached_property
    def _closing(self) -> dict[int, int]:
        opened: list[int] = []
        closing: dict[int, int] = {}
        for place, word in enumerate(self._words):
            if word in _OPEN:
                opened.append(place)
            elif word in _CLOSE and opened:
                closing[opened.pop()] = place
        return closing

    @cached_property
    def _ends(self) -> dict[int, list[int]]:
        return self._by_depth(NEXT)

    @cached_property
    def _commas(self) -> dict[int, list[int]]:
        return self._by_depth(frozenset({","}))

    def _by_depth(self, wanted: frozenset[str]) -> dict[int, list[int]]:
        """The places of words by the number of brackets that are open before them."""
        found: dict[int, list[int]] = defaultdict(list)
        for place, word in enumerate(self._words):
            if word in wanted:
                found[self._depths[place]].append(place)
        return found
