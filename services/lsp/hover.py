"""What is said of a word of a statement: a function, a column, a relation, or a word of SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from dovetail.changelog.errors import DovetailError
from dovetail.services.completion import columns_of, columns_of_relation
from dovetail.services.lsp.file_catalog import FileCatalog
from dovetail.services.manual import manual
from dovetail.sql.expressions.dict_functions import USAGE
from dovetail.sql.functions.aggregate_calls import aggregate_names
from dovetail.sql.functions.dialects import DIALECTS
from dovetail.sql.functions.own_functions import usage_of
from dovetail.sql.syntax.calls import snake_case
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateFunction

_WORD = re.compile(r"[\w.]+")
_CODE = re.compile(r"`([^`]+)`")
_OPTIONAL = re.compile(r"\[[^\[\]]*\]")


class Said(NamedTuple):
    """Markdown about a word, and where that begins and ends."""

    text: str
    start: int
    end: int


def hover(statement: str, offset: int, catalog: FileCatalog, rules: Rules | None) -> Said | None:
    """About the word at ``offset``; None where nothing is known of it."""
    found = next((one for one in _WORD.finditer(statement) if one.start() <= offset <= one.end()), None)
    if found is None:
        return None
    called = statement[found.end() :].lstrip().startswith("(")
    alias, _, word = found[0].rpartition(".")
    texts = (
        _functions(word, catalog, rules) if called else (),
        _column(word, alias, statement, catalog),
        _relation(found[0], catalog),
        _functions(word, catalog, rules),
        _statement(word, statement),
        _page(word),
    )
    text = next(("\n\n".join(parts) for one in texts if (parts := list(one))), "")
    return Said(text, found.start(), found.end()) if text else None


def _functions(word: str, catalog: FileCatalog, rules: Rules | None) -> Iterator[str]:
    name = snake_case(word)
    own = catalog.function(word.lower())
    if own is not None:
        yield _code(f"{usage_of(own, rules or Rules.TIMEPLUS)} → {own.returns}")
    elif name in USAGE:
        yield _code(USAGE[name])
    elif name in aggregate_names():
        yield f"{_code(f'{name}(..)')}\n\nAn aggregate."
    for dialect in DIALECTS.values():
        function = dialect.registry.functions.get(name)
        if function is not None and rules in (None, dialect.rules):
            yield f"{_code(function.row.usage)}\n\n{function.row.meaning} ({dialect.registry.dialect})"


def _column(word: str, alias: str, statement: str, catalog: FileCatalog) -> Iterator[str]:
    types = {name.casefold(): one for name, one in columns_of(catalog.relations(), statement, alias).items()}
    if word.casefold() in types:
        yield _code(f"{word} {types[word.casefold()]}")


def _relation(name: str, catalog: FileCatalog) -> Iterator[str]:
    for relation in catalog.relations():
        if relation.name.casefold() == name.casefold() and not isinstance(relation.definition, CreateFunction):
            kind = "materialized view" if relation.materialized_view is not None else relation.what.value
            columns = [f"{column} {type_}" for column, type_ in columns_of_relation(relation).items()]
            yield _code("\n".join([f"{kind} {relation.name}", *columns]))


def _statement(word: str, statement: str) -> Iterator[str]:
    """The row of the page of statements whose words the statement begins with, the most of them."""
    begins = [one.upper() for one in _WORD.findall(statement)]
    fitting = [form for form in _forms() if word.upper() in form.words and form.begins(begins)]
    if fitting:
        best = max(fitting, key=lambda form: (len(form.words), len(form.code)))
        yield f"{_code(best.code)}\n\n{best.meaning}"


class _Form(NamedTuple):
    """A form on the page of statements: the words that it begins with, and what it does."""

    code: str
    words: list[str]
    meaning: str

    def begins(self, words: list[str]) -> bool:
        left = iter(words)
        return self.words[0] == words[0] and all(word in left for word in self.words)


@cache
def _forms() -> list[_Form]:
    lines = [line[2:-2].partition(" | ") for line in _manual("statements").splitlines() if line.startswith("| `")]
    forms = [_Form(code, _leading(code), meaning) for codes, _, meaning in lines for code in _CODE.findall(codes)]
    return [form for form in forms if form.words]


def _leading(code: str) -> list[str]:
    return list(takewhile(lambda word: word.isupper() and word.isalpha(), _OPTIONAL.sub("", code).split()))


def _page(word: str) -> Iterator[str]:
    """The first paragraph of what ``help`` says of a word, where a page is called so, or a heading begins so."""
    head, _, rest = _manual(word.lower()).removeprefix("# ").partition("\n\n")
    blocks = [block for block in rest.split("\n\n") if not block.startswith(("#", "```", "|"))]
    if head.casefold().startswith(word.casefold()) and blocks:
        yield f"**{head}**\n\n{blocks[0]}"


@cache
def _manual(words: str) -> str:
    try:
        found = manual(words)
    except DovetailError:
        return ""
    return found if isinstance(found, str) else ""


def _code(text: str) -> str:
    return f"```sql\n{text}\n```"
