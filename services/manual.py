"""The documentation, which the package carries: its pages, and the sections that say something of some words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dovetail.changelog.errors import StackError, UnknownName
from dovetail.changelog.suggest import suggestion
from dovetail.runtime.packages import PACKAGE_ROOT

_FOLDER = PACKAGE_ROOT / "dovetail" / "docs"
_KINDS = ("", "joins", "tasks")
"""Folders of pages for users. Those for people who change Dovetail are not in the package."""
_START = "README"
_HOW = "dovetail docs NAME shows a page; dovetail docs WORDS the sections that have them in their heading"


@dataclass(frozen=True)
class Listing:
    """Pages, or sections: of each the page and its title or heading. ``note`` says what they are."""

    entries: Sequence[tuple[str, str]]
    note: str


def manual(words: str) -> str | Listing:
    """The page that ``words`` name, or each section whose heading has all of them, as Markdown; or in which sections
    else they stand. Without words, what pages there are.

    Raises UnknownName where nothing is called so, StackError where the package has no pages.
    """
    pages = _pages()
    if not words:
        return Listing(_contents(pages), _HOW)
    if (page := _page_of(words, pages)) is not None:
        return page.read_text()
    sections = list(_sections(pages))
    if about := _outermost([one for one in sections if one.is_about(words)]):
        return "\n\n".join(f"*{one.page}*\n\n{one.text}" for one in about)
    if mentions := [(one.page, one.heading) for one in sections if one.mentions(words)]:
        return Listing(mentions, f'no heading has "{words}"; these sections do: dovetail docs shows one by its heading')
    fix = suggestion(words, [*pages, *_last(pages)], listing="dovetail docs lists the pages")
    raise UnknownName(f'there is no page or word "{words}"', fix=fix)


def _pages() -> dict[str, Path]:
    """By their names, as ``joins/asof``."""
    found = {
        path.relative_to(_FOLDER).with_suffix("").as_posix(): path
        for kind in _KINDS
        for path in sorted((_FOLDER / kind).glob("*.md"))
    }
    if not found:
        fix = "read them where you have Dovetail from, or install its wheel, which has them"
        raise StackError("this installation has no pages", where=str(_FOLDER), fix=fix)
    return found


def _page_of(words: str, pages: Mapping[str, Path]) -> Path | None:
    """``joins/asof``, ``asof`` and ``ASOF`` are one page."""
    wanted = words.casefold().replace(" ", "-").removesuffix(".md").removeprefix("docs/")
    by_name = {name.casefold(): page for name, page in [*_last(pages).items(), *pages.items()]}
    return by_name.get(wanted)


def _last(pages: Mapping[str, Path]) -> dict[str, Path]:
    """By the names without the folder; a page that is in none comes first."""
    return {name.rpartition("/")[2]: page for name, page in reversed([*pages.items()])}


@dataclass(frozen=True)
class _Section:
    """A heading with what stands below it.

    text  the sections of smaller headings as well
    own   without those
    """

    page: str
    heading: str
    text: str
    own: str

    def mentions(self, words: str) -> bool:
        return all(word in self.own.casefold() for word in words.casefold().split())

    def is_about(self, words: str) -> bool:
        return all(word in self.heading.casefold() for word in words.casefold().split())


def _sections(pages: Mapping[str, Path]) -> Iterator[_Section]:
    for name, page in pages.items():
        lines = page.read_text().splitlines()
        headings = [(number, level) for number, level in enumerate(_levels(lines)) if level]
        for place, (start, level) in enumerate(headings):
            after = headings[place + 1 :]
            end = next((number for number, other in after if other <= level), len(lines))
            own_end = after[0][0] if after else len(lines)
            text, own = ("\n".join(lines[start:until]) for until in (end, own_end))
            yield _Section(name, lines[start].lstrip("# "), text, own)


def _outermost(sections: Sequence[_Section]) -> list[_Section]:
    """Without those that are part of another one."""
    found: list[_Section] = []
    for one in sections:
        if not (found and found[-1].page == one.page and one.text in found[-1].text):
            found.append(one)
    return found


def _levels(lines: Sequence[str]) -> Iterator[int]:
    """Of each line, that of its heading; 0 of one that is none."""
    in_code = False
    for line in lines:
        in_code ^= line.startswith("```")
        yield 0 if in_code else len(line) - len(line.lstrip("#"))


def _contents(pages: Mapping[str, Path]) -> list[tuple[str, str]]:
    """In the order in which the first page names them; those that it does not name after them."""
    named = [name for name in re.findall(r"\(([\w/-]+)\.md", pages[_START].read_text()) if name in pages]
    return [(name, _title(pages[name])) for name in dict.fromkeys([*named, *pages]) if name != _START]


def _title(page: Path) -> str:
    return next(line for line in page.read_text().splitlines() if line.startswith("# ")).removeprefix("# ")
