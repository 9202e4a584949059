"""Every make target and every command that a page names exists, and two pages name all of them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import pytest
import typer.main
from typer.testing import CliRunner

import dovetail.services.cli.demo
from dovetail.services.cli.demo import EVENTS
from dovetail.services.cli.main import app
from dovetail.services.session import Session
from dovetail.services.stack.components import COMPONENT_NAMES
from tests.docs.pages import PAGES, README, Page, code_of
from tests.paths import ROOT

OPERATIONS, CONFIGURATION = Page.of("docs/operations.md"), Page.of("docs/configuration.md")
MAKE_TARGETS = Page.of("docs/make-targets.md")
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = dict(re.findall(r"^([a-z-]+):[^\n]*## ([^\n]*)$", MAKEFILE, re.MULTILINE))
COMMANDS = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
CI = (ROOT / ".ci" / "run").read_text()
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def commands_in(page: Page, word: str) -> set[str]:
    """What follows ``word`` at the beginning of a piece of code or of one of its lines."""
    begin = rf"(?:^|/|`|\$ ){word} ([a-z][a-z-]*)\b"
    blocks = re.findall(r"^(?: {4}\S.*|```.*?^```)", page.text, re.MULTILINE | re.DOTALL)
    return {name for text in (*page.code, *blocks) for name in re.findall(begin, text, re.MULTILINE)}


def test_every_target_has_a_help_text_and_is_phony() -> None:
    [phony] = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.split()) == set(TARGETS)
    assert set(re.findall(r"^([a-z-]+):(?!=)", MAKEFILE, re.MULTILINE)) == set(TARGETS)


def test_the_page_has_all_targets_with_their_help() -> None:
    named = {row[0]: row[1] for row in MAKE_TARGETS.rows("command", "what it does")}
    assert named == {f"`make {target}`": text for target, text in TARGETS.items()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_target_on_a_page_exists(page: Page) -> None:
    assert commands_in(page, "make") <= set(TARGETS)


def test_every_target_that_the_checks_run_exists() -> None:
    assert set(re.findall(r"^make(?: --\S+)* ([a-z-]+)$", CI, re.MULTILINE)) <= set(TARGETS)


def test_the_page_has_all_commands_and_no_other() -> None:
    rows = [row[0] for row in CONFIGURATION.rows("command", "what it does") if row[0].startswith("`dovetail")]
    assert {code.removeprefix("dovetail ") for row in rows for code in code_of(row)} == COMMANDS


def test_who_has_the_wheel_alone_is_told_of_commands() -> None:
    """Of what runs a stack; targets are for those who have a checkout."""
    [setup] = re.findall(r"^## Set-up\n(.*?)^## ", OPERATIONS.text, re.MULTILINE | re.DOTALL)
    assert {"up", "down", "status", "demo"} <= set(re.findall(r"`dovetail ([a-z]+)", setup))
    assert re.findall(r"`make (?!setup)", OPERATIONS.text) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_on_a_page_exists(page: Page) -> None:
    assert commands_in(page, "dovetail") <= COMMANDS


@pytest.mark.parametrize("name", COMPONENT_NAMES)
def test_whatever_names_the_stack_names_its_components(name: str) -> None:
    assert f"`{name}`" in {row[0] for row in OPERATIONS.rows("component", "what it is", "healthy when")}
    up = CliRunner().invoke(app, ["up", "--help"], terminal_width=100).output
    assert name in TARGETS["up"].lower()
    assert name in up.lower()


def test_the_demo_is_said_to_have_as_many_examples_as_it_has() -> None:
    folder = dovetail.services.cli.demo
    modules = [
        importlib.import_module(f"{folder.__name__}.{info.name}") for info in pkgutil.iter_modules(folder.__path__)
    ]
    examples = [module for module in modules if _runs_in_a_session(getattr(module, "run", None))]
    said = f"{NUMBERS[len(examples)]} examples"
    assert said in TARGETS["demo"]
    assert said in " ".join(CliRunner().invoke(app, ["demo", "--help"], terminal_width=100).output.split())


def _runs_in_a_session(run: object) -> bool:
    if not inspect.isfunction(run):
        return False
    first = next(iter(inspect.signature(run, eval_str=True).parameters.values()))
    return first.annotation is Session


def test_the_front_page_gives_the_events_of_the_demo() -> None:
    [said] = re.findall(r"a click-through join of ([\d,]+) events", README.text)
    assert said == f"{EVENTS:,}"
