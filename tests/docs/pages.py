"""The documentation as the tests read it: pages, their tables, their code, their links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.paths import ROOT

DOCS = ROOT / "docs"
_CODE = re.compile(r"`([^`\n]+)`")
_CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    @staticmethod
    def of(name: str) -> Page:
        """``name`` as from the root of the checkout: ``docs/time.md``."""
        return Page(ROOT / name)

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def prose(self) -> str:
        """The text without its blocks of code."""
        return re.sub(r"^( *)```.*?^\1```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    @property
    def code(self) -> list[str]:
        """The pieces of code inside the prose."""
        return _CODE.findall(self.prose)

    def blocks(self, language: str) -> list[str]:
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL)

    @property
    def links(self) -> list[str]:
        return re.findall(r"\]\(([^)\s]+)\)", self.prose)

    @property
    def anchors(self) -> set[str]:
        """What ``#..`` of a link may name: the headings, as hosts of Markdown spell them."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    def rows(self, *header: str) -> list[tuple[str, ...]]:
        """The rows of all tables with this header."""
        found: list[tuple[str, ...]] = []
        inside = False
        for line in self.prose.splitlines():
            row = cells(line)
            inside = row == header or (inside and bool(row))
            if inside and row != header and set("".join(row)) - set("-: "):
                found.append(row)
        assert found, f"{self.name} has no table with the header {header}"
        return found


def cells(line: str) -> tuple[str, ...]:
    """The cells of a line of a table; none where it is no such line."""
    if not line.startswith("|"):
        return ()
    return tuple(cell.strip().replace("\\|", "|") for cell in _CELL.split(line)[1:-1])


def code_of(cell: str) -> list[str]:
    return _CODE.findall(cell)


README = Page.of("README.md")
DOC_PAGES = [Page.of("CONTRIBUTING.md"), *(Page(path) for path in sorted(DOCS.rglob("*.md")))]
PAGES = [README, Page.of("CHANGELOG.md"), *DOC_PAGES]
