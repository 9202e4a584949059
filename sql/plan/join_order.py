"""The order in which the inputs of a chain of joins meet: a tree, as the rule ``join_order`` chooses it and as the
setting of that name says it.

    ((orders customers) (lines parts))      of four inputs two and two, and then what both make
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dovetail.changelog.errors import SqlError


@dataclass(frozen=True)
class JoinPair:
    """Two sides of a join: inputs, by their names, and joins of them."""

    left: JoinTree
    right: JoinTree

    def __str__(self) -> str:
        return f"({_text(self.left)} {_text(self.right)})"


JoinTree = JoinPair | str


@dataclass(frozen=True)
class JoinOrder:
    """An order that is not the one of the text, and why it was taken.

    between  about how many rows the joins below the last one make, which are kept for the next of them; None: nobody
             has asked, the setting says the order
    written  as many in the order of the text
    rows     about how many rows each input has, in the order of the text
    """

    tree: JoinPair
    between: float | None = None
    written: float | None = None
    rows: Mapping[str, float] | None = None

    @property
    def readable(self) -> str:
        if self.between is None or self.written is None or self.rows is None:
            return f"Join order {self.tree}  as SETTINGS join_order has it"
        inputs = ", ".join(f"{name} {about(rows)}" for name, rows in self.rows.items())
        kept = f"about {about(self.between)} rows kept between joins, as written {about(self.written)}"
        return f"Join order {self.tree}  {kept}  estimated rows: {inputs}"


def inputs_of_tree(tree: JoinTree) -> Iterator[str]:
    """The inputs, from left to right."""
    if isinstance(tree, JoinPair):
        yield from inputs_of_tree(tree.left)
        yield from inputs_of_tree(tree.right)
    else:
        yield tree


def orders_text(trees: tuple[JoinPair, ...]) -> str:
    """As the setting has them; ``read_orders`` reads it."""
    return ", ".join(map(str, trees))


def read_orders(text: str) -> tuple[JoinPair, ...]:
    """The trees that a text names. Raises SqlError for one that names none."""
    read = words_of(text)
    if read is None:
        raise _unreadable(text)
    words, trees = deque(read), list[JoinPair]()
    while words:
        if trees and words.popleft() != ",":
            raise _unreadable(text)
        tree = _tree(words, text)
        if not isinstance(tree, JoinPair):
            raise _unreadable(text)
        trees.append(tree)
    return tuple(trees)


_WORDS = re.compile(r'[(),]|"(?:[^"]|"")*"|[^\s(),"]+')


def words_of(text: str) -> list[str] | None:
    """Names, brackets and commas; None where there is something else."""
    words = _WORDS.findall(text)
    return words if len("".join("".join(words).split())) == len("".join(text.split())) else None


def _tree(words: deque[str], text: str) -> JoinTree:
    word = words.popleft() if words else ""
    if word == "(":
        pair = JoinPair(_tree(words, text), _tree(words, text))
        if not words or words.popleft() != ")":
            raise _unreadable(text)
        return pair
    if word in ("", ")", ","):
        raise _unreadable(text)
    return plain_name(word)


def plain_name(word: str) -> str:
    """Without its quotes."""
    return word[1:-1].replace('""', '"') if word.startswith('"') else word


def _unreadable(text: str) -> SqlError:
    return SqlError(
        f"join_order cannot be {text!r}",
        where="SETTINGS join_order",
        fix="write each join as a pair in brackets, by the aliases of its inputs: '((a c) b)'; several chains with "
        "commas between; EXPLAIN shows the order that is taken without it",
    )


def _text(tree: JoinTree) -> str:
    return str(tree) if isinstance(tree, JoinPair) else input_text(tree)


def input_text(name: str) -> str:
    """The name of an input, in quotes where it needs them."""
    return name if re.fullmatch(r'[^\s(),"]+', name) else '"' + name.replace('"', '""') + '"'


def about(rows: float) -> str:
    """With two digits that say something."""
    whole = round(rows)
    return f"{round(whole, 2 - len(str(whole))):,}"
