"""What the command line loads before it knows which command is meant: nothing that a command needs."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from dovetail.services.stack import Stack
from tests.test_layers import PRESENT

_LOADED = """
import json, sys
from dovetail.services.cli.main import app
app(sys.argv[1:], standalone_mode=False)
print(json.dumps(sorted(sys.modules)))
"""
_RUN = """
import json, sys
from dovetail.services.cli.main import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)))
"""
_OF_TYPER = {"typer", "annotated-doc", "shellingham", "typing_extensions"}
_OF_ITS_OPTIONS = {"pydantic", "pydantic_core", "annotated-types", "typing-inspection"}
_OF_RICH = {"rich", "Pygments", "attrs", "markdown-it-py", "mdurl"}
_OF_THE_INTERPRETER = {"setuptools"}
_FOR_HELP = _OF_TYPER | _OF_ITS_OPTIONS | _OF_RICH | _OF_THE_INTERPRETER
_LAYERS = {*PRESENT} - {"services"}


def loaded(*arguments: str) -> list[str]:
    """The modules of a process of its own that has run the command."""
    return modules_of(_LOADED, *arguments)


def modules_of(code: str, *arguments: str) -> list[str]:
    argv = [sys.executable, "-c", code, *arguments]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stderr, ended.stderr
    names: list[str] = json.loads(ended.stdout.splitlines()[-1])
    return names


def libraries_of(modules: list[str]) -> set[str]:
    packages = {name.partition(".")[0] for name in modules}
    published = packages_distributions()
    return {library for package in packages for library in published.get(package, ())} - {"dovetail"}


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["sql", "--help"], ["up", "--help"], ["demo", "--help"], ["dictionary", "stats", "--help"]],
    ids=" ".join,
)
def test_help_loads_what_draws_it_and_no_more(arguments: list[str]) -> None:
    modules = loaded(*arguments)
    assert libraries_of(modules) <= _FOR_HELP
    assert {name.split(".")[1] for name in modules if name.startswith("dovetail.")} & _LAYERS == set()


@pytest.mark.services
@pytest.mark.parametrize("arguments", [["status"], ["sql", "-c", "SHOW STREAMS"]], ids=["status", "listing"])
def test_a_look_at_what_there_is_waits_for_no_planner(
    arguments: list[str], stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DOVETAIL_BROKERS", stack.endpoint("kafka"))
    modules = set(modules_of(_RUN, *arguments))
    assert "dovetail.sql.catalog" in modules
    assert (
        modules & {"pandas", "polars", "duckdb", "httpx", "fastavro", "dovetail.sql.planner", "dovetail.sql.plan.nodes"}
        == set()
    )
