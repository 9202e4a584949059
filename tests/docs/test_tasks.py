"""docs/tasks: every block of every page is run, top to bottom, on one real stack, and gives what stands below it."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dovetail.runtime.settings import Settings
from dovetail.services.cli.show import Screen
from dovetail.services.session import Rows, Session
from dovetail.services.session.result import Text
from dovetail.services.stack import Stack
from dovetail.services.stack.temporary import temporary_settings
from dovetail.sql.catalog import Query
from dovetail.sql.datagen.row_generator import RowGenerator
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream
from tests.docs.pages import DOCS, Page
from tests.docs.test_use_cases import settle
from tests.paths import ROOT
from tests.servers import mariadb
from tests.services.lsp.editor import SERVER, editor, started_by

PAGES = [Page(path) for path in sorted((DOCS / "tasks").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}")
_PLACE = re.compile(r" +\d+ +\d+(?=  \.\.)")
"""Partition and offset before a time: a record without a key may go to any partition."""
_COMMAND_S = 300
SHOWN = "text"
Shown = str | None


def blocks(page: Page) -> list[tuple[str, str]]:
    """Language and text of each."""
    return _BLOCK.findall(page.text)


@dataclass
class Place:
    """Where the blocks of one page are run, each in its way.

    settings  of the stack that the reader is at
    folder    the working folder of the shell, and what ``/backups`` is
    """

    stack: Stack
    settings: Settings
    folder: Path
    opened: ExitStack
    names: dict[str, Any] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)

    def sql(self, text: str) -> Shown:
        for name, value in {"/backups": str(self.folder), **self.hosts}.items():
            text = text.replace(name, value)
        with Session.open(self.settings) as session:
            *_, last = session.run(text)
            await_generated(session)
            if "INSERT" in text or "MATERIALIZED VIEW" in text:
                queries = session.context.catalog.queries()
                settle(session, [query.view for query in queries if not query.generates])
        match last:
            case Text():
                return f"{last.text}\n"
            case Rows():
                output = io.StringIO()
                Screen(output=output).plain(last.table)
                return output.getvalue()
        return None

    def sh(self, text: str) -> Shown:
        shim = self.folder / "bin" / "dovetail"
        shim.parent.mkdir(exist_ok=True)
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dovetail.services.cli.main "$@"\n')
        shim.chmod(0o755)
        serve = next(line.endpoint for line in self.stack.status() if line.name == "serve")
        run = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", text.replace("timeout 5 curl", "! timeout 5 curl")],
            cwd=self.folder,
            env={
                **os.environ,
                **self.settings.as_environment(),
                "PATH": f"{shim.parent}:/usr/bin:/bin",
                "PYTHONPATH": str(ROOT),
                "DOVETAIL": serve,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
        assert run.returncode == 0, f"{text}\n{run.stdout}\n{run.stderr}"
        return run.stdout

    def python(self, text: str) -> Shown:
        output = io.StringIO()
        with redirect_stdout(output), chdir(self.folder):
            exec(text, self.names)
        return output.getvalue()

    def mysql(self, text: str) -> Shown:
        server = self.opened.enter_context(mariadb(self.folder / "mysql"))
        assert server.ask is not None
        for statement in filter(str.strip, text.split(";")):
            server.ask(server, statement.replace("products ", f"{SHOP}.products ", 1))
        self.hosts |= {
            "HOST 'db' PORT 3306 USER 'reader'": f"HOST '{server.host}' PORT {server.port} USER '{server.user}'"
        }
        return None

    def json(self, text: str) -> Shown:
        """The settings of an editor, by which it starts the server."""
        (command, *arguments), options = started_by(text)
        assert command == "dovetail"
        with editor(self.folder, (*SERVER[:-1], *arguments), options, self.settings.as_environment()) as opened:
            assert "SELEC" in opened.open("SELEC 1")[0]["message"]
        return None

    def ini(self, text: str) -> Shown:
        """Another machine: a runner of its own, with a catalog and checkpoints of its own, at the same brokers."""
        names = {line.partition("=")[0].removeprefix("DOVETAIL_").lower() for line in text.splitlines()}
        assert names <= set(Settings.model_fields)
        folder = self.folder / "new"
        self.settings = temporary_settings(folder, brokers=self.stack.endpoint("kafka"), buckets=1)
        self.opened.callback(Stack(self.settings).down)
        return None


def await_generated(session: Session) -> None:
    """Until the streams whose rows have an end have come to it: what a reader does not notice."""
    end_s = time.monotonic() + _COMMAND_S
    for query in session.context.catalog.queries():
        if query.generates:
            definition = parse_one(query.sql)
            assert isinstance(definition, CreateStream)
            last = RowGenerator.of(definition).last
            while last is not None and _rows_out(session.context.catalog.query(query.name)) <= last:
                assert time.monotonic() < end_s
                time.sleep(0.1)


def _rows_out(query: Query) -> int:
    return int(query.progress.get("counts", {}).get("rows_out", 0))


SHOP = "shop"


@pytest.fixture
def place(whole_stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(whole_stack.settings.data_dir))
    with ExitStack() as opened:
        yield Place(whole_stack, whole_stack.settings, tmp_path, opened)


@pytest.mark.services
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)
def test_every_block_runs_and_gives_what_stands_below_it(page: Page, place: Place) -> None:
    ways: dict[str, Callable[[str], Shown]] = {
        way.__name__: way for way in (place.sql, place.sh, place.python, place.mysql, place.ini, place.json)
    }
    ways["lua"] = ways["json"]
    given: Shown = None
    for language, text in blocks(page):
        if language == SHOWN:
            assert given is not None
            assert _steady(given) == _steady(text)
        else:
            given = ways[language](text)
    if db := place.names.get("db"):
        db.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)
def test_a_page_is_short_and_leads_on(page: Page) -> None:
    assert len(page.text.splitlines()) <= 100
    assert page.text.count("\nTo read on: ") == 1
    assert blocks(page)


def test_the_index_has_every_page() -> None:
    assert {link for link in Page.of("docs/README.md").links if link.startswith("tasks/")} == {
        f"tasks/{page.path.name}" for page in PAGES
    }


def _steady(shown: str) -> str:
    """Without what differs from run to run."""
    return _PLACE.sub(" ..", _TIME.sub("..", shown))
