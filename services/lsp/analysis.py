"""A file as it stands: its statements, what is wrong with each, and what those before it have made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dovetail.changelog.errors import DovetailError, FunctionFault, Interrupted, TextPlace, UnknownName
from dovetail.changelog.work.interruption import expect_wanted
from dovetail.services.lsp.dry_bind import dry_bound
from dovetail.services.lsp.file_catalog import FileCatalog, NameChange
from dovetail.sql.catalog import Relation
from dovetail.sql.syntax.faults import unforeseen_as_errors
from dovetail.sql.syntax.parse import parse_one, pieces
from dovetail.sql.syntax.redact import redacted
from dovetail.sql.syntax.rules import Rules

_QUOTED = re.compile(r'"([^"]++)"')
_TOKEN = re.compile(r"\w++|\S")
_CREATED = re.compile(
    r"CREATE\b[\s\w]{0,60}?\b(?:STREAM|TABLE|SOURCE|VIEW|DICTIONARY|FUNCTION|INDEX)\s++(?:IF\s++NOT\s++EXISTS\s++)?"
    r"([\w.]++)",
    re.IGNORECASE,
)
_SAID = re.compile(r"^\s*+--\s*+dialect:\s*+(\w++)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """What is wrong with a statement, and where in its text.

    certain  whether it is an error wherever the statement is run
    """

    start: int
    end: int
    message: str
    certain: bool = True

    def moved(self, by: int) -> Finding:
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True)
class Checked:
    """A statement that has been looked at. ``names``: the version of all names, where they are part of the finding."""

    finding: Finding | None = None
    change: NameChange | None = None
    names: int = 0


class Analyst:
    """Of one file: what has not changed since the last look is not looked at again."""

    def __init__(self) -> None:
        self._known: dict[int, Checked] = {}
        self._checked: Sequence[Checked] = ()
        self._stack: Sequence[Relation] | None = None

    def findings(self, text: str, rules: Rules, stack: Sequence[Relation] | None) -> list[Finding]:
        """By their places in the text. Raises Interrupted."""
        catalog, parts, checked = FileCatalog(stack), pieces(text), list[Checked]()
        used: dict[int, Checked] = {}
        for part in parts:
            expect_wanted()
            written = text[part.start : part.end]
            key = hash((written, rules, stack is None, catalog.version(written)))
            one = self._known.get(key)
            if one is None or (one.names and one.names != catalog.names):
                one = self._known[key] = _checked(written, catalog, rules)
            used[key] = one
            checked.append(one)
            if one.change is not None:
                catalog.apply(one.change)
        self._known, self._checked, self._stack = used, checked, stack
        return [one.finding.moved(part.start) for part, one in zip(parts, checked, strict=True) if one.finding]

    def catalog_at(self, number: int) -> FileCatalog:
        """What statement ``number``, from 0, sees; of itself what it makes."""
        catalog = FileCatalog(self._stack)
        for one in self._checked[: number + 1]:
            if one.change is not None:
                catalog.apply(one.change)
        return catalog


def _checked(text: str, catalog: FileCatalog, rules: Rules) -> Checked:
    catalog.missed = catalog.hidden = False
    created = _CREATED.match(text)
    # What cannot be read or bound is there for later statements: one error is not told as many.
    unknown = NameChange(created[1]) if created else None
    try:
        with unforeseen_as_errors("checking it"):
            return Checked(change=dry_bound(parse_one(text, rules), catalog, rules))
    except Interrupted:
        raise
    except DovetailError as error:
        if catalog.hidden or isinstance(error, FunctionFault):
            return Checked(change=unknown)
        guessed = isinstance(error, UnknownName)
        finding = _finding(text, error, certain=not (guessed and catalog.missed))
        return Checked(finding, unknown, catalog.names if guessed else 0)


def _finding(text: str, error: DovetailError, *, certain: bool) -> Finding:
    message = redacted("\n".join(filter(None, [error.what, error.fix and f"fix: {error.fix}"])))
    start, end = _place(text, error)
    return Finding(start, end, message, certain)


def _place(text: str, error: DovetailError) -> tuple[int, int]:
    """Of the word that the error is about: where it says so itself; else of the last name that it quotes, or the first
    word.
    """
    if isinstance(error.where, TextPlace) and text.startswith(error.where.script):
        at = error.where.offset
    else:
        named = _QUOTED.findall(error.what)[-1:]
        at = next((found.start() for found in _TOKEN.finditer(text) if found[0] in named), 0)
    token = _TOKEN.match(text, at)
    return (token.start(), token.end()) if token else (max(0, len(text) - 1), len(text))


def dialect_said(text: str) -> Rules | None:
    """By a comment, ``-- dialect: timeplus``."""
    found = _SAID.search(text)
    return Rules(found[1].lower()) if found and found[1].lower() in list(Rules) else None
