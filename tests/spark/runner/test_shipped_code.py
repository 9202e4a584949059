"""The zip of Dovetail's code that executors get."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from dovetail.spark_jobs.daemon import STAGES
from dovetail.spark_jobs.runner.shipped_code import ShippedCode


def test_the_stages_are_imported_from_what_is_shipped_alone(tmp_path: Path) -> None:
    path = tmp_path / "unpacked"
    with zipfile.ZipFile(ShippedCode.of_this_process().write(tmp_path)) as archive:
        archive.extractall(path)
    program = (
        f"import sys; sys.path.insert(0, {str(path)!r})\n"
        f"import importlib; [importlib.import_module(name) for name in {STAGES!r}]\n"
        f"for name, module in sys.modules.items():\n"
        "    if name.split('.')[0] == 'dovetail':\n"
        "        print(module.__file__)\n"
    )

    said = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={}, check=True, capture_output=True, text=True
    )

    assert len(said.stdout.splitlines()) > 20
    assert [file for file in said.stdout.splitlines() if not file.startswith(str(path))] == []


def test_the_name_tells_the_content() -> None:
    code = ShippedCode.of_this_process()
    other = ShippedCode({**code.files, "joins/__init__.py": b"# another release\n"})
    assert code.folder == ShippedCode.of_this_process().folder
    assert code.folder != other.folder
