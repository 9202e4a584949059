"""What bash and zsh complete: the commands, their options, and the names that the catalog has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.services.cli.shell import names
from dovetail.sql.catalog import Catalog
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream, CreateView

DDL = (
    "CREATE STREAM orders (id int64)",
    "CREATE MATERIALIZED VIEW orders_paid AS SELECT id FROM orders",
    "CREATE DICTIONARY products (id int, n string) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 'p')) LAYOUT(HASHED())",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    for text in DDL:
        definition = parse_one(text)
        assert isinstance(definition, CreateStream | CreateView | CreateDictionary)
        catalog.create(definition, now_ms=0)
    catalog.close()
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("DOVETAIL_CATALOG_URL", raising=False)
    return tmp_path


def completed(shell: str, *words: str) -> list[str]:
    """What a shell is told behind ``dovetail words..``, the last of which is being typed."""
    line = " ".join(("dovetail", *words))
    of_shell = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words))},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
    }
    environment = {**os.environ, **of_shell[shell], "_DOVETAIL_COMPLETE": f"complete_{shell}"}
    argv = [sys.executable, "-c", "from dovetail.services.cli.main import app; app(prog_name='dovetail')"]
    completed = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    assert completed.stderr == ""
    return completed.stdout.split()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_is_told_names(shell: str) -> None:
    assert any("orders_paid" in word for word in completed(shell, "verify", "ord"))


@pytest.mark.usefixtures("folder")
def test_each_argument_has_names_of_its_kind() -> None:
    assert names.views("") == ["orders_paid"]
    assert names.topics("or") == ["orders", "orders_paid"]
    assert names.dictionaries("p") == ["products"]
    assert names.dead_letter_topics("orders_paid.d") == ["orders_paid.dead_letter"]
    assert names.components("s") == ["spark", "serve", "supervisor"]
    assert names.views("x") == []


def test_a_catalog_that_is_not_there_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("DOVETAIL_CATALOG_URL", raising=False)
    assert names.views("") == []
    assert not (tmp_path / "none").exists()


def test_a_file_that_is_no_catalog_completes_to_nothing(folder: Path) -> None:
    (folder / "catalog.db").write_text("no database")
    assert names.topics("") == []
