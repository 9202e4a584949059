"""Slips of the finger near the place where a statement cannot be read on: a word or a sign missing, or too many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from sqlglot.tokenizer_core import TokenType

from dovetail.changelog.suggest import Guess
from dovetail.sql.syntax.grammar.hints.words import Words
from dovetail.sql.syntax.intervals import UNIT_WORDS

_BEFORE_NAMES = ("AS", "FROM", "JOIN", "INTO", ",", "(", ".")
_LISTED = ("IN", "VALUES", "USING", "KEY")
_JOINED = ("OUTER", "SEMI", "ANTI", "(")
_CONDITIONS = ("WHERE", "HAVING", "ON", "LIMIT")
_BEGINS_CLAUSE = frozenset(
    [
        *("FROM", "JOIN", "LEFT", "FULL", "INNER", "ON", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION"),
        *("EMIT", "SETTINGS", "WITH", "PRIMARY", "APPEND"),
    ]
)
_STATEMENTS = ("SELECT", "WITH", "INSERT", "CREATE", "ALTER", "DROP", "SHOW", "DESCRIBE", "UPDATE", "DELETE", "EXPLAIN")
_INSTEAD = (
    *(("TO", "AND"), ("WHERE", "AND"), ("AND", "WHERE"), ("ON", "AND")),
    *(("&&", "AND"), ("MINUS", "EXCEPT")),
)
"""What is written for another word."""
_MOST = 40
"""How many places are tried before the one where the statement cannot be read on."""
_Places = Callable[["Fault"], Iterable[int]]
_Test = Callable[["Fault", int], bool]


class Fault:
    """``index``: the token of a statement where it cannot be read on; the number of its tokens for its end."""

    def __init__(self, words: Words, index: int) -> None:
        self.words, self.index = words, index

    def word(self, place: int) -> str:
        return self.words.word(place)

    def written(self, place: int) -> str:
        return self.words.text(place, place + 1) if 0 <= place < len(self.words) else ""

    def begins(self, place: int) -> bool:
        return self.word(place).split(" ")[0] in _BEGINS_CLAUSE

    def in_condition(self) -> bool:
        clause = next(filter(self.begins, reversed(range(self.index))), -1)
        return self.word(clause) in _CONDITIONS

    def open(self, begin: str, end: str) -> int:
        return len(self.words.places(begin)) - len(self.words.places(end))

    def ends_of_parts(self) -> list[int]:
        """Where what is open may end: here, before a later clause, at the end."""
        later = range(self.index + 1, len(self.words))
        parts = [place for place in later if self.word(place) in (",", ")", "AS") or self.begins(place)]
        return [self.index, *parts, *([len(self.words)] if self.index < len(self.words) else [])]

    def earlier(self) -> list[int]:
        """Where a part ends before, the nearest first: what is open may have swallowed what follows."""
        parts = [place for place in range(1, self.index) if self.word(place) == "," or self.begins(place)]
        return parts[: -_MOST - 1 : -1]

    def guess(self, first: int, last: int, text: str, offer: str) -> Guess:
        """``text`` in the place of some tokens; of none, right after what stands before."""
        tokens = self.words.tokens
        end = int(tokens[last - 1].end) + 1 if last else 0
        written = self.written(first)
        shown = "the text" if self._is_text(first) else written
        put = f"before {shown}" if first < len(tokens) else "at the end"
        hint = offer.format(word=self.word(first), written=written, put=put, text=text, before=self.word(first - 1))
        return Guess(int(tokens[first].start) if first < last else end, end, text, hint)

    def _is_text(self, place: int) -> bool:
        return place < len(self.words) and self.words.tokens[place].token_type == TokenType.STRING


@dataclass(frozen=True)
class Slip:
    """``text`` in the place of the tokens at ``places`` for which ``test`` holds; before them, where ``put`` is set."""

    places: _Places
    test: _Test
    text: str
    offer: str
    put: bool = False

    def __call__(self, fault: Fault) -> Iterator[Guess]:
        for place in self.places(fault):
            if 0 <= place <= len(fault.words) - (not self.put) and self.test(fault, place):
                text = self.text.format(written=fault.written(place))
                spaced = text if text in (*",)", "") or not self.put else f" {text} "
                yield fault.guess(place, place if self.put else place + 1, spaced, self.offer)


def _beside(*ahead: int) -> _Places:
    return lambda fault: [fault.index + one for one in ahead]


def _is(*words: str) -> _Test:
    return lambda fault, place: fault.word(place) in words


def _behind(first: str, *unless: str) -> _Test:
    return lambda fault, place: fault.word(place - 1) == first and fault.word(place) not in unless


def _missing(word: str, ahead: int, *, in_condition: bool) -> Slip:
    def test(fault: Fault, place: int) -> bool:
        # AS AS would make a name of the first, and so would AS at the end.
        there = (fault.word(place - 1), fault.word(place))
        begun = word != "AS" or fault.words.last("SELECT", place) is not None
        fits = begun and fault.in_condition() == in_condition
        return fits and 0 < place < len(fault.words) and word not in there

    return Slip(_beside(ahead), test, word, f"put {word} {{put}}", put=True)


def _back(fault: Fault) -> Iterable[int]:
    return reversed(range(1, fault.index + 2))


def _is_name(fault: Fault, place: int) -> bool:
    return fault.word(place).isalpha() and fault.word(place - 1) in _BEFORE_NAMES


def _is_item(fault: Fault, place: int) -> bool:
    return place > 0 and not fault.in_condition()


def _is_double(fault: Fault, place: int) -> bool:
    return fault.word(place) == fault.word(place - 1) != ""


def _is_length(fault: Fault, place: int) -> bool:
    return fault.word(place + 1) in UNIT_WORDS and fault.written(place).isdigit()


def _is_statement(fault: Fault, place: int) -> bool:
    return place > 0 and fault.word(place) in _STATEMENTS


def _top(fault: Fault) -> Iterator[Guess]:
    """``TOP n`` is LIMIT."""
    place, end = fault.index - 1, len(fault.words)
    if fault.word(place) == "TOP" and place + 2 < end:
        number, rest = fault.written(place + 1), fault.words.text(place + 2, end)
        offer = f"LIMIT {number} at the end, in place of TOP {number}"
        yield fault.guess(place, end, f"{rest} LIMIT {number}", offer)


def _lengths(fault: Fault) -> Iterator[Guess]:
    """``5 MINUTE`` and ``INTERVAL 5 MINUTE``, with the quotes that both dialects take."""
    for place in range(max(fault.index - 3, 0), fault.index + 1):
        if _is_length(fault, place):
            text = "" if fault.word(place - 1) == "INTERVAL" else "INTERVAL "
            quoted = f"'{fault.written(place)}'"
            yield fault.guess(place, place + 1, text + quoted, f"INTERVAL {quoted} {fault.word(place + 1)}")


def _brackets(fault: Fault) -> Iterator[Guess]:
    for number in range(1, fault.open("(", ")") + 1):
        for place in (*fault.ends_of_parts(), *fault.earlier()):
            yield fault.guess(place, place, ")" * number, "put {text} {put}")


def _lists(fault: Fault) -> Iterator[Guess]:
    """A list without its brackets, to the end."""
    end = len(fault.words)
    for place in (fault.index, fault.index - 1, fault.index - 2):
        created = place == fault.index and fault.word(0) == "CREATE"
        if 0 < place < end and (fault.word(place - 1) in _LISTED or created):
            listed = f"({fault.words.text(place, end)})"
            yield fault.guess(place, end, listed, "put the list in brackets: {text}")


_SLIPS: tuple[Callable[[Fault], Iterator[Guess]], ...] = (
    Slip(_beside(-1, 0), _is(","), "", "take the comma away"),
    *(
        Slip(
            _back, _behind(first, second, "OUTER", "SEMI", "ANTI", "("), second, f"did you mean {first} {second}?", True
        )
        for second, words in (("BY", ("GROUP", "ORDER", "PARTITION")), ("JOIN", ("LEFT", "RIGHT", "FULL")))
        for first in words
    ),
    Slip(_beside(0), _behind("UNION", "ALL", "DISTINCT"), "ALL", "put ALL {put}, or DISTINCT", True),
    Slip(_beside(0), _behind("SELECT"), "*", "for all columns: SELECT *", True),
    _top,
    Slip(lambda fault: range(1, len(fault.words) + 1), _behind("CASE", "WHEN"), "WHEN", "put WHEN after CASE", True),
    Slip(Fault.ends_of_parts, lambda fault, place: fault.open("CASE", "END") > 0, "END", "put END {put}", True),
    _brackets,
    Slip(_beside(0), _is(")"), "", "take the ) away: it closes nothing"),
    *(Slip(_beside(0, -1), _is(word), instead, f"{instead} in place of {word}") for word, instead in _INSTEAD),
    _lengths,
    Slip(_beside(0), _is_statement, ";", "put ; {put}", True),
    Slip(_beside(0), _is_double, "", "{word} once"),
    Slip(_beside(0, -1), _is("AS"), "name", "put a name before AS", True),
    *(
        _missing(word, ahead, in_condition=word == "AND")
        for ahead in (0, -1)
        for word in ("AND", "AS", "JOIN", "FROM", "ON")
    ),
    Slip(_beside(0), _is_item, ",", "put a comma {put}", True),
    Slip(_beside(-1, 0), _is_name, '"{written}"', "{word} is a word of SQL; as a name: {text}"),
    _lists,
)
"""The likeliest first."""


def edits(words: Words, index: int) -> Iterator[Guess]:
    """What may be meant by a statement that cannot be read on at a token, or, at the number of them, at its end."""
    fault = Fault(words, index)
    return chain.from_iterable(slip(fault) for slip in _SLIPS)
