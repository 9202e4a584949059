"""However a statement is broken, it is refused with what, where and fix, in words that are not those of a library."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest

from dovetail.changelog.errors import DovetailError, InternalError, SyntaxFault
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.parse import parse, pieces
from dovetail.sql.syntax.statement_forms import FORMS, form_of
from tests.paths import ROOT
from tests.tries import tries

FOREIGN = re.compile(r"\b(Expected|Expecting|sqlglot|exp\.|DuckDB|\w*Error\b|TokenType|NoneType|Required keyword)")
"""What a library would say: our own messages begin with a small letter."""


@cache
def statements() -> tuple[str, ...]:
    """Those of the pages and examples that can be read."""
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
    scripts = [block for page in pages for block in re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL)]
    scripts += [path.read_text() for path in sorted((ROOT / "examples").rglob("*.sql"))]
    found = [script[part.start : part.end] for script in scripts for part in pieces(script)]
    return tuple(dict.fromkeys([*(one for one in found if fault_of(one) is None), *FORMS.values()]))


def fault_of(text: str) -> DovetailError | None:
    try:
        parse(text)
    except DovetailError as fault:
        return fault
    return None


def broken(chance: random.Random) -> str:
    """A statement with some of its tokens left out, doubled, swapped, or put in from another."""
    text, other = chance.choice(statements()), chance.choice(statements())
    words, others = words_of(text), words_of(other)
    for _ in range(chance.randint(1, 2)):
        at = chance.randrange(len(words))
        match chance.randrange(4):
            case 0:
                del words[at]
            case 1:
                words.insert(at, words[at])
            case 2:
                words[at : at + 2] = reversed(words[at : at + 2])
            case _:
                words.insert(at, chance.choice(others))
        words = words or ["SELECT"]
    return " ".join(words)


@cache
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(text[token.start : token.end + 1] for token in Dovetail().tokenize(text))


def words_of(text: str) -> list[str]:
    return list(_tokens(text))


def examples() -> Iterator[str]:
    chance = random.Random(7)
    return (broken(chance) for _ in range(tries(1_500)))


def test_what_is_broken_is_refused_in_our_words() -> None:
    wrong: list[str] = []
    refused = 0
    for text in examples():
        fault = fault_of(text)
        if fault is None:
            continue
        refused += 1
        told = f"{fault.what}\n{fault.fix}"
        if isinstance(fault, InternalError) or not (fault.what and fault.where and fault.fix) or FOREIGN.search(told):
            wrong.append(f"{text}\n  {type(fault).__name__}: {fault.what} | {fault.fix}")
    assert wrong == []
    assert refused > 0


@pytest.mark.parametrize("words", list(FORMS))
def test_the_form_of_each_statement_can_be_read(words: str) -> None:
    assert len(parse(FORMS[words])) == 1


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("SELECT a FROM o WHERE", "WHERE"),
        ("SELECT a FROM o GROUP BY a HAVING", "HAVING"),
        ("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a FROM o WHERE", "WHERE"),
        ("DELETE FROM o WHERE a =", "DELETE"),
        ("UPDATE t SET", "UPDATE"),
        ("CREATE OR REPLACE STREAM s (a int", "CREATE STREAM"),
        ("DROP TABLE", "DROP"),
        ("DESCRIBE", "DESCRIBE"),
    ],
)
def test_the_form_is_that_of_the_clause_or_the_statement(text: str, form: str) -> None:
    fault = fault_of(text)
    assert isinstance(fault, SyntaxFault)
    assert fault.fix in (f"the form is {FORMS[form]}", "put ) at the end")


def test_a_text_that_begins_as_nothing_has_no_form() -> None:
    assert form_of(["FOO"], "") == ""
