"""The wheel, installed into an empty folder: it holds what runs, and its stack is found from another one."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from dovetail.services.stack.state import read_state
from tests.docs.pages import Page
from tests.paths import ROOT
from tests.services.cli.test_manual import PAGES
from tests.test_layers import LAYERS


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    run("git", "clone", "--quiet", str(ROOT), str(source), cwd=folder)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", str(source), cwd=folder)
    [built] = folder.glob("*.whl")
    return built


def decoys(folder: Path) -> None:
    """A folder with a module for each of our layers, none of which may be imported."""
    folder.mkdir()
    for layer in LAYERS.keys() - {"dovetail"}:
        (folder / f"{layer}.py").write_text(f"raise AssertionError('the {layer} of a stranger')")


def run(*command: str, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.services
def test_it_holds_every_file_of_the_package_and_no_other_name(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    inside = {name for name in names if ".dist-info/" not in name}
    tracked = run("git", "ls-files", "--", *LAYERS, cwd=ROOT).splitlines()
    expected = {name if name.startswith("dovetail/") else f"dovetail/{name}" for name in tracked}
    pages = {f"dovetail/docs/{page}.md" for page in PAGES}
    assert inside == expected - {f"dovetail/{link}" for link in (*LAYERS, "docs")} | pages
    assert "dovetail/py.typed" in inside  # without it no type checker of a user believes its types


@pytest.mark.services
def test_its_stack_is_found_from_another_folder_and_the_first_lines_of_python_run(wheel: Path, tmp_path: Path) -> None:
    """Started in a folder whose own modules have the names of our layers, with no file of this checkout."""
    installed, folder = tmp_path / "installed", tmp_path / "decoys"
    decoys(folder)
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(installed),
        str(wheel),
        cwd=folder,
    )
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DOVETAIL_")},
        **{f"DOVETAIL_{name}_PORT": "0" for name in ("KAFKA", "KAFKA_CONTROLLER", "RUNNER")},
        "PYTHONPATH": str(installed),
    }
    dovetail = str(installed / "bin" / "dovetail")
    place = "import dovetail.services; print(dovetail.services.__file__)"
    assert run(sys.executable, "-c", place, cwd=folder, environment=environment).startswith(str(installed))
    [lines] = [block for block in Page.of("docs/python.md").blocks("python") if "connect()" in block]
    elsewhere = tmp_path / "elsewhere"
    decoys(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    try:
        run(
            sys.executable,
            dovetail,
            "up",
            "--without",
            "redis",
            "--without",
            "worker",
            cwd=folder,
            environment=environment,
        )
        printed = run(sys.executable, "-c", lines, cwd=elsewhere, environment=environment)
        streams = run(sys.executable, dovetail, "sql", "-c", "SHOW STREAMS", cwd=elsewhere, environment=environment)
        run(sys.executable, dovetail, "status", cwd=elsewhere, environment=environment)
    finally:
        run(sys.executable, dovetail, "down", cwd=folder, environment=environment)
    assert "prices" in streams
    assert sorted(elsewhere.rglob("*")) == before
    assert read_state(folder / ".dovetail" / "stack.json") is None
    assert printed == Page.of("docs/python.md").blocks("text")[0]
