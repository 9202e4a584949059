"""The files of the page: what is vendored is what its list says, and what is ours keeps to the rules."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import httpx
import pytest

from dovetail.services.serve.routes.page import FOLDER, POLICY
from tests.docs.pages import Page, code_of
from tests.paths import ROOT
from tests.services.serve.world import World, error_of

VENDOR = FOLDER / "vendor"
MODULES = sorted((FOLDER / "modules").glob("*.js"))
_MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|style=")


def get(world: World, path: str) -> httpx.Response:
    response = world.with_client(lambda client: client.get(path))
    assert isinstance(response, httpx.Response)
    return response


def test_what_is_vendored_is_listed_with_its_version_and_hash() -> None:
    listed = {
        code_of(file)[0]: code_of(digest)[0]
        for file, _, digest in Page.of((VENDOR / "README.md").relative_to(ROOT).as_posix()).rows(
            "file", "package", "sha256"
        )
    }
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.iterdir()}
    found.pop("README.md")
    assert listed == found
    assert {name.split(".")[0] for name in found} == {name.split(".")[0] for name in found if name.endswith("LICENSE")}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_module_is_small_says_what_it_is_and_makes_no_markup(module: Path) -> None:
    text = module.read_text()
    assert text.startswith("/** ")
    assert len(text.splitlines()) <= 200
    assert not _MARKUP.search(text)
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)
    assert all(len(line) <= 140 for line in text.splitlines())


def test_every_file_is_served_and_no_other(tmp_path: Path) -> None:
    world = World(tmp_path)
    for path in FOLDER.rglob("*.*"):
        name = path.relative_to(FOLDER).as_posix()
        served = get(world, "/" if name == "index.html" else f"/page/{name}")
        if path.suffix in (".html", ".js", ".css", ".svg"):
            assert served.content == path.read_bytes()
            assert served.headers["content-security-policy"] == POLICY
            assert served.headers["x-content-type-options"] == "nosniff"
        else:
            assert "the page has no file" in error_of(served)["what"]
    for name in ("modules/..%2findex.html", "../service.py", "modules/%00main.js", "%2e%2e/service.py"):
        assert get(world, f"/page/{name}").status_code == 404
    assert "unsafe" not in POLICY
    assert not re.search(r"<script>|<style|style=|\bon\w+=", (FOLDER / "index.html").read_text())
