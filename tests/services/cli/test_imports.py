"""What the command line loads before it knows which command is meant: nothing that a command needs."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

from tests.test_rooms import PRESENT

_LOADED = """
import json, sys
from services.cli.main import app
app(sys.argv[1:], standalone_mode=False)
print(json.dumps(sorted(sys.modules)))
"""
_OF_TYPER = {"typer", "annotated-doc", "shellingham", "typing_extensions"}
_OF_ITS_OPTIONS = {"pydantic", "pydantic_core", "annotated-types", "typing-inspection"}
_OF_RICH = {"rich", "Pygments", "attrs", "markdown-it-py", "mdurl"}
_OF_THE_INTERPRETER = {"setuptools"}
_FOR_HELP = _OF_TYPER | _OF_ITS_OPTIONS | _OF_RICH | _OF_THE_INTERPRETER
_ROOMS = {*PRESENT} - {"services"}


def loaded(*arguments: str) -> list[str]:
    """The modules of a process of its own that has run the command."""
    argv = [sys.executable, "-c", _LOADED, *arguments]
    ended = subprocess.run(argv, capture_output=True, text=True, check=True)
    names: list[str] = json.loads(ended.stdout.splitlines()[-1])
    return names


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["sql", "--help"], ["up", "--help"], ["demo", "--help"], ["dictionary", "stats", "--help"]],
    ids=" ".join,
)
def test_help_loads_what_draws_it_and_no_more(arguments: list[str]) -> None:
    modules = loaded(*arguments)
    packages = {name.partition(".")[0] for name in modules}
    published = packages_distributions()
    libraries = {library for package in packages for library in published.get(package, ())} - {"dovetail"}
    assert libraries <= _FOR_HELP
    assert packages & _ROOMS == set()
