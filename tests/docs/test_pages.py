"""Pages are found, their links lead somewhere, and the files and modules that they name exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.docs.pages import DOC_PAGES, DOCS, PAGES, README, Page, code_of
from tests.paths import ROOT
from tests.test_layers import LAYERS, imports, sources

INDEX = Page(DOCS / "README.md")
ARCHITECTURE = Page(DOCS / "architecture.md")
TOP = sorted(path.name for path in ROOT.iterdir() if not path.name.startswith("."))
_FILE = re.compile(r"[\w./<>-]+\.(py|sql|md|ya?ml|lock|toml)")
_SKIPPED = {".venv", ".dovetail", ".git", "build"}


def target(page: Page, link: str) -> tuple[Path, str]:
    """The file that a link leads to, and the heading there."""
    path, _, anchor = link.partition("#")
    return ((page.path.parent / path) if path else page.path).resolve(), anchor


def is_local(link: str) -> bool:
    return "://" not in link


FURTHER = [Page.of("tests/cases/README.md"), *(Page(path) for path in sorted((ROOT / "examples").glob("*/*.md")))]


@pytest.mark.parametrize("page", [*PAGES, *FURTHER], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    broken = []
    for link in filter(is_local, page.links):
        path, anchor = target(page, link)
        if not path.exists() or (anchor and anchor not in Page(path).anchors):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_decision_is_called_by_the_number_of_its_page(page: Page) -> None:
    called = re.findall(r"\[[Dd]ecision (\d+)\]\([^)\s]*?(\d{4})-[^)\s]*\)", page.prose)
    assert [pair for pair in called if int(pair[0]) != int(pair[1])] == []


@pytest.mark.parametrize("page", [README, *DOC_PAGES], ids=lambda page: page.name)
def test_no_page_is_longer_than_one_reads(page: Page) -> None:
    assert len(page.text.splitlines()) <= 300


def test_every_page_is_reached_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [INDEX]
    while waiting:
        page = waiting.pop()
        if page.path not in reached:
            reached.add(page.path)
            found = [target(page, link)[0] for link in filter(is_local, page.links)]
            waiting += [Page(path) for path in found if path.suffix == ".md"]
    assert {page.path for page in DOC_PAGES} <= reached


def test_the_index_names_every_page_itself() -> None:
    named = {target(INDEX, link)[0] for link in INDEX.links}
    assert {page.path for page in DOC_PAGES} - {INDEX.path} <= named


def test_the_front_page_leads_to_the_index() -> None:
    assert "docs/README.md" in README.links


def model_of(page: Page) -> str:
    """What stands for ``<kind>`` in the paths of a page: the kind that it takes as its model."""
    found = re.search(r"The model is `([\w.]+)`[:.]", page.text)
    return found.group(1) if found else ""


def exists(name: str) -> bool:
    """Whether there is such a file or folder in the checkout; for a bare file name, anywhere in it."""
    if name.split("/", maxsplit=1)[0] in TOP:
        return (ROOT / name).exists()
    found = (path for path in ROOT.rglob(name.rstrip("/")) if not _SKIPPED & set(path.relative_to(ROOT).parts))
    return next(found, None) is not None


def paths_of(page: Page) -> list[str]:
    """The pieces of code that name a file, or a folder under one of the top."""
    names = [code.replace("<kind>", model_of(page)) for code in page.code]
    return [
        name
        for name in names
        if (_FILE.fullmatch(name) or (re.fullmatch(r"[\w./-]+/[\w./-]*", name) and name.split("/")[0] in TOP))
        and not name.startswith(".")
    ]


@pytest.mark.parametrize("page", [README, *DOC_PAGES], ids=lambda page: page.name)
def test_files_on_a_page_exist(page: Page) -> None:
    assert [name for name in paths_of(page) if not exists(name)] == []


@pytest.mark.parametrize("page", [README, *DOC_PAGES], ids=lambda page: page.name)
def test_modules_on_a_page_exist(page: Page) -> None:
    # The topics and headers of Dovetail begin with `dovetail.` too.
    layers = "|".join([*(set(LAYERS) - {"dovetail"}), "tests", "benchmarks"])
    named = re.findall(rf"\b(?:python -m )?((?:{layers})(?:\.[a-z_]+)+)\b(?![/(])", "\n".join(page.code))
    names = [name for name in named if not _FILE.fullmatch(name)]
    places = [ROOT / name.replace(".", "/") for name in names]
    assert [str(place) for place in places if not (place.is_dir() or place.with_suffix(".py").is_file())] == []


@pytest.mark.parametrize("page", sorted((DOCS / "contributing").glob("*.md")), ids=lambda path: path.stem)
def test_the_files_to_touch_exist_for_the_model(page: Path) -> None:
    rows = Page(page).rows("", "file", "what it says")
    numbers = [int(row[0]) for row in rows]
    files = [name for row in rows for name in re.findall(r"`([^`]+)`", row[1])]
    model = model_of(Page(page))
    assert model
    assert numbers == list(range(1, len(rows) + 1))
    assert [file for file in files if not (ROOT / file.replace("<kind>", model)).exists()] == []


@cache
def imported_layers() -> dict[str, set[str]]:
    """Each layer, with the others that it imports from."""
    found = {
        name: {imported for path in sources(name) for imported in imports(ast.parse(path.read_text()))}
        for name in LAYERS
    }
    return {name: (origins & set(LAYERS)) - {name} for name, origins in found.items()}


def test_the_architecture_has_all_layers_with_what_they_import() -> None:
    rows = ARCHITECTURE.rows("layer", "holds", "imports, besides libraries")
    assert {row[0].strip("`/"): set(code_of(row[2])) for row in rows} == imported_layers()


def test_the_diagram_has_all_layers_and_what_they_reach() -> None:
    [drawn] = [block for block in ARCHITECTURE.blocks("mermaid") if "flowchart BT" in block]
    assert set(re.findall(r"^  (\w+)\[", drawn, re.MULTILINE)) == set(LAYERS)
    arrows = re.findall(r"^  (\w+)(?:\[[^\]]*\])? --> (\w+)$", drawn, re.MULTILINE)
    below, imported = dict[str, set[str]](), imported_layers()
    for name in TopologicalSorter(imported).static_order():
        ends = {lower for upper, lower in arrows if upper == name}
        assert ends <= imported[name]
        below[name] = ends.union(*(below[end] for end in ends))
        assert below[name] >= imported[name], name


def test_the_architecture_has_all_packages_and_no_other() -> None:
    folders = [path.parent for name in LAYERS for path in (ROOT / name).glob("*/__init__.py")]
    packages = {f"{folder.relative_to(ROOT)}/" for folder in folders if not folder.is_symlink()}
    assert {code_of(row[0])[0] for row in ARCHITECTURE.rows("package", "holds")} == packages
