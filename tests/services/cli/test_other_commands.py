"""Commands of other tools: what is named in their place is a command here."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dovetail.services.cli.main import app
from dovetail.services.cli.other_commands import OTHERS


@pytest.mark.parametrize("word", list(OTHERS))
def test_what_is_named_is_a_command(word: str) -> None:
    answer = CliRunner().invoke(app, [word], terminal_width=200)
    assert answer.exit_code == 2
    shown = " ".join(answer.output.split())
    assert f'there is no command "{word}"' in shown
    _, command, *_ = shlex.split(OTHERS[word].split(";")[0].replace(",", ""))
    assert command == "--help" or CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_a_slip_is_told_the_nearest() -> None:
    assert "Did you mean 'status'?" in CliRunner().invoke(app, ["statsu"]).output


def test_a_view_among_the_logs_is_told_how_to_ask_for_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    answer = CliRunner().invoke(app, ["logs", "orders"])
    assert answer.exit_code != 0
    assert "of a view: dovetail logs view orders" in " ".join(answer.output.split())
    assert "did you mean" in CliRunner().invoke(app, ["logs", "kafak"]).output
