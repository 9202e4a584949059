"""Names and texts of schemas that would be run where something looks for code, or would leave their folder."""

from __future__ import annotations

from pathlib import Path

HOSTILE_NAMES = (
    "grpc_tools/__init__.py",
    "grpc_tools/protoc.py",
    "grpc_tools/x.proto",
    "GRPC_TOOLS/x.proto",
    "google/__init__.py",
    "google/protobuf/__init__.py",
    "google/protobuf/timestamp.proto",
    "sitecustomize.py",
    "usercustomize.py",
    "encodings/__init__.py",
    "json.py",
    "a.pth",
    "pyvenv.cfg",
    "__schema.proto",
    "descriptors",
    "x.proto/../..",
    "../x.proto",
    "a/../../x.proto",
    "./x.proto",
    "a//x.proto",
    "/tmp/x.proto",
    "a\\x.proto",
    "a\0.proto",
    "a.proto\n",
    "a b.proto",
    "é.proto",
    "",
    ".proto/",
    ".",
    "..",
    "x" * 250 + ".proto",
    "x/" * 5000 + "x.proto",
)


def polyglot(mark: Path) -> str:
    """A schema of Protobuf that, run as Python, leaves ``mark``."""
    program = f'__import__("pathlib").Path("{mark}").write_text("x")'
    return f'syntax = "proto3" // ({program}, """\n; message M {{ string a = 1; }}\n// """)\n'
