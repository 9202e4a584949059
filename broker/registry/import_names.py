"""What a schema of Protobuf may call another one that it imports: it becomes the path of a file."""

from __future__ import annotations

import re

from dovetail.broker.registry.protoc import ROOT_FILE
from dovetail.broker.registry.registered import SchemaNonsense

_PATH = re.compile(r"[A-Za-z0-9_./-]+\.proto")
_LONGEST = 255
_TAKEN = ("google/protobuf/", "grpc_tools/")
"""The files that protoc comes with, and those of protoc itself."""


def expect_import_name(name: str) -> None:
    """Raises SchemaNonsense."""
    path = name.lower()
    if len(name) > _LONGEST or not _PATH.fullmatch(name) or {"", ".", ".."} & {*name.split("/")}:
        raise SchemaNonsense(
            f"{name[:_LONGEST]!r} cannot be the path of an import: letters, digits, _ - . and / between parts, "
            f"{_LONGEST} at most, .proto at the end"
        )
    if path == ROOT_FILE or path.startswith(_TAKEN):
        raise SchemaNonsense(f"{name!r} cannot be the path of an import: it is taken; call it otherwise")
