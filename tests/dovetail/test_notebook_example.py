"""examples/notebook: each gives what is committed, on a real stack; and what a notebook says when that is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from dovetail.services.stack import Stack
from dovetail.services.stack.temporary import temporary_stack
from tests.paths import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebook").glob("*.ipynb"))
_CELL_S = 180
INTERRUPTED = "import os, signal, threading; threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()"
"""What Jupyter does when somebody presses stop."""


@pytest.fixture(scope="module")
def stack_of_notebooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("notebooks") / ".dovetail"
    with temporary_stack(folder, ("kafka", "spark"), buckets=1, start_timeout_s=240.0) as running:
        yield running


@pytest.fixture
def client(stack_of_notebooks: Stack, monkeypatch: pytest.MonkeyPatch) -> NotebookClient:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(stack_of_notebooks.settings.data_dir))
    return NotebookClient(nbformat.v4.new_notebook(), timeout=_CELL_S, kernel_name="python3")


def shown(notebook: NotebookNode) -> list[list[str]]:
    """What is below each cell, as text, a line each; rows of one batch have no order."""
    return [sorted(text_of(cell).splitlines()) for cell in without_progress(notebook).cells]


def without_progress(notebook: NotebookNode) -> NotebookNode:
    """How long something takes to start is printed, and differs."""
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.output_type != "stream"]
    return notebook


def text_of(cell: NotebookNode) -> str:
    outputs = cell.get("outputs", ())
    texts = [output.get("data", {}).get("text/plain") for output in outputs]
    return "\n".join(
        text or "\n".join(output.get("traceback", ())) for text, output in zip(texts, outputs, strict=True)
    )


@pytest.mark.services
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_what_is_committed(path: Path, client: NotebookClient, request: pytest.FixtureRequest) -> None:
    committed = nbformat.read(path, as_version=4)
    client.nb = nbformat.read(path, as_version=4)
    client.execute(cwd=str(ROOT))
    if request.config.getoption("--golden"):
        write(path, client.nb)
        return
    assert shown(client.nb) == shown(committed)


def write(path: Path, notebook: NotebookNode) -> None:
    for cell in without_progress(notebook).cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)


@pytest.mark.services
def test_one_that_loses_its_stack_says_so_and_goes_on_when_it_is_back(
    stack_of_notebooks: Stack, client: NotebookClient
) -> None:
    def said(source: str) -> str:
        client.nb.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": ["raises-exception"]}))
        return text_of(client.execute_cell(client.nb.cells[-1], len(client.nb.cells) - 1))

    with client.setup_kernel():
        said("%load_ext dovetail")
        assert "connected to Kafka at" in said("%dovetail")
        said("%%dovetail\nCREATE STREAM lost (id int64); INSERT INTO lost (id) VALUES (1)")
        assert said(f"{INTERRUPTED}\n%dovetail_changes lost -b").splitlines()[-1] == "1 change; interrupted"
        assert said("%dovetail_changes lots -b").splitlines()[0] == 'error: there is no stream, view or topic "lots"'
        assert said("%dovetail brokers").startswith('error: "brokers" is no setting with a value')
        assert said("%dovetail broker=x").splitlines()[-1] == '  fix:   did you mean "brokers"?'
        down = threading.Timer(3.0, stack_of_notebooks.down)
        down.start()
        try:
            live = said("%dovetail_changes lost -b")
            assert "1 change; failed" in live
            assert "error: the stack that this notebook works with has ended" in live
            down.join()
            lost = said("%%dovetail\nSHOW STREAMS")
            folder = stack_of_notebooks.settings.data_dir.parent
            assert lost.splitlines() == [
                "error: the stack that this notebook works with has ended",
                f"  where: {stack_of_notebooks.settings.data_dir}",
                f"  fix:   dovetail up, in {folder}; then run the cell again",
            ]
        finally:
            down.join()
            stack_of_notebooks.up(("kafka",))
        assert "0 rows" in said("%%dovetail\nSHOW DICTIONARIES")
