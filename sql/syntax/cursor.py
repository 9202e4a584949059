"""A cursor over the tokens of one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from dovetail.changelog.errors import SqlError, SyntaxFault
from dovetail.changelog.suggest import LIKE_ENOUGH, Guess, likeness
from dovetail.sql.syntax.calls import DATABASES, DEAD_LETTERS, SCHEMAS_OF_ALL
from dovetail.sql.syntax.faults import fault_at
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statement_forms import form_of
from dovetail.sql.syntax.statements import Span

T = TypeVar("T")
_MOST_DIGITS = 18
_MOST_WORDS = 5
"""How many words of a statement tell what it is."""

_QUOTED = frozenset({TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.HEREDOC_STRING})
_WANTING = frozenset({
    *("SELECT", "DISTINCT", "FROM", "JOIN", "ON", "USING", "PREWHERE", "WHERE", "BY", "HAVING", "QUALIFY", "AS"),
    *("AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE"),
})  # fmt: skip
"""Words after which a name or a value must come."""


class Cursor:
    """Reads forward over ``tokens``, those of one statement of ``script``; errors name ``clause`` as the part read.

    ``rules`` say whose expressions are read; ``settings`` are the values of settings that were read, ``elements`` what
    stands in the brackets of a CREATE; ``awaited`` the phrases, or ends of them, that were looked for at the end.
    """

    def __init__(self, script: str, tokens: list[Token], clause: str = "", rules: Rules = Rules.TIMEPLUS) -> None:
        self.script = script
        self.tokens = tokens
        self.index = 0
        self.clause = clause
        self.rules = rules
        self.settings: list[Span] = []
        self.elements: list[Span] = []
        self.awaited: dict[str, None] = {}

    def copy(self) -> Cursor:
        """Another one at the same token."""
        made = Cursor(self.script, self.tokens, self.clause, self.rules)
        made.index, made.awaited = self.index, self.awaited
        return made

    # -- looking --

    @property
    def done(self) -> bool:
        return self.index >= len(self.tokens)

    @property
    def current(self) -> Token | None:
        return None if self.done else self.tokens[self.index]

    def word(self, ahead: int = 0) -> str:
        """The word ``ahead`` of the cursor in upper case; '' for a quoted name, a literal, or the end."""
        at = self.index + ahead
        return word_of(self.tokens[at]) if at < len(self.tokens) else ""

    def at(self, *phrases: str) -> bool:
        """Whether one of ``phrases`` (words apart by blanks) comes next."""
        return any(self._length(phrase) for phrase in phrases)

    def refused(self, phrases: Iterable[str]) -> str:
        """The one of ``phrases`` that comes next, or '': they are known, and nobody is to write them."""
        return next((phrase for phrase in phrases if self._length(phrase, awaits=False)), "")

    def _length(self, phrase: str, *, awaits: bool = True) -> int:
        """The number of tokens that ``phrase`` takes here; 0 where it is not. A token may be two words (ORDER BY)."""
        words, read, ahead = phrase.split(), 0, 0
        while read < len(words):
            here = self.word(ahead).split()
            if awaits and self.index + ahead == len(self.tokens):
                self.awaited[" ".join(words[read:])] = None
            if not here or words[read : read + len(here)] != here:
                return 0
            read, ahead = read + len(here), ahead + 1
        return ahead

    @property
    def at_string(self) -> bool:
        token = self.current
        return token is not None and token.token_type == TokenType.STRING

    @property
    def at_operand(self) -> bool:
        """Whether what comes next is a name or a value, be it a word of SQL: the token before wants one."""
        before = self.tokens[self.index - 1] if self.index else None
        if before is None or before.token_type in _QUOTED:
            return False
        *_, word = before.text.upper().split()
        return word in _WANTING or not (word[0].isalnum() or word[0] in "_)]}")

    # -- reading --

    def accept(self, *phrases: str) -> str:
        """The one of ``phrases`` that comes next, read; else ''."""
        for phrase in phrases:
            if length := self._length(phrase):
                self.index += length
                return phrase
        return ""

    def accept_last(self, phrase: str) -> bool:
        """Whether the statement ends with ``phrase``, which is taken off its end then: the rest is read without it."""
        words = phrase.split()
        ahead = len(self.tokens) - self.index - len(words)
        found = ahead > 0 and [self.word(ahead + place) for place in range(len(words))] == words
        if found:
            del self.tokens[-len(words) :]
        return found

    def take_clause(self, word: str) -> str:
        """The text behind the last ``word`` that stands in no brackets, which is taken off the statement with it; '':
        there is none.
        """
        depth, place = 0, -1
        for index, token in enumerate(self.tokens[self.index :], start=self.index):
            if token.token_type in _QUOTED:
                continue
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            if depth == 0 and token.text.upper() == word:
                place = index
        if place <= self.index or place + 1 == len(self.tokens):
            return ""
        text = self.script[self.tokens[place + 1].start : int(self.tokens[-1].end) + 1]
        del self.tokens[place:]
        return text

    def expect(self, *phrases: str, fix: str = "") -> str:
        found = self.accept(*phrases)
        if not found:
            self.fail_expecting(*phrases, fix=fix)
        return found

    def guesses(self, phrases: Iterable[str]) -> list[Guess]:
        """The phrases that are like as many words from the cursor on."""
        found = [guess for phrase in phrases if (guess := self._guess(phrase))]
        return sorted(found, key=lambda guess: -likeness(self.script[guess.start : guess.end], guess.word))

    def _guess(self, phrase: str) -> Guess | None:
        tokens = self.tokens[self.index : self.index + len(phrase.split())]
        if not tokens or any(token.token_type in _QUOTED for token in tokens):
            return None
        start, end = tokens[0].start, tokens[-1].end + 1
        alike = likeness(" ".join(self.script[start:end].split()), phrase) >= LIKE_ENOUGH
        return Guess(start, end, phrase, f"did you mean {phrase}?") if alike else None

    def advance(self) -> Token:
        token = self.current
        if token is None:
            self.fail("the statement ends too early")
        self.index += 1
        return token

    def name(self, what: str = "a name") -> str:
        """An identifier, quoted or bare; any keyword will do where a name must stand."""
        token = self.current
        if token is None or not is_name(token):
            self.fail(f"expected {what}, found {self.found}")
        self.index += 1
        return token.text

    def path(self, what: str = "a name") -> str:
        """A name, and before it a schema or none; ``default.x`` and ``public.x`` are x."""
        offset, first = self.offset, self.name(what)
        if not self.accept("."):
            return first
        last = self.name(what)
        if first.lower() in DATABASES:
            return last
        if first.lower() in SCHEMAS_OF_ALL or last == DEAD_LETTERS:
            self.fail(f'"{first}.{last}" is not yours to name', fix=f"{first}_{last}, or another schema", offset=offset)
        return f"{first}.{last}"

    def dotted(self, what: str = "a setting") -> str:
        """A name with dots in it, as ``properties.bootstrap.server``."""
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name(what))
        return ".".join(parts)

    def string(self, what: str = "a string") -> str:
        if not self.at_string:
            self.fail(f"expected {what} in single quotes, found {self.found}")
        return str(self.advance().text)

    def integer(self, what: str = "a whole number") -> int:
        token = self.current
        if token is None or token.token_type != TokenType.NUMBER or not is_whole(token):
            self.fail(f"expected {what}, found {self.found}")
        self.index += 1
        return int(token.text)

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """``item, item, ..`` up to what is no comma."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def wrapped(self, item: Callable[[], T]) -> tuple[T, ...]:
        """``(item, item, ..)``."""
        self.expect("(")
        items = self.listed(item)
        self.expect(")")
        return items

    def nested(self) -> list[Token]:
        """The tokens up to the comma or closing bracket that ends this item, brackets within it included."""
        start, depth = self.index, 0
        while not self.done:
            word = self.word()
            if depth == 0 and word in (",", ")"):
                break
            depth += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
            self.index += 1
        return self.tokens[start : self.index]

    def nested_until(self, *words: str) -> list[Token]:
        """As ``nested``, but one of ``words`` ends it too."""
        start = self.index
        tokens = self.nested()
        for count, token in enumerate(tokens[1:], start=1):
            if token.token_type not in _QUOTED and token.text.upper() in words:
                self.index = start + count
                return tokens[:count]
        return tokens

    def rest(self) -> list[Token]:
        """All the tokens that are left."""
        tokens, self.index = self.tokens[self.index :], len(self.tokens)
        return tokens

    def end(self) -> None:
        if not self.done:
            self.fail(f"the statement should end here, found {self.found}")

    def span(self, name: str, first: int) -> Span:
        """What has been read since the token ``first``."""
        return Span(name, int(self.tokens[first].start), int(self.tokens[self.index - 1].end) + 1)

    # -- failing --

    @property
    def offset(self) -> int:
        """Where the cursor stands in the script; past the last token at the end."""
        token = self.current
        if token is not None:
            return int(token.start)
        return int(self.tokens[-1].end) + 1 if self.tokens else len(self.script)

    @property
    def found(self) -> str:
        token = self.current
        return "the end of the statement" if token is None else self.written(token)

    def written(self, token: Token) -> str:
        """A token as the script has it; a text is not repeated, as it may be a password in a wrong place."""
        return "a text" if token.token_type == TokenType.STRING else self.script[token.start : token.end + 1]

    def fail_expecting(self, *phrases: str, fix: str = "") -> NoReturn:
        guesses = [] if fix else self.guesses([phrase for phrase in phrases if phrase.isupper()])
        self.fail(f"expected {_either(phrases)}, found {self.found}", fix=fix, guesses=guesses)

    def fail(
        self,
        what: str,
        *,
        fix: str = "",
        kind: type[SqlError] = SyntaxFault,
        offset: int | None = None,
        guesses: Sequence[Guess] = (),
    ) -> NoReturn:
        at = self.offset if offset is None else offset
        fault = fault_at(self.script, at, what, clause=self.clause, fix=fix, kind=kind)
        if isinstance(fault, SyntaxFault):
            fault.guesses = guesses
            fault.form = form_of([word_of(token) for token in self.tokens[:_MOST_WORDS]], self.clause)
        raise fault


def word_of(token: Token) -> str:
    """The word of a token in upper case; '' for a quoted name or a literal."""
    return "" if token.token_type in _QUOTED else " ".join(token.text.upper().split())


def is_whole(token: Token) -> bool:
    """Whether its digits are a whole number that 64 bits can hold."""
    return token.text.isdigit() and len(token.text) <= _MOST_DIGITS


def _either(phrases: Sequence[str]) -> str:
    """``A, B or C``, punctuation in quotes."""
    shown = [phrase if phrase.isupper() else f'"{phrase}"' for phrase in phrases]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def is_name(token: Token) -> bool:
    """Whether the token can stand for a name: a quoted identifier, or a word."""
    if token.token_type == TokenType.IDENTIFIER:
        return True
    text: str = token.text
    return token.token_type not in _QUOTED and bool(text) and (text[0].isalpha() or text[0] == "_")
