"""protoc in a process of its own, which sees nothing but the files that it is to compile.

The files are a stranger's, by text and by name, so nothing may come to be run because it lies among them. The
interpreter is isolated (``-I``: its modules are those that are installed, and no variable says otherwise), begins in an
empty folder, is handed no environment, and may use so much of the machine and no more.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from dovetail.broker.registry.registered import SchemaNonsense

ROOT_FILE = "__schema.proto"
"""What a schema is called among the files that it imports."""
_PATIENCE_S = 30
_SAID_BYTES = 4096


def compiled_files(text: str, imports: Mapping[str, str]) -> FileDescriptorSet:
    """A schema and what it imports, itself last. Names are such as ``import_names`` takes. Raises SchemaNonsense."""
    with tempfile.TemporaryDirectory(prefix="dovetail-proto-") as made:
        folder = Path(made)
        for name, imported in imports.items():
            _write(folder / "imports" / name, imported)
        _write(folder / "schema" / ROOT_FILE, text)
        _run(folder)
        return FileDescriptorSet.FromString((folder / "descriptors").read_bytes())


def _write(place: Path, text: str) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    except (OSError, UnicodeEncodeError) as fault:
        raise SchemaNonsense(f"{place.name} cannot be written: {type(fault).__name__}") from None


def _run(folder: Path) -> None:
    own, said = folder / "own", folder / "said"
    own.mkdir()
    with said.open("wb") as output:
        # By its text: where the code of Dovetail is a zip, its modules have no path.
        child = (files("dovetail.broker.registry") / "protoc_child.py").read_text()
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", child, *_arguments(folder)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=_PATIENCE_S,
                check=False,
                cwd=own,
                env={},
            )
        except subprocess.TimeoutExpired:
            raise SchemaNonsense(f"protoc did not come to an end within {_PATIENCE_S} s") from None
    if done.returncode != 0:
        raise SchemaNonsense(f"it is no schema of Protobuf: {_complaint(said, folder) or 'protoc failed'}")


def _arguments(folder: Path) -> list[str]:
    """The schema before what it imports, and Google's own files: none of them stands for one that comes before."""
    (folder / "imports").mkdir(exist_ok=True)
    places = (folder / "schema", files("grpc_tools") / "_proto", folder / "imports")
    return [
        *(f"--proto_path={place}" for place in places),
        "--include_imports",
        f"--descriptor_set_out={folder / 'descriptors'}",
        ROOT_FILE,
    ]


def _complaint(said: Path, folder: Path) -> str:
    with said.open("rb") as output:
        lines = output.read(_SAID_BYTES).decode(errors="replace").replace(str(folder), "").strip().splitlines()
    return " ".join(lines[:3])
