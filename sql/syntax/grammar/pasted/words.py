"""The words of a statement, with what is looked up among them: each search takes the logarithm of their number."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

from sqlglot.tokenizer_core import Token

from dovetail.sql.syntax.cursor import word_of
from dovetail.sql.syntax.dialect import AGGREGATES

_JOINING = ("LEFT", "RIGHT", "FULL", "INNER", "OUTER", "JOIN", "CROSS")
_CLAUSES = ("WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "EMIT", "WINDOW", "PARTITION BY", "SETTINGS")
NEXT = frozenset((*_JOINING, *_CLAUSES, ")"))
"""What may follow a list of keys or a condition of a join."""


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

    def parts(self, start: int, end: int) -> list[range]:
        """The places of what stands between the commas outside of brackets."""
        commas = self._commas[self._depths[start]] if start < end else []
        between = commas[bisect_left(commas, start) : bisect_left(commas, end)]
        parts = zip([start, *(comma + 1 for comma in between)], [*between, end], strict=True)
        return [range(first, last) for first, last in parts if first < last]

    def text(self, start: int, end: int) -> str:
        """What is written from a token to before another, on one line."""
        if start >= end:
            return ""
        return " ".join(self.script[self.tokens[start].start : self.tokens[end - 1].end + 1].split())

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
            depths.append(depths[-1] + (word == "(") - (word == ")"))
        return depths

    @cached_property
    def _closing(self) -> dict[int, int]:
        opened: list[int] = []
        closing: dict[int, int] = {}
        for place, word in enumerate(self._words):
            if word == "(":
                opened.append(place)
            elif word == ")" and opened:
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
