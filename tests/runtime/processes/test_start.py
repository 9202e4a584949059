"""The start of a process: what it says of an error, of a setting that is wrong, and of a variable that is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.runtime.packages import PACKAGE_ROOT
from dovetail.runtime.processes.start import exit_code_of

MODULES = {
    "dovetail.services.registry": "DOVETAIL_SCHEMA_REGISTRY_BIND",
    "dovetail.services.serve": "DOVETAIL_SERVE_BIND",
    "dovetail.spark_jobs.runner": "DOVETAIL_RUNNER_BIND",
}


@pytest.mark.parametrize("module", [*MODULES, "dovetail.services.worker"])
def test_a_wrong_setting_is_an_answer_and_no_traceback(module: str, tmp_path: Path) -> None:
    said = started(module, tmp_path, DOVETAIL_LOG_LEVEL="LOUD")
    assert "DOVETAIL_LOG_LEVEL" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("module", "setting"), MODULES.items())
def test_an_address_of_another_machine_is_an_answer_and_no_traceback(module: str, setting: str, tmp_path: Path) -> None:
    said = started(module, tmp_path, **{setting: "203.0.113.9", "DOVETAIL_SERVE_UNPROTECTED": "on"})
    assert f"where: {setting}" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("module", MODULES)
def test_a_folder_that_cannot_be_written_to_is_an_answer_and_no_traceback(module: str, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.touch()
    said = started(module, taken / "data")
    assert f"where: {taken}/data" in said
    assert "Traceback" not in said


def started(module: str, folder: Path, **variables: str) -> str:
    """What the process says before it ends with 1."""
    ended = subprocess.run(
        [sys.executable, "-m", module],
        cwd=PACKAGE_ROOT,
        env=os.environ | {"DOVETAIL_DATA_DIR": str(folder), "DOVETAIL_BROKERS": "127.0.0.1:1"} | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    return ended.stderr


def test_what_is_no_error_of_dovetail_is_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))

    def fail(settings: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        exit_code_of(fail)
