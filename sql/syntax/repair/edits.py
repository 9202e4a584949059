"""Small edits near the place where a statement cannot be read on: a word or a sign that is missing, or too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from sqlglot.tokenizer_core import Token, TokenType

from dovetail.changelog.suggest import Guess

_AFTER = {"GROUP": "BY", "ORDER": "BY", "PARTITION": "BY", "LEFT": "JOIN", "RIGHT": "JOIN", "FULL": "JOIN"}
"""Words that come in pairs."""
_INSTEAD = {"TO": "AND", "WHERE": "AND", "AND": "WHERE", "ON": "AND"}
_MISSING = ("AS", "JOIN", "FROM", "ON")
_UNITS = frozenset(
    unit + more for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR") for more in ("", "S")
)
_BEFORE_NAMES = ("AS", "FROM", "JOIN", "INTO", ",", "(", ".")
_LISTED = ("IN", "VALUES", "USING", "KEY")
_CONDITIONS = ("WHERE", "HAVING", "ON", "LIMIT")
_BEGINS_CLAUSE = frozenset(
    [
        *("FROM", "JOIN", "LEFT", "FULL", "INNER", "ON", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION"),
        *("EMIT", "SETTINGS", "WITH", "PRIMARY", "APPEND"),
    ]
)
_MOST = 40
"""How many places are tried before the one where the statement cannot be read on."""
_TEXTS = (TokenType.STRING, TokenType.IDENTIFIER)


def edits(script: str, tokens: Sequence[Token], index: int) -> Iterator[Guess]:
    """The likeliest first.

    tokens   of one statement
    index    of the one where it cannot be read on; their number for its end
    """
    at = _Fault(script, tokens, index)
    return chain(
        at.commas(), at.pairs(), at.columns(), at.top(), at.cases(), at.brackets(), at.others(), at.intervals(),
        at.doubled(), at.unnamed(), at.missing(), at.items(), at.names(), at.lists(),
    )  # fmt: skip


class _Fault:
    def __init__(self, script: str, tokens: Sequence[Token], index: int) -> None:
        self.script, self.tokens, self.index = script, tokens, index

    def commas(self) -> Iterator[Guess]:
        """One at the end of a list, or two in a row."""
        for place in (self.index - 1, self.index):
            if self._word(place) == ",":
                yield self._without(place, "take the comma away")

    def pairs(self) -> Iterator[Guess]:
        for place in reversed(range(min(self.index + 1, len(self.tokens)))):
            first = self._word(place)
            if first in _AFTER and self._word(place + 1) not in (_AFTER[first], "OUTER", "SEMI", "ANTI", "("):
                yield self._before(place + 1, _AFTER[first], f"did you mean {first} {_AFTER[first]}?")

    def columns(self) -> Iterator[Guess]:
        if self._word(self.index - 1) == "SELECT":
            yield self._before(self.index, "*", "for all columns: SELECT *")

    def top(self) -> Iterator[Guess]:
        """``TOP n`` is LIMIT."""
        place, end = self.index - 1, self._end(len(self.tokens))
        if self._word(place) == "TOP" and place + 2 < len(self.tokens):
            number, rest = self._word(place + 1), self.script[self.tokens[place + 2].start : end]
            offer = f"LIMIT {number} at the end, in place of TOP {number}"
            yield Guess(self.tokens[place].start, end, f"{rest} LIMIT {number}", offer)

    def cases(self) -> Iterator[Guess]:
        for place, word in enumerate(self._words()):
            if word == "CASE" and self._word(place + 1) != "WHEN":
                yield self._before(place + 1, "WHEN", "put WHEN after CASE")
        if self._open("CASE", "END") > 0:
            for place in self._ends_of_parts():
                yield self._before(place, "END", self._put("END", place))

    def brackets(self) -> Iterator[Guess]:
        for number in range(1, self._open("(", ")") + 1):
            for place in [*self._ends_of_parts(), *self._earlier()]:
                yield self._before(place, ")" * number, self._put(")" * number, place))
        if self._word(self.index) == ")":
            yield self._without(self.index, "take the ) away: it closes nothing")

    def others(self) -> Iterator[Guess]:
        """A word in the place of another."""
        for place in (self.index, self.index - 1):
            word = self._word(place)
            if word in _INSTEAD:
                token = self.tokens[place]
                yield Guess(token.start, token.end + 1, _INSTEAD[word], f"{_INSTEAD[word]} in place of {word}")

    def missing(self) -> Iterator[Guess]:
        words = ("AND",) if self._clause() in _CONDITIONS else _MISSING
        for place in (self.index, self.index - 1):
            for word in words:
                # AS AS would make a name of the first.
                if place > 0 and word not in (self._word(place - 1), self._word(place)):
                    yield self._before(place, word, self._put(word, place))

    def items(self) -> Iterator[Guess]:
        """Two in a list, with nothing between."""
        if self.index > 0 and self._clause() not in _CONDITIONS:
            yield self._before(self.index, ",", self._put("a comma", self.index))

    def intervals(self) -> Iterator[Guess]:
        place = self.index - 1
        if self._word(self.index) in _UNITS and self._word(place).isdigit():
            yield self._before(place, "INTERVAL", self._put("INTERVAL", place))

    def unnamed(self) -> Iterator[Guess]:
        for place in (self.index, self.index - 1):
            if self._word(place) == "AS":
                yield self._before(place, "name", "put a name before AS")

    def doubled(self) -> Iterator[Guess]:
        word = self._word(self.index)
        if word and word == self._word(self.index - 1):
            yield self._without(self.index, f"{word} once")

    def names(self) -> Iterator[Guess]:
        """A word of the language in the place of a name."""
        for place in (self.index - 1, self.index):
            if (word := self._word(place)).isalpha() and self._word(place - 1) in _BEFORE_NAMES:
                token = self.tokens[place]
                quoted = f'"{self.script[token.start : token.end + 1]}"'
                yield Guess(token.start, token.end + 1, quoted, f"{word} is a word of SQL; as a name: {quoted}")

    def lists(self) -> Iterator[Guess]:
        """A list without its brackets, to the end."""
        end = self._end(len(self.tokens))
        for place in (self.index, self.index - 1, self.index - 2):
            if not 0 < place < len(self.tokens):
                continue
            if self._word(place - 1) in _LISTED or (place == self.index and self._word(0) == "CREATE"):
                start = self.tokens[place].start
                listed = f"({self.script[start:end]})"
                yield Guess(start, end, listed, f"put the list in brackets: {listed}")

    def _ends_of_parts(self) -> list[int]:
        """Where what is open may end: here, before a later clause, at the end."""
        later = range(self.index + 1, len(self.tokens))
        parts = [place for place in later if self._word(place) in (",", ")", "AS") or self._begins(place)]
        return [self.index, *parts, *([len(self.tokens)] if self.index < len(self.tokens) else [])]

    def _earlier(self) -> list[int]:
        """Where a part ends before the fault, the nearest first: what is open may have swallowed what follows."""
        parts = (place for place in reversed(range(1, self.index)) if self._word(place) == "," or self._begins(place))
        return list(islice(parts, _MOST))

    def _clause(self) -> str:
        """The word that begins the clause of the fault."""
        before = reversed(range(self.index))
        return next((self._word(place) for place in before if self._begins(place)), "")

    def _begins(self, place: int) -> bool:
        return self._word(place).split(" ")[0] in _BEGINS_CLAUSE

    def _open(self, begin: str, end: str) -> int:
        return self._words().count(begin) - self._words().count(end)

    def _words(self) -> list[str]:
        return [self._word(place) for place in range(len(self.tokens))]

    def _word(self, place: int) -> str:
        """In capitals, with one space; empty for texts, quoted names, and beyond the ends."""
        if not 0 <= place < len(self.tokens) or self.tokens[place].token_type in _TEXTS:
            return ""
        token = self.tokens[place]
        return " ".join(self.script[token.start : token.end + 1].upper().split())

    def _end(self, place: int) -> int:
        return int(self.tokens[place - 1].end) + 1

    def _put(self, word: str, place: int) -> str:
        if place == len(self.tokens):
            return f"put {word} at the end"
        token = self.tokens[place]
        text = "the text" if token.token_type == TokenType.STRING else self.script[token.start : token.end + 1]
        return f"put {word} before {text}"

    def _before(self, place: int, word: str, offer: str) -> Guess:
        """``word`` right after what stands before."""
        at = self._end(place) if place else 0
        return Guess(at, at, word if word in ")," else f" {word} ", offer)

    def _without(self, place: int, offer: str) -> Guess:
        token = self.tokens[place]
        return Guess(token.start, token.end + 1, "", offer)
