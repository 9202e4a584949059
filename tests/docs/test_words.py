"""No page and no message has a word in a sense that only we know, or one that nobody says any more."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dovetail.services.cli.main import app
from tests.docs.pages import DOC_PAGES, DOCS, README, Page
from tests.paths import ROOT
from tests.test_layers import PRESENT

REFUSED = {
    "anew": "again",
    "for ever": "forever",
    "forever[a-z]+": "for every",
    r"hangs? on": "depends on",
    r"(?<!there )is none(?=[ .,;:])": "is not one",
    r"mend(s|ed|ing)?": "fix",
    "nobody": "no one",
    r"(?<!half )stands? (behind|beside|below|in)": "is in, follows, is allowed in",
    "told of": "reported",
    "whoever": "anyone who",
}
"""What is refused, and what is said in its place."""
FOR_USERS = [README, *(page for page in DOC_PAGES if (DOCS / "decisions") not in page.path.parents)]
_WORDS = re.compile(rf"\b({'|'.join(REFUSED)})\b", re.IGNORECASE)


def refused_in(text: str) -> list[str]:
    """Code is not looked at."""
    plain = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL)
    return [plain[max(found.start() - 40, 0) : found.end() + 20] for found in _WORDS.finditer(plain)]


def messages(path: Path) -> Iterator[ast.Constant]:
    """The texts of a module that are no docstrings, nor texts below a name."""
    tree = ast.parse(path.read_text())
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node


def in_messages(layer: str, look: Callable[[str], Iterable[str]]) -> list[str]:
    """What is found in the texts of a layer, with the place of each."""
    return [
        f"{path.relative_to(ROOT)}:{text.lineno}: {found}"
        for path in (ROOT / layer).rglob("*.py")
        for text in messages(path)
        for found in look(str(text.value))
    ]


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: page.name)
def test_a_page_is_in_plain_words(page: Page) -> None:
    assert refused_in(page.text) == []


@pytest.mark.parametrize("layer", PRESENT)
def test_messages_are_in_plain_words(layer: str) -> None:
    assert in_messages(layer, refused_in) == []


def helps(command: Any) -> Iterator[str]:
    """What --help says of a command, its options and those below it."""
    yield from filter(None, [command.help, *(getattr(one, "help", None) for one in command.params)])
    for below in getattr(command, "commands", {}).values():
        yield from helps(below)


def test_the_help_of_commands_is_in_plain_words() -> None:
    texts = list(helps(typer.main.get_command(app)))
    assert texts
    assert [found for text in texts for found in (*refused_in(text), *long_sentences(text))] == []


def test_what_is_refused_is_found() -> None:
    assert refused_in("It is made anew; see `anew` and [this](anew.md).") == ["It is made anew; see  and [this."]


MOST_WORDS = 30


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: page.name)
def test_a_sentence_is_read_in_one_go(page: Page) -> None:
    assert long_sentences(page.prose) == []


def long_sentences(prose: str) -> list[str]:
    return [sentence for sentence in sentences(prose) if len(re.findall(r"[\w'-]+", sentence)) > MOST_WORDS]


def sentences(prose: str) -> Iterator[str]:
    """The sentences of paragraphs and items, cut at colons and semicolons too; code is not counted, nor are tables."""
    text = re.sub(r"`[^`]*`", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", prose))
    text = re.sub(r"^(\||#| {4}).*$", "", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|^\s*(?:[-*]|\d+\.) ", text, flags=re.MULTILINE):
        yield from re.split(r"(?<=[.!?;:])\s+| · ", " ".join(paragraph.split()))


_PROSE = re.compile(r"[A-Za-z ,'\"().:-]+")
"""Of the texts of modules the others are patterns, scripts and settings of servers."""


@pytest.mark.parametrize("layer", PRESENT)
def test_a_message_is_read_in_one_go(layer: str) -> None:
    assert in_messages(layer, lambda text: filter(_PROSE.fullmatch, long_sentences(text))) == []
